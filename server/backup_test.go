package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid/internal/store"
)

// backedUp adds a backup of the member to a directory.
func (f *fixture) backedUp(t *testing.T, o BackupOptions) BackupMade {
	t.Helper()
	made, err := Backup(testContext(t), f.client.ActiveConnection(), o)
	require.NoError(t, err)
	return made
}

// restoredFrom opens the store that is restored from a directory.
func restoredFrom(t *testing.T, from string, o RestoreOptions) *store.Store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	_, err := RestoreBackup(from, dir, o)
	require.NoError(t, err)
	s, err := store.Open(store.Options{Dir: dir, ClusterID: 1, MemberID: 1, NoSync: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// puts writes keys with values of a size.
func (f *fixture) puts(t *testing.T, n, size int) {
	t.Helper()
	for k := range n {
		_, err := f.client.Put(testContext(t), fmt.Sprint("k", k), strings.Repeat("v", size))
		require.NoError(t, err)
	}
}

// TestBackup makes a whole backup and increments, and restores each of them.
func TestBackup(t *testing.T) {
	f, ctx := start(t), testContext(t)
	o := BackupOptions{Dir: filepath.Join(t.TempDir(), "new", "backups")}
	f.puts(t, 20, 10)
	first := f.backedUp(t, o)
	require.Equal(t, "it is the first", first.Full)
	require.Equal(t, f.store.Revision(), first.Backup.Now.Revision)
	hashes := map[int64]store.HashKV{}
	note := func() {
		h, err := f.store.HashKV(ctx, 0)
		require.NoError(t, err)
		hashes[f.store.Revision()] = h
	}
	note()
	_, err := f.client.Delete(ctx, "k1")
	require.NoError(t, err)
	lease, err := f.client.Grant(ctx, 1000)
	require.NoError(t, err)
	_, err = f.client.Put(ctx, "leased", "x", clientv3.WithLease(lease.ID))
	require.NoError(t, err)
	note()
	second := f.backedUp(t, o)
	require.Empty(t, second.Full)
	require.Zero(t, second.Trimmed)
	require.Equal(t, first.Backup.Now, *second.Backup.Since)
	eventually(t, "the member to be idle", func() bool { return f.backedUp(t, o).Unchanged })
	f.puts(t, 5, 1<<20) // large values
	_, err = f.client.Compact(ctx, f.store.Revision()-1, clientv3.WithCompactPhysical())
	require.NoError(t, err)
	f.puts(t, 1, 3)
	note()
	third := f.backedUp(t, o)
	require.Equal(t, f.store.CompactRevision(), third.Trimmed)

	all, err := CheckBackups(ctx, o.Dir)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all), 3)
	for _, b := range all {
		require.Empty(t, b.Problem)
		s := restoredFrom(t, o.Dir, RestoreOptions{Revision: b.Now.Revision, MayGoBack: true})
		require.Equal(t, b.Now.Revision, s.Revision())
		if b.Number < third.Backup.Number {
			h, err := s.HashKV(ctx, 0)
			require.NoError(t, err)
			require.Equal(t, hashes[b.Now.Revision], h)
		}
	}
	s := restoredFrom(t, o.Dir, RestoreOptions{})
	require.Equal(t, f.store.Revision()+RestoreBump, s.Revision(), "the revision does not go back")
	got, err := s.Range(ctx, &pb.RangeRequest{Key: []byte("k4")})
	require.NoError(t, err)
	require.Len(t, got.Kvs[0].Value, 1<<20)
	_, err = RestoreBackup(o.Dir, t.TempDir(), RestoreOptions{Revision: 1})
	require.ErrorContains(t, err, "has no backup of revision 1, but those of")
}

// TestBackupsAreRemoved: some whole backups stay, with their increments.
func TestBackupsAreRemoved(t *testing.T) {
	f := start(t)
	o := BackupOptions{Dir: t.TempDir(), Increments: 1, Keep: 2}
	for n := range 8 {
		f.puts(t, 1, n+1)
		f.backedUp(t, o)
	}
	all, err := Backups(o.Dir)
	require.NoError(t, err)
	var kinds []string
	for _, b := range all {
		kinds = append(kinds, fmt.Sprint(b.Number, b.Kind))
	}
	require.Equal(t, []string{"5full", "6increment", "7full", "8increment"}, kinds)
	o.Full = true
	f.puts(t, 1, 9)
	made := f.backedUp(t, o)
	require.Equal(t, "it was asked for", made.Full)
	require.Len(t, made.Removed, 2)
	require.Equal(t, 6, made.Removed[0].Number, "increments are removed first")
}

