package store

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	bolt "go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/braidlog/braid/internal/store/sums"
	"github.com/braidlog/braid/internal/testsize"
)

// varied is a store with something of everything: history, leases, users, an alarm.
func varied(t testing.TB, o Options) *node {
	n := open(t, o)
	n.must(grant(7, 100))
	n.must(&pb.InternalRaftRequest{AuthRoleAdd: &pb.AuthRoleAddRequest{Name: "role"}})
	n.must(&pb.InternalRaftRequest{Alarm: &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: 9,
		Alarm: pb.AlarmType_CORRUPT}})
	n.must(&pb.InternalRaftRequest{Alarm: &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, MemberID: 9,
		Alarm: pb.AlarmType_CORRUPT}})
	for i := range 300 {
		n.must(put(fmt.Sprintf("key-%03d", i%200), fmt.Sprintf("value-%06d", i)))
	}
	n.must(putLease("leased", "value-leased", 7))
	n.must(put("long", string(bytes.Repeat([]byte("value-"), 2000))))
	n.must(del("key-1", "key-11"))
	require.NoError(t, n.Sync())
	return n
}

// storedValues reads everything that can be read, without an error.
func storedValues(n *node) (out map[string]string, err error) {
	out = map[string]string{}
	for i := range 200 {
		key := fmt.Sprintf("key-%03d", i)
		r, err := n.Range(context.Background(), &pb.RangeRequest{Key: []byte(key)})
		if err != nil {
			return nil, err
		}
		for _, kv := range r.Kvs {
			out[key] = string(kv.Value)
		}
	}
	return out, nil
}

// flip changes a byte of a file.
func flip(t testing.TB, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	b := make([]byte, 1)
	_, err = f.ReadAt(b, at)
	require.NoError(t, err)
	b[0] ^= 1 << (at % 8)
	_, err = f.WriteAt(b, at)
	require.NoError(t, err)
}

// offsetsOf are where a database file has these bytes.
func offsetsOf(t testing.TB, path, what string) (out []int64) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	for from := 0; ; {
		i := bytes.Index(data[from:], []byte(what))
		if i < 0 {
			return out
		}
		out = append(out, int64(from+i))
		from += i + 1
	}
}

// TestFlippedByteIsFoundAtStart flips one byte after the other of a closed database. Opening
// it must find the damage, or the byte must not matter: then all is as it was.
func TestFlippedByteIsFoundAtStart(t *testing.T) {
	testsize.Long(t)
	n := varied(t, testOptions(t.TempDir()))
	want, dump := mustValues(t, n), n.dump()
	require.NoError(t, n.Close())
	good, err := os.ReadFile(n.opts.path())
	require.NoError(t, err)
	used := len(bytes.TrimRight(good, "\x00"))
	random := rand.New(rand.NewPCG(1, 2))
	found, harmless := 0, 0
	for range 600 {
		o := testOptions(t.TempDir())
		path := filepath.Join(o.Dir, "db")
		require.NoError(t, os.WriteFile(path, good, 0o600))
		at := random.Int64N(int64(used))
		flip(t, path, at)
		s, err := Open(o)
		if err != nil {
			found++
			var damaged *sums.DamageError
			require.ErrorAs(t, err, &damaged, "byte %d", at)
			require.ErrorContains(t, err, o.Dir)
			continue
		}
		m := &node{Store: s, t: t}
		require.Equal(t, want, mustValues(t, m), "byte %d", at)
		if m.Applied() == n.Applied() {
			require.Equal(t, dump, m.dump(), "byte %d", at)
		}
		harmless++
		require.NoError(t, m.Close())
	}
	t.Logf("%d found, %d of no consequence", found, harmless)
	require.Greater(t, found, 50)
}

func mustValues(t testing.TB, n *node) map[string]string {
	t.Helper()
	v, err := storedValues(n)
	require.NoError(t, err)
	return v
}

