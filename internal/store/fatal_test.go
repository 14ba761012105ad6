package store

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	bolt "go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/membershippb"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/braidlog/braid/internal/store/sums"
)

// TestPanicIsFatal applies a command that etcd's code cannot continue after: a cluster version
// that only newer software has. Nothing is answered from then on.
func TestPanicIsFatal(t *testing.T) {
	told := make(chan error, 1)
	o := testOptions(t.TempDir())
	o.OnFatal = func(err error) { told <- err }
	n := open(t, o)
	n.must(put("a", "1"))
	data := n.encode(&pb.InternalRaftRequest{ClusterVersionSet: &membershippb.ClusterVersionSetRequest{Ver: "99.0.0"}})
	commands := []Command{{Position: 2, Data: data}, {Position: 3, Data: n.encode(put("a", "2"))}}
	err := n.Apply(commands)
	var fatal *FatalError
	require.ErrorAs(t, err, &fatal)
	require.ErrorContains(t, err, o.Dir)
	require.ErrorContains(t, err, "invalid downgrade")
	require.Equal(t, err, within(t, told))
	require.Nil(t, commands[0].Result)
	require.Nil(t, commands[1].Result)

	within(t, n.Failed())
	require.Equal(t, err, n.Err())
	require.Equal(t, err, n.Apply(commands))
	require.Equal(t, err, n.Sync())
	_, rangeErr := n.Range(context.Background(), &pb.RangeRequest{Key: []byte("a")})
	require.Equal(t, err, rangeErr)
	_, snapErr := n.Snapshot()
	require.Equal(t, err, snapErr)
	require.NoError(t, n.Close())
}

// fullDisk is what the child of TestFullDisk reports.
type fullDisk struct {
	Synced int    // puts before the last Sync that succeeded
	Err    string // what OnFatal got
}

// TestFullDisk runs a process whose files must not grow: the store reports that and stops, and what was durable is
// there when it starts again with more space.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv("STORE_FULL_DISK"); dir != "" {
		childOfFullDisk(t, dir)
		return
	}
	for _, where := range []string{"sync", "background"} {
		t.Run(where, func(t *testing.T) {
			dir := t.TempDir()
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestFullDisk$", "-test.count=1")
			child.Env = append(os.Environ(), "STORE_FULL_DISK="+dir, "STORE_FULL_DISK_WHERE="+where)
			out, err := child.CombinedOutput()
			require.NoError(t, err, "%s", out)
			data, err := os.ReadFile(filepath.Join(dir, "report"))
			require.NoError(t, err)
			var report fullDisk
			require.NoError(t, json.Unmarshal(data, &report))
			require.Contains(t, report.Err, dir)
			require.Contains(t, report.Err, "file too large")

			n := open(t, testOptions(filepath.Join(dir, "store")))
			defer n.Close()
			require.GreaterOrEqual(t, n.Applied(), uint64(report.Synced))
			for i := range report.Synced {
				require.Equal(t, "value", n.get(fmt.Sprintf("key-%d", i))[:5])
			}
		})
	}
}

func childOfFullDisk(t *testing.T, dir string) {
	const limit = 20 << 20 // the file grows by 16 MiB at a time
	signal.Ignore(syscall.SIGXFSZ)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: limit}))
	told := make(chan error, 1)
	o := testOptions(filepath.Join(dir, "store"))
	o.NoSync = false
	o.BackendBatchInterval = time.Millisecond
	o.OnFatal = func(err error) { told <- err }
	if os.Getenv("STORE_FULL_DISK_WHERE") == "sync" {
		o.BackendBatchInterval = time.Hour
	}
	n := open(t, o)
	var report fullDisk
	go func() { // in background mode the apply loop may be the one that gets stuck
		value := "value" + string(make([]byte, 1<<19))
		for i := 0; n.Err() == nil; i++ {
			c := []Command{{Position: uint64(i + 1), Data: n.encode(put(fmt.Sprintf("key-%d", i), value))}}
			if n.Apply(c) != nil || n.Sync() != nil {
				return
			}
			report.Synced = i + 1
		}
	}()
	report.Err = within(t, told).Error()
	data, err := json.Marshal(report)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "report"), data, 0o600))
}

func TestOpenErrors(t *testing.T) {
	for name, o := range map[string]Options{
		"no dir":  {ClusterID: 1, MemberID: 1},
		"no id":   {Dir: t.TempDir(), ClusterID: 1},
		"bcrypt":  {Dir: t.TempDir(), ClusterID: 1, MemberID: 1, BcryptCost: 99},
		"token":   {Dir: t.TempDir(), ClusterID: 1, MemberID: 1, AuthToken: "nonsense"},
		"a file":  {Dir: os.Args[0], ClusterID: 1, MemberID: 1},
		"garbage": {Dir: garbage(t), ClusterID: 1, MemberID: 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(o)
			require.ErrorContains(t, err, "store: ")
		})
	}
}

func garbage(t *testing.T) string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "db"), make([]byte, 1<<16), 0o600))
	return dir
}

// TestNewerDatabase opens a database that newer software wrote.
func TestNewerDatabase(t *testing.T) {
	o := testOptions(t.TempDir())
	require.NoError(t, open(t, o).Close())
	db, err := bolt.Open(filepath.Join(o.Dir, "db"), 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		meta := tx.Bucket(schema.Meta.Name())
		if err := meta.Delete(sums.RecordKey); err != nil { // it does not know of checksums
			return err
		}
		return meta.Put(schema.MetaStorageVersionName, []byte("3.99.0"))
	}))
	require.NoError(t, db.Close())
	_, err = Open(o)
	require.ErrorContains(t, err, "3.99.0")
}

func TestOpenTwice(t *testing.T) {
	t.Parallel() // it waits for a clock
	n := openTemp(t)
	_, err := Open(n.opts)
	require.ErrorContains(t, err, "in use by another process")
	n.must(put("a", "1"))
}

func TestOpenRemovesLeftovers(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "db.restore.123")
	require.NoError(t, os.WriteFile(left, []byte("x"), 0o600))
	n := open(t, testOptions(dir))
	require.NoFileExists(t, left)
	require.NoError(t, n.Close())
	require.ErrorIs(t, n.Apply([]Command{{Position: 1}}), ErrClosed)
}

func TestVersions(t *testing.T) {
	n := openTemp(t)
	require.Equal(t, "3.7", n.ClusterVersion())
	require.Equal(t, "3.7.0", n.StorageVersion())
	require.Positive(t, n.DBSize())
	require.EqualValues(t, 2<<30, n.QuotaBytes())
}