// TestBackupNeedsAnAdministrator while authentication is on.
func TestBackupNeedsAnAdministrator(t *testing.T) {
	f, ctx := start(t), testContext(t)
	o := BackupOptions{Dir: t.TempDir()}
	f.puts(t, 1, 1)
	f.backedUp(t, o)
	f.enableAuth(t, ctx)
	login := func(name, password string) context.Context {
		r, err := f.client.Authenticate(ctx, name, password)
		require.NoError(t, err)
		return withLogin(ctx, r.Token)
	}
	conn := f.client.ActiveConnection()
	_, err := Backup(ctx, conn, o)
	require.ErrorContains(t, err, rpctypes.ErrorDesc(rpctypes.ErrGRPCUserEmpty))
	_, err = Backup(login("reader", "book"), conn, o)
	require.ErrorContains(t, err, rpctypes.ErrorDesc(rpctypes.ErrGRPCPermissionDenied))
	made, err := Backup(login("root", "secret"), conn, o)
	require.NoError(t, err)
	require.Empty(t, made.Full)
	s := restoredFrom(t, o.Dir, RestoreOptions{})
	require.True(t, s.Auth().IsAuthEnabled())
}

// TestBackupOfAnotherCluster is refused, also if the other one has the same id.
func TestBackupOfAnotherCluster(t *testing.T) {
	f, same := start(t), start(t)
	other := start(t, func(c *Config) { c.Node.Cluster = 0x78 })
	o := BackupOptions{Dir: t.TempDir()}
	f.puts(t, 3, 3)
	f.backedUp(t, o)
	_, err := Backup(testContext(t), other.client.ActiveConnection(), o)
	require.ErrorIs(t, err, ErrOtherCluster)
	require.ErrorContains(t, err, "has those of cluster 77, and the endpoint is of cluster 78")
	_, err = Backup(testContext(t), same.client.ActiveConnection(), o)
	require.Equal(t, codes.Unavailable, status.Code(err), "it is behind: %v", err)
	full := o
	full.Full = true
	_, err = Backup(testContext(t), same.client.ActiveConnection(), full)
	require.Equal(t, codes.Unavailable, status.Code(err), "it is behind: %v", err)
	same.puts(t, 9, 4)
	_, err = Backup(testContext(t), same.client.ActiveConnection(), o)
	require.Equal(t, codes.FailedPrecondition, status.Code(err), "%v", err)
	require.ErrorContains(t, err, "the backup is of another cluster")
	all, err := CheckBackups(testContext(t), o.Dir)
	require.NoError(t, err)
	require.Len(t, all, 1)
}

// TestBackupsOfOneDirectoryAtOnce: the second one is refused, and the first one is completed.
func TestBackupsOfOneDirectoryAtOnce(t *testing.T) {
	f := start(t)
	f.puts(t, 1, 1)
	o := BackupOptions{Dir: t.TempDir()}
	conn := &changedConn{f.client.ActiveConnection(), func(_ string, s grpc.ClientStream) (grpc.ClientStream, error) {
		_, err := Backup(testContext(t), f.client.ActiveConnection(), o)
		require.ErrorContains(t, err, "is in use by another backup")
		return s, nil
	}}
	_, err := Backup(testContext(t), conn, o)
	require.NoError(t, err)
}

// changedConn is a connection whose streams are changed.
type changedConn struct {
	grpc.ClientConnInterface
	change func(method string, s grpc.ClientStream) (grpc.ClientStream, error)
}

// NewStream implements grpc.ClientConnInterface.
func (c *changedConn) NewStream(ctx context.Context, d *grpc.StreamDesc, method string, o ...grpc.CallOption,
) (grpc.ClientStream, error) {
	s, err := c.ClientConnInterface.NewStream(ctx, d, method, o...)
	if err != nil {
		return nil, err
	}
	return c.change(method, s)
}