// TestFlippedValueIsFoundAtStart flips bytes of values, each of which used to be served.
func TestFlippedValueIsFoundAtStart(t *testing.T) {
	n := varied(t, testOptions(t.TempDir()))
	require.NoError(t, n.Close())
	good, err := os.ReadFile(n.opts.path())
	require.NoError(t, err)
	live := liveValues(t, n.opts.path())
	require.Greater(t, len(live), 100)
	for _, at := range live {
		o := testOptions(t.TempDir())
		path := filepath.Join(o.Dir, "db")
		require.NoError(t, os.WriteFile(path, good, 0o600))
		flip(t, path, at+int64(len("value-")))
		_, err := Open(o)
		var damaged *sums.DamageError
		require.ErrorAs(t, err, &damaged, "byte %d", at)
	}
}

// liveValues are where the values lie that a database shows: the file has old pages too.
func liveValues(t testing.TB, path string) (out []int64) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	meta, err := sums.NewestMeta(f)
	require.NoError(t, err)
	p := &sums.Pages{File: f, Meta: meta, Visited: make([]uint64, meta.Pages/64+1)}
	buckets, err := p.Buckets()
	require.NoError(t, err)
	for i := range buckets {
		require.NoError(t, p.Tree(&buckets[i], nil, func(_, _ []byte) error { return nil }))
	}
	for _, at := range offsetsOf(t, path, "value-0") {
		page := uint64(at) / uint64(meta.PageSize)
		if p.Visited[page/64]&(1<<(page%64)) != 0 {
			out = append(out, at)
		}
	}
	return out
}

// TestFlippedByteIsFoundWhileRunning flips bytes below a running store. Reads see right
// values or an error, and the scrub finds every flip that matters.
func TestFlippedByteIsFoundWhileRunning(t *testing.T) {
	testsize.Long(t)
	for round := range 40 {
		n := varied(t, testOptions(t.TempDir()))
		want := mustValues(t, n)
		live := liveValues(t, n.opts.path())
		flip(t, n.opts.path(), live[round*len(live)/40]+int64(len("value-")))
		if got, err := storedValues(n); err != nil {
			var damaged *sums.DamageError
			require.ErrorAs(t, err, &damaged)
		} else {
			require.Equal(t, want, got) // it was an old revision
			require.ErrorAs(t, n.scrubOnce(), new(*sums.DamageError))
		}
		within(t, n.Damage().Found())
		require.Error(t, n.Damage().Err())
		require.ErrorAs(t, n.Apply([]Command{{Position: n.next, Data: n.encode(put("a", "b"))}}), new(*sums.DamageError))
		_, err := n.Snapshot()
		require.ErrorAs(t, err, new(*sums.DamageError))
		_, err = n.HashKV(context.Background(), 0)
		require.ErrorAs(t, err, new(*sums.DamageError))
		n.Close()
	}
}

// TestScrubFindsFlips flips any byte below a running store: what matters is found.
func TestScrubFindsFlips(t *testing.T) {
	n := varied(t, testOptions(t.TempDir()))
	require.NoError(t, n.scrubOnce())
	require.NoError(t, n.Close())
	good, err := os.ReadFile(n.opts.path())
	require.NoError(t, err)
	live := liveValues(t, n.opts.path())
	pages := map[int64]bool{}
	for _, at := range live {
		pages[at/4096] = true
	}
	require.Greater(t, len(pages), 3)
	for page := range pages {
		for _, at := range []int64{0, 8, 10, 16, 20, 24, 28} { // head and first element
			o := testOptions(t.TempDir())
			require.NoError(t, os.WriteFile(filepath.Join(o.Dir, "db"), good, 0o600))
			m := open(t, o)
			flip(t, m.opts.path(), page*4096+at)
			require.ErrorAs(t, m.scrubOnce(), new(*sums.DamageError), "byte %d of page %d", at, page)
			within(t, m.Damage().Found())
			m.Close()
		}
	}
}

// TestScrubDuringWrites reads the database over and over while it is written, compacted and defragmented: it never
// reports that as damage.
func TestScrubDuringWrites(t *testing.T) {
	testsize.Long(t)
	o := testOptions(t.TempDir())
	o.BackendBatchInterval = time.Millisecond
	n := varied(t, o)
	done := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		for next, count := n.kv.Rev(), 0; ; count++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := n.scrubOnce(); err != nil && err != errDefragmenting {
				done <- err
				return
			}
			_ = next
		}
	}()
	for i := range 400 {
		n.must(put(fmt.Sprintf("key-%03d", i%50), fmt.Sprint(i)))
		n.must(grant(int64(100+i), 100))
		if i%20 == 19 {
			r := n.must(compact(n.Revision() - 5))
			require.NoError(t, n.FinishCompaction(t.Context(), r))
			n.must(revoke(int64(100 + i)))
		}
		if i%100 == 99 {
			require.NoError(t, n.Defragment(t.Context()))
		}
	}
	close(stop)
	require.NoError(t, within(t, done))
	require.NoError(t, n.Damage().Err())
	require.NoError(t, n.Close())
	open(t, o).Close()
}

