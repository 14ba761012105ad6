package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// holes makes a database that is mostly free.
func holes(t *testing.T, n *node) {
	t.Helper()
	for i := range 60 {
		n.must(put(fmt.Sprintf("key-%03d", i), string(make([]byte, 32<<10))))
	}
	n.must(del("key-020", "key-060"))
	require.NoError(t, n.FinishCompaction(t.Context(), n.must(compact(n.Revision()))))
	require.NoError(t, n.Sync())
}

// change applies commands of every kind that change the database, the same for each i.
func change(t *testing.T, n *node, i int) {
	t.Helper()
	n.must(put(fmt.Sprintf("key-%03d", i%60), fmt.Sprint(i)))
	n.must(put(fmt.Sprintf("new-%d", i), fmt.Sprint(i)))
	n.must(grant(int64(100+i), 100))
	n.must(putLease(fmt.Sprintf("leased-%d", i), "x", int64(100+i)))
	n.must(&pb.InternalRaftRequest{AuthUserAdd: &pb.AuthUserAddRequest{
		Name: fmt.Sprint("user", i), Options: &authpb.UserAddOptions{NoPassword: true}}})
	if i%5 == 4 {
		n.must(revoke(int64(100 + i)))
		n.must(del(fmt.Sprintf("new-%d", i-2), ""))
		n.must(&pb.InternalRaftRequest{AuthUserDelete: &pb.AuthUserDeleteRequest{Name: fmt.Sprint("user", i-1)}})
		require.NoError(t, n.FinishCompaction(t.Context(), n.must(compact(n.Revision()-10))))
	}
}

// equalStores requires the same database content in two stores.
func equalStores(t *testing.T, want, got *node) {
	t.Helper()
	require.Equal(t, want.dump(), got.dump())
	require.NoError(t, want.Sync())
	require.NoError(t, got.Sync())
	hash, revision, err := want.Hash()
	require.NoError(t, err)
	other, at, err := got.Hash()
	require.NoError(t, err)
	require.Equal(t, revision, at)
	require.Equal(t, hash, other)
	require.NoError(t, got.scrubOnce())
	require.NoError(t, got.Damage().Err())
}