// changedStream calls change with each message that is received, and its number.
type changedStream struct {
	grpc.ClientStream
	n      int
	change func(n int, piece []byte) error
}

// RecvMsg implements grpc.ClientStream.
func (s *changedStream) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	s.n++
	switch m := m.(type) {
	case *pb.SnapshotResponse:
		return s.change(s.n, m.Blob)
	case *wrapperspb.BytesValue:
		return s.change(s.n, m.Value)
	}
	return nil
}

// TestBackupOfAServerWithoutIncrements is a whole one each time.
func TestBackupOfAServerWithoutIncrements(t *testing.T) {
	f := start(t)
	conn := &changedConn{f.client.ActiveConnection(), func(method string, s grpc.ClientStream,
	) (grpc.ClientStream, error) {
		if strings.Contains(method, adminService) {
			return nil, status.Error(codes.Unimplemented, "unknown service braid.Admin")
		}
		return s, nil
	}}
	o := BackupOptions{Dir: t.TempDir()}
	for n := range 2 {
		f.puts(t, 1, 1)
		made, err := Backup(testContext(t), conn, o)
		require.NoError(t, err)
		require.Equal(t, []string{"it is the first", "the server makes no increments"}[n], made.Full)
	}
}

// TestBackupThatIsNotCompleted leaves the directory as it was: the stream ends, ends too early, or has other bytes.
func TestBackupThatIsNotCompleted(t *testing.T) {
	f := start(t)
	for k := range 6 { // each larger than a message
		_, err := f.client.Put(testContext(t), fmt.Sprint("k", k), strings.Repeat("v", 100_000))
		require.NoError(t, err)
	}
	o := BackupOptions{Dir: t.TempDir()}
	f.backedUp(t, o)
	f.puts(t, 3, 100_000)
	for _, full := range []bool{false, true} {
		for name, change := range map[string]func(n int, piece []byte) error{
			"ends":  func(n int, _ []byte) error { return onSecond(n, errors.New("cut")) },
			"early": func(n int, _ []byte) error { return onSecond(n, io.EOF) },
			"flipped": func(n int, piece []byte) error {
				piece[len(piece)/2] ^= 4
				return nil
			},
		} {
			conn := &changedConn{f.client.ActiveConnection(), func(_ string, s grpc.ClientStream,
			) (grpc.ClientStream, error) {
				return &changedStream{ClientStream: s, change: change}, nil
			}}
			o := o
			o.Full = full
			_, err := Backup(testContext(t), conn, o)
			require.Error(t, err, name)
			if name != "ends" {
				require.ErrorContains(t, err, "the backup is not complete", name)
			}
			all, err := CheckBackups(testContext(t), o.Dir)
			require.NoError(t, err)
			require.Len(t, all, 1, name)
			left, err := filepath.Glob(filepath.Join(o.Dir, "part-*"))
			require.NoError(t, err)
			require.Empty(t, left)
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(o.Dir, "part-1"), []byte("of a process that was killed"), 0o600))
	f.backedUp(t, o)
	require.NoFileExists(t, filepath.Join(o.Dir, "part-1"))
	restoredFrom(t, o.Dir, RestoreOptions{})
}

func onSecond(n int, err error) error {
	if n == 2 {
		return err
	}
	return nil
}