// TestDamagedStoreIsRepaired opens a damaged database that may be repaired: it is empty and
// serves nothing, also after it was started again, until a snapshot is put in its place.
func TestDamagedStoreIsRepaired(t *testing.T) {
	n := varied(t, testOptions(t.TempDir()))
	want, snapshot := n.dump(), n.snapshot()
	o := testOptions(clone(t, n.opts.Dir))
	o.Repairable = true
	require.NoError(t, n.Close())
	flip(t, filepath.Join(o.Dir, "db"), liveValues(t, filepath.Join(o.Dir, "db"))[20]+8)
	for range 3 {
		m := open(t, o)
		require.ErrorAs(t, m.Damage().Err(), new(*sums.DamageError))
		within(t, m.Damage().Found())
		require.Zero(t, m.Applied())
		_, err := m.Range(t.Context(), &pb.RangeRequest{Key: []byte("long")})
		require.ErrorAs(t, err, new(*sums.DamageError))
		require.FileExists(t, filepath.Join(o.Dir, setAside))
		require.NoError(t, m.Close())
	}
	m := open(t, o)
	require.NoError(t, m.Restore(bytes.NewReader(snapshot)))
	require.NoError(t, m.Damage().Err())
	require.Equal(t, want, m.dump())
	require.NoFileExists(t, filepath.Join(o.Dir, setAside))
	require.NoError(t, m.Close())
	o.Repairable = false
	require.NoError(t, open(t, o).Close())
}

// TestDamageIsNotSpread neither sends nor keeps a snapshot of a damaged database.
func TestDamageIsNotSpread(t *testing.T) {
	n := varied(t, testOptions(t.TempDir()))
	forMember, err := n.Snapshot()
	require.NoError(t, err)
	forClient, err := n.SnapshotForClients(t.Context())
	require.NoError(t, err)
	flip(t, n.opts.path(), liveValues(t, n.opts.path())[30]+9)
	require.ErrorAs(t, forMember.WriteTo(t.Context(), io.Discard), new(*sums.DamageError))
	require.ErrorAs(t, forClient.WriteTo(t.Context(), io.Discard), new(*sums.DamageError))
	forMember.Close()
	forClient.Close()

	// As a member without checksums would send it: the digest is right.
	data := new(bytes.Buffer)
	other := varied(t, testOptions(t.TempDir()))
	view, err := other.Snapshot()
	require.NoError(t, err)
	flip(t, other.opts.path(), liveValues(t, other.opts.path())[30]+9)
	require.NoError(t, view.stream(t.Context(), data, view.header()))
	view.Close()
	m := openTemp(t)
	require.ErrorIs(t, m.Restore(data), ErrBadSnapshot)
	m.must(put("a", "b"))
}

// TestOldDatabaseGetsChecksums opens a database of a version that wrote none.
func TestOldDatabaseGetsChecksums(t *testing.T) {
	n := varied(t, testOptions(t.TempDir()))
	want := n.dump()
	require.NoError(t, n.Close())
	db, err := bolt.Open(n.opts.path(), 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error { return tx.Bucket(schema.Meta.Name()).Delete(sums.RecordKey) }))
	require.NoError(t, db.Close())
	m := open(t, n.opts)
	require.Equal(t, want, m.dump())
	require.NoError(t, m.Close())
	flip(t, n.opts.path(), liveValues(t, n.opts.path())[10]+8)
	_, err = Open(n.opts)
	require.ErrorAs(t, err, new(*sums.DamageError))
}

// scrubOnce reads the whole database and returns what is wrong with it.
func (n *node) scrubOnce() error {
	for next := (mvcc.Revision{}); ; {
		_, at, err := n.scrubPiece(next, scrubPiece)
		if err != nil || at == (mvcc.Revision{}) {
			return err
		}
		next = at
	}
}
