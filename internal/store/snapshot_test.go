package store

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// filled returns a member with something of everything.
func filled(t *testing.T) *node {
	n := openTemp(t)
	n.raw(randomLog(n, 1, 200)...)
	n.must(grant(77, 1000))
	n.must(putLease("leased", "x", 77))
	n.raw(n.Leases().Claim())
	settle(t, n)
	enableAuth(n)
	return n
}

func TestSnapshotRestore(t *testing.T) {
	from, to := filled(t), openTemp(t)
	to.must(put("other", "x")) // to be replaced
	want := from.dump()
	snap, err := from.Snapshot()
	require.NoError(t, err)
	require.Equal(t, from.Applied(), snap.Position())
	root := from.login("root", "r")
	require.NoError(t, from.doAs(root, put("later", "x"))) // not in the snapshot
	var b bytes.Buffer
	require.NoError(t, snap.WriteTo(context.Background(), &b))
	require.NoError(t, snap.Close())
	require.NoError(t, snap.Close())

	require.NoError(t, to.Restore(iotest.OneByteReader(&b)))
	require.Equal(t, want, to.dump())
	to.next = to.Applied() + 1

	// It still exists, also after a restart.
	root = to.login("root", "r")
	require.NoError(t, to.doAs(root, put("more", "x")))
	require.NoError(t, to.Sync())
	again := open(t, testOptions(clone(t, to.opts.Dir)))
	require.Equal(t, to.dump(), again.dump())
	require.NoError(t, again.Close())
}

func TestBadSnapshotLeavesTheState(t *testing.T) {
	from, to := filled(t), openTemp(t)
	to.must(put("mine", "x"))
	good := from.snapshot()
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	huge := append(bytes.Repeat([]byte{0xff}, 0), good...)
	huge[len(snapshotMagic)+8] = 0xff
	for name, data := range map[string][]byte{
		"empty":   nil,
		"short":   good[:len(good)-1],
		"half":    good[:len(good)/2],
		"flipped": flipped,
		"huge":    huge,
		"other":   []byte("something else altogether, of some length"),
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, to.Restore(bytes.NewReader(data)), ErrBadSnapshot)
			require.Equal(t, "x", to.get("mine"))
			left, err := filepath.Glob(filepath.Join(to.opts.Dir, restorePattern))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
	require.NoError(t, to.Err())
}

func TestSnapshotStopsWithContext(t *testing.T) {
	n := filled(t)
	snap, err := n.Snapshot()
	require.NoError(t, err)
	defer snap.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, snap.WriteTo(ctx, new(bytes.Buffer)), context.Canceled)
}

func TestDefragmentWaitsForSnapshots(t *testing.T) {
	n := openTemp(t)
	for range 200 {
		n.must(&pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte("a"), Value: make([]byte, 10000)}})
	}
	settle(t, n)
	before := n.DBSize()
	snap, err := n.Snapshot()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, n.Defragment(ctx), context.Canceled)
	done := make(chan error, 1)
	go func() { done <- n.Defragment(context.Background()) }()
	n.must(put("b", "1")) // it holds nothing up while it waits
	require.NoError(t, snap.Close())
	require.NoError(t, within(t, done))
	require.Less(t, n.DBSize(), before/2)
	require.GreaterOrEqual(t, n.DBSize(), n.DBSizeInUse())
	require.Equal(t, "1", n.get("b"))
	n.must(put("b", "2"))
}

// TestSnapshotForClientsWaitsForDefragmentation, and for one that waits itself, until its context ends.
// What members need is tried again soon, so it does not wait.
func TestSnapshotForClientsWaitsForDefragmentation(t *testing.T) {
	n := openTemp(t)
	n.must(put("a", "1"))
	first, err := n.SnapshotForClients(t.Context())
	require.NoError(t, err)
	defragmented := make(chan error, 2)
	for range 2 {
		go func() { defragmented <- n.Defragment(t.Context()) }()
	}
	require.Eventually(t, func() bool { // it keeps new snapshots out
		v, err := n.Snapshot()
		if err == nil {
			require.NoError(t, v.Close())
		}
		return errors.Is(err, errDefragmenting)
	}, time.Minute, time.Millisecond)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = n.SnapshotForClients(ended)
	require.ErrorIs(t, err, context.Canceled)
	done := make(chan error, 1)
	go func() {
		second, err := n.SnapshotForClients(t.Context())
		if err == nil {
			err = second.Close()
		}
		done <- err
	}()
	require.NoError(t, first.Close())
	require.NoError(t, within(t, done))
	for range 2 {
		require.NoError(t, within(t, defragmented))
	}
}

// TestRestoreEndsTheWaitForACompaction: the restored state does not have the compaction that was in progress, so
// nothing may wait for its end.
func TestRestoreEndsTheWaitForACompaction(t *testing.T) {
	o := testOptions(t.TempDir())
	o.CompactionBatchLimit, o.CompactionSleepInterval = 1, time.Hour
	n, other := open(t, o), filled(t)
	for range 10 {
		n.must(put("a", "1"))
	}
	result := n.must(&pb.InternalRaftRequest{Compaction: &pb.CompactionRequest{Revision: 8, Physical: true}})
	done := make(chan error, 1)
	go func() { done <- n.FinishCompaction(context.Background(), result) }()
	require.NoError(t, n.Restore(snapshotReader(other)))
	if err := within(t, done); err != nil { // etcd's code may have called it finished
		require.ErrorIs(t, err, ErrRestored)
	}
	require.NoError(t, n.Close())
}