// TestDamagedBackups changes bytes of each file: no backup that needs it is restored, earlier ones are, and the next
// backup is a whole one.
func TestDamagedBackups(t *testing.T) {
	f := start(t)
	o := BackupOptions{Dir: t.TempDir()}
	for n := range 3 {
		f.puts(t, 4, 1000+n)
		f.backedUp(t, o)
	}
	all, err := Backups(o.Dir)
	require.NoError(t, err)
	for n := range all {
		path := all[n].Path(o.Dir)
		good, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, at := range []int{0, 20, 100, len(good) / 2, len(good) - 50, len(good) - 20, len(good) - 1} {
			bad := bytes.Clone(good)
			bad[at] ^= 0x20
			require.NoError(t, os.WriteFile(path, bad, 0o600))
			checked, err := CheckBackups(testContext(t), o.Dir)
			require.NoError(t, err)
			for k := range checked {
				require.Equal(t, k >= n, checked[k].Problem != "", "file %d byte %d: backup %d: %s", n, at, k,
					checked[k].Problem)
			}
			dir := filepath.Join(t.TempDir(), "store")
			_, err = RestoreBackup(o.Dir, dir, RestoreOptions{})
			require.ErrorContains(t, err, all[n].File, "file %d byte %d", n, at)
			require.NoFileExists(t, filepath.Join(dir, "db"))
			if n > 0 {
				restoredFrom(t, o.Dir, RestoreOptions{Revision: all[n-1].Now.Revision})
			}
		}
		for _, length := range []int{0, 100, len(good) / 2, len(good) - 1} {
			require.NoError(t, os.WriteFile(path, good[:length], 0o600))
			listed, err := Backups(o.Dir)
			require.NoError(t, err)
			require.NotEmpty(t, listed[n].Problem, "file %d length %d", n, length)
		}
		require.NoError(t, os.WriteFile(path, good, 0o600))
	}
	require.NoError(t, os.Rename(all[1].Path(o.Dir), all[1].Path(o.Dir)+".away"))
	listed, err := Backups(o.Dir)
	require.NoError(t, err)
	require.Contains(t, listed[1].Problem, "continues number 2, which is missing")
	f.puts(t, 1, 1)
	made := f.backedUp(t, o)
	require.Contains(t, made.Full, "the one before is of no use")
	restoredFrom(t, o.Dir, RestoreOptions{})
}

// TestBackupsOfTheSameRevision: a damaged backup does not hide an earlier one of the same revision.
func TestBackupsOfTheSameRevision(t *testing.T) {
	f, ctx := start(t), testContext(t)
	o := BackupOptions{Dir: t.TempDir()}
	f.puts(t, 4, 1000)
	first := f.backedUp(t, o)
	_, err := f.client.Grant(ctx, 1000)
	require.NoError(t, err)
	second := f.backedUp(t, o)
	require.Equal(t, first.Backup.Now.Revision, second.Backup.Now.Revision)
	path := second.Backup.Path(o.Dir)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	at := bytes.LastIndex(good, []byte(`"others"`)) // of the header, which stays readable
	require.Positive(t, at)
	for _, bad := range [][]byte{good[:len(good)-1], append(bytes.Clone(good[:at-300]), good[at-299:]...),
		append(append(bytes.Clone(good[:60]), good[60]^1), good[61:]...)} {
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		restoredFrom(t, o.Dir, RestoreOptions{Revision: first.Backup.Now.Revision})
	}
}

// TestBackupsInADirectoryWithAnyName: parts that processes left are removed there, too.
func TestBackupsInADirectoryWithAnyName(t *testing.T) {
	f := start(t)
	o := BackupOptions{Dir: filepath.Join(t.TempDir(), "of [a]? *")}
	f.puts(t, 1, 1)
	f.backedUp(t, o)
	left := filepath.Join(o.Dir, "part-1")
	require.NoError(t, os.WriteFile(left, []byte("of a process that was killed"), 0o600))
	f.puts(t, 1, 1)
	f.backedUp(t, o)
	require.NoFileExists(t, left)
}

// TestBackupAfterDamageAnywhereIsWhole: the next backup after damage is a whole one, wherever the damage is.
func TestBackupAfterDamageAnywhereIsWhole(t *testing.T) {
	f := start(t)
	for _, newest := range []bool{true, false} {
		o := BackupOptions{Dir: t.TempDir()}
		f.puts(t, 200, 1000)
		made := f.backedUp(t, o)
		path := made.Backup.Path(o.Dir)
		good, err := os.ReadFile(path)
		require.NoError(t, err)
		at := bytes.LastIndex(good, []byte("vvvvvvvvvv"))
		if !newest {
			at = bytes.Index(good, []byte("vvvvvvvvvv"))
		}
		good[at] ^= 1
		require.NoError(t, os.WriteFile(path, good, 0o600))
		f.puts(t, 1, 1)
		require.Contains(t, f.backedUp(t, o).Full, "the one before is of no use")
		restoredFrom(t, o.Dir, RestoreOptions{})
	}
}