// TestDefragmentBesideWrites applies the same commands to two stores, one that is defragmented again and again. They
// stay equal, also after that one was opened again.
func TestDefragmentBesideWrites(t *testing.T) {
	o := testOptions(t.TempDir())
	n, control := open(t, o), openTemp(t)
	holes(t, n)
	holes(t, control)
	before := n.DBSize()
	stop, readers := make(chan struct{}), sync.WaitGroup{}
	rounds := make(chan int, 1)
	go func() {
		i := 0
		defer func() { rounds <- i }()
		for ; ; i++ {
			select {
			case <-stop:
				return
			default:
				if err := n.Defragment(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	readers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if got := n.get("key-001"); len(got) == 0 {
				t.Error("a key is gone")
				return
			}
		}
	})
	for i := range 100 {
		change(t, n, i)
	}
	close(stop)
	require.Positive(t, <-rounds)
	readers.Wait()
	for i := range 100 {
		change(t, control, i)
	}
	require.NoError(t, n.Defragment(t.Context()))
	equalStores(t, control, n)
	require.Less(t, n.DBSize(), before)
	require.NoError(t, n.Close())
	again := open(t, o)
	equalStores(t, control, again)
	left, err := filepath.Glob(filepath.Join(o.Dir, "*tmp*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestCrashDuringDefragmentation opens what is on the disk between any two steps.
func TestCrashDuringDefragmentation(t *testing.T) {
	for _, alone := range []bool{false, true} {
		t.Run(fmt.Sprint(alone), func(t *testing.T) { crashes(t, alone) })
	}
}

func crashes(t *testing.T, alone bool) {
	o := testOptions(t.TempDir())
	n, control := open(t, o), openTemp(t)
	holes(t, n)
	holes(t, control)
	i := 0
	write := func() {
		if alone && i > 0 {
			return
		}
		change(t, n, i)
		change(t, control, i)
		require.NoError(t, n.Sync())
		i++
	}
	crash := func() error {
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(o.Dir)))
		copied := open(t, testOptions(dir))
		equalStores(t, control, copied)
		left, err := filepath.Glob(filepath.Join(copied.opts.Dir, "*tmp*"))
		require.NoError(t, err)
		require.Empty(t, left)
		return copied.Close()
	}
	write()
	r := rewriting{s: n.Store, db: n.database(), alone: alone, ctx: t.Context()}
	r.record(newChanges())
	for _, step := range []func() error{r.create, r.copy, r.follow, r.reopen, r.follow} {
		require.NoError(t, step())
		write()
		require.NoError(t, crash())
	}
	release := r.halt()
	old, err := r.db.movable.move(r.open, r.allocate, func() error {
		names, err := os.Open(o.Dir)
		require.NoError(t, err)
		defer names.Close()
		return errors.Join(crash(), r.install(names), crash())
	})
	release()
	require.NoError(t, err)
	require.NoError(t, old.close())
	r.open, r.name = nil, ""
	require.NoError(t, r.end())
	r.db.guarded.Reopened(r.read)
	write()
	require.NoError(t, crash())
	equalStores(t, control, n)
}

// TestDefragmentationThatFails leaves the old database, which continues.
func TestDefragmentationThatFails(t *testing.T) {
	n, control := openTemp(t), openTemp(t)
	holes(t, n)
	holes(t, control)
	failed := errors.New("no new name")
	r := rewriting{s: n.Store, db: n.database(), ctx: t.Context()}
	r.record(newChanges())
	require.NoError(t, firstOf(r.create, r.copy, r.follow, r.reopen))
	release := r.halt()
	_, err := r.db.movable.move(r.open, r.allocate, func() error { return failed })
	release()
	require.ErrorIs(t, err, failed)
	require.NoError(t, r.end())
	change(t, n, 0)
	change(t, control, 0)
	equalStores(t, control, n)

	overtaken := rewriting{s: n.Store, db: n.database(), ctx: t.Context()}
	overtaken.record(newChanges())
	require.NoError(t, firstOf(overtaken.create, overtaken.copy))
	overtaken.db.movable.batch.changes.forget()
	require.ErrorIs(t, overtaken.follow(), errOvertaken)
	require.NoError(t, overtaken.end())

	require.NoError(t, n.rewrite(t.Context(), true))
	change(t, n, 1)
	change(t, control, 1)
	equalStores(t, control, n)
}

// TestChangesAreBounded in bytes.
func TestChangesAreBounded(t *testing.T) {
	c, key := newChanges(), make([]byte, 1<<20)
	for i := range changesBytes >> 20 {
		key[0] = byte(i)
		c.add(refsBucket, key)
		c.add(refsBucket, key)
	}
	require.True(t, c.lost)
	require.Zero(t, c.bytes)
	c.add(refsBucket, key)
	require.Empty(t, c.keys)
}

// TestNewFileIsRemoved: another process that starts on the directory removes nothing. A new file that is removed
// nevertheless is not replaced by an empty one.
func TestNewFileIsRemoved(t *testing.T) {
	n, control := openTemp(t), openTemp(t)
	holes(t, n)
	holes(t, control)
	r := rewriting{s: n.Store, db: n.database(), ctx: t.Context()}
	r.record(newChanges())
	require.NoError(t, firstOf(r.create, r.copy, r.follow))
	_, err := Open(testOptions(n.opts.Dir))
	require.ErrorContains(t, err, "in use")
	require.FileExists(t, r.name)
	require.NoError(t, os.Remove(r.name))
	require.ErrorContains(t, r.reopen(), "removed")
	require.NoError(t, r.end())
	change(t, n, 0)
	change(t, control, 0)
	equalStores(t, control, n)
}

// TestDefragmentationEndsWithTheStore: it does not wait for locks that a store that failed never releases.
func TestDefragmentationEndsWithTheStore(t *testing.T) {
	n := openTemp(t)
	r := rewriting{s: n.Store, db: n.database(), ctx: t.Context()}
	r.record(newChanges())
	require.NoError(t, r.create())
	n.latch.fail(&FatalError{Dir: n.opts.Dir, Op: "commit"})
	r.db.movable.batch.mu.Lock()
	ended := make(chan error, 1)
	go func() { ended <- r.end() }()
	require.NoError(t, within(t, ended))
}

// TestDefragmentIsNotHeldUpByALock that something holds forever, because the store failed while it had it.
func TestDefragmentIsNotHeldUpByALock(t *testing.T) {
	n := openTemp(t)
	holes(t, n)
	n.database().movable.batch.mu.Lock()
	ended := make(chan error, 1)
	go func() { ended <- n.Defragment(t.Context()) }()
	failed := &FatalError{Dir: n.opts.Dir, Op: "commit"}
	n.latch.fail(failed)
	require.ErrorIs(t, within(t, ended), failed)
	require.ErrorIs(t, n.Defragment(t.Context()), failed)
}

// TestDefragmentAfterClose, or while another one is in progress, ends.
func TestDefragmentAfterClose(t *testing.T) {
	n := open(t, testOptions(t.TempDir()))
	require.NoError(t, n.rewriting.Acquire(t.Context(), 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := n.Defragment(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "another defragmentation")
	n.rewriting.Release(1)
	require.NoError(t, n.Close())
	require.ErrorIs(t, n.Defragment(t.Context()), ErrClosed)
}

// TestDefragmentSaysThatItWaitedForSnapshots when it waited as long as it may.
func TestDefragmentSaysThatItWaitedForSnapshots(t *testing.T) {
	n := openTemp(t)
	snapshot, err := n.Snapshot()
	require.NoError(t, err)
	defer snapshot.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = n.frozen.exclude(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "snapshots")
}

// TestHashesWaitForTheExchange, which does not wait for one that holds up everything else then.
func TestHashesWaitForTheExchange(t *testing.T) {
	n := openTemp(t)
	require.NoError(t, n.frozen.exclude(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := n.HashKV(ctx, 0)
	require.ErrorIs(t, err, context.Canceled)
	n.frozen.admit()
	_, err = n.HashKV(ctx, 0)
	require.NoError(t, err)
	require.NoError(t, n.Defragment(t.Context()))
}