// TestClientSnapshotInEtcd saves a snapshot as etcdctl does and restores it with etcdutl:
// etcd's directory then has the same keys. And back again.
func TestClientSnapshotInEtcd(t *testing.T) {
	n := filled(t)
	want, err := n.HashKV(context.Background(), 0)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "saved.db")
	f, err := os.Create(file)
	require.NoError(t, err)
	size := n.clientSnapshot(f)
	require.NoError(t, f.Close())
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, size, info.Size())

	dir := filepath.Join(t.TempDir(), "etcd")
	util := snapshot.NewV3(zap.NewNop())
	saved, err := util.Status(file)
	require.NoError(t, err)
	require.Equal(t, n.Revision(), saved.Revision)
	require.Equal(t, "3.7.0", saved.Version)
	require.NoError(t, util.Restore(snapshot.RestoreConfig{
		SnapshotPath: file, Name: "m", OutputDataDir: dir,
		PeerURLs: []string{"http://127.0.0.1:1"}, InitialCluster: "m=http://127.0.0.1:1", InitialClusterToken: "t",
	}))

	back := t.TempDir()
	require.NoError(t, Import(filepath.Join(dir, "member", "snap", "db"), back, ImportOptions{SkipHashCheck: true}))
	imported := open(t, testOptions(back))
	got, err := imported.HashKV(context.Background(), 0)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Zero(t, imported.Applied())
	require.Zero(t, imported.Leases().Primary())
	require.NoError(t, imported.doAs(imported.login("root", "r"), put("a", "1")))
	require.NoError(t, imported.Close())
}

// TestBumpRevision: a restored database with a later revision is that of etcdutl, and no reader sees anything older.
func TestBumpRevision(t *testing.T) {
	n := openTemp(t)
	n.raw(randomLog(n, 1, 200)...)
	before := n.Revision()
	file := filepath.Join(t.TempDir(), "saved.db")
	var b bytes.Buffer
	n.clientSnapshot(&b)
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
	etcd, restored := filepath.Join(t.TempDir(), "etcd"), t.TempDir()
	require.NoError(t, snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: file, Name: "m", OutputDataDir: etcd, PeerURLs: []string{"http://127.0.0.1:1"},
		InitialCluster: "m=http://127.0.0.1:1", InitialClusterToken: "t", RevisionBump: 1000, MarkCompacted: true,
	}))
	fromEtcd := t.TempDir()
	require.NoError(t, Import(filepath.Join(etcd, "member", "snap", "db"), fromEtcd, ImportOptions{SkipHashCheck: true}))
	require.NoError(t, Import(file, restored, ImportOptions{BumpRevision: 1000}))
	want, got := open(t, testOptions(fromEtcd)), open(t, testOptions(restored))
	require.Contains(t, got.Birth(), ", revision +1000")
	require.NotEqual(t, want.Birth(), got.Birth())
	for _, m := range []*node{want, got} {
		require.Equal(t, before+1000, m.Revision())
		_, err := m.Range(t.Context(), &pb.RangeRequest{Key: []byte("a"), Revision: before})
		require.ErrorIs(t, err, mvcc.ErrCompacted)
		m.must(put("later", "1"))
		require.Equal(t, before+1001, m.Revision())
		require.NoError(t, m.FinishCompaction(t.Context(), m.must(compact(m.Revision()))))
	}
	require.Equal(t, want.dump(), got.dump())
	require.NoError(t, want.Close())
	require.NoError(t, got.Close())
	require.NoError(t, open(t, testOptions(restored)).Close())
	require.ErrorContains(t, Import(file, t.TempDir(), ImportOptions{BumpRevision: math.MaxInt64}), "cannot grow")
}

func TestImport(t *testing.T) {
	n := filled(t)
	file := filepath.Join(t.TempDir(), "saved.db")
	var b bytes.Buffer
	n.clientSnapshot(&b)
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))

	dir := t.TempDir()
	require.NoError(t, Import(file, dir, ImportOptions{}))
	require.ErrorContains(t, Import(file, dir, ImportOptions{}), "exists")
	imported := open(t, testOptions(dir))
	require.Zero(t, imported.Applied())
	require.Equal(t, sortedLeases(n), sortedLeases(imported))
	require.NoError(t, imported.Close())

	bad := bytes.Clone(b.Bytes())
	bad[5000] ^= 1
	require.NoError(t, os.WriteFile(file, bad, 0o600))
	require.ErrorContains(t, Import(file, t.TempDir(), ImportOptions{}), "SHA-256")
	require.NoError(t, os.WriteFile(file, b.Bytes()[:8192], 0o600))
	require.ErrorContains(t, Import(file, t.TempDir(), ImportOptions{}), "digest")
	require.NoError(t, os.WriteFile(file, make([]byte, 8192), 0o600))
	require.Error(t, Import(file, t.TempDir(), ImportOptions{SkipHashCheck: true}))
}
