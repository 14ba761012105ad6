package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/braidlog/braid/internal/store/filespace"
	"github.com/braidlog/braid/internal/sys"
)

// takeDescriptors leaves this process few descriptors until give is called.
func takeDescriptors(t *testing.T, left int) (give func()) {
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	limit := was
	limit.Cur = 200
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	var taken []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			require.True(t, sys.NoDescriptor(err), "%v", err)
			break
		}
		taken = append(taken, f)
	}
	for _, f := range taken[:left] {
		f.Close()
	}
	give = func() {
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was))
		for _, f := range taken {
			f.Close()
		}
	}
	t.Cleanup(give)
	return give
}

// TestApplyWithoutDescriptors waits where it cannot find out whether the disk has space, and finds out
// afterwards: the protection against full disks stays on.
func TestApplyWithoutDescriptors(t *testing.T) {
	n := open(t, testOptions(t.TempDir()))
	defer n.Close()
	n.database().space.Moved() // nothing is allocated
	give := takeDescriptors(t, 0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.must(put("key", "value"))
	}()
	select {
	case <-done:
		require.Fail(t, "it is applied although nobody knows whether there is space")
	case <-time.After(2 * spacePause):
	}
	give()
	within(t, done)
	require.Equal(t, "value", n.get("key"))
	require.Less(t, n.database().space.Allocated, int64(1<<40), "it is still found out")
	require.NoError(t, n.Err())
}

// TestRestoreWithoutDescriptors uses up the descriptors in the middle of a snapshot, all or all but a few: Restore
// waits where one is missing, and restores the snapshot once there are some.
func TestRestoreWithoutDescriptors(t *testing.T) {
	from := open(t, testOptions(t.TempDir()))
	defer from.Close()
	from.must(put("key", "value"))
	snapshot := from.snapshot()
	o := testOptions(filepath.Join(t.TempDir(), "store"))
	o.OnFatal = func(err error) { t.Errorf("fatal: %v", err) }
	n := open(t, o)
	defer n.Close()
	waited := 0
	for _, at := range []int{-1, 0, len(snapshot) - 10} {
		for left := range 3 {
			n.closing.Wait() // the database before the last one has closed its file
			give := make(chan func(), 1)
			r := &reader{Reader: bytes.NewReader(snapshot), at: at, do: func() { give <- takeDescriptors(t, left) }}
			if at < 0 {
				r.do()
				r.do = nil
			}
			done := make(chan error, 1)
			go func() { done <- n.Restore(r) }()
			select {
			case err := <-done:
				done <- err
			case <-time.After(spacePause):
				waited++
			}
			within(t, give)()
			require.NoError(t, within(t, done), "%d left, taken before byte %d", left, at)
			require.Equal(t, "value", n.get("key"))
		}
	}
	require.GreaterOrEqual(t, waited, 4, "it waits for the file, its space, and twice for the database")
	require.NoError(t, n.Err())
}

// reader does something before the byte at a place is read.
type reader struct {
	*bytes.Reader
	at int
	do func()
}

func (r *reader) Read(b []byte) (int, error) {
	if r.do != nil {
		if left := r.at - int(r.Size()-int64(r.Len())); left > 0 {
			b = b[:min(len(b), left)]
		} else {
			r.do()
			r.do = nil
		}
	}
	return r.Reader.Read(b)
}

// TestASignalDoesNotEndTheProtection: fallocate that a signal interrupts is called again.
func TestASignalDoesNotEndTheProtection(t *testing.T) {
	calls := 0
	filespace.Fallocate = func(fd int, mode uint32, offset, size int64) error {
		if calls++; calls%3 != 0 {
			return syscall.EINTR
		}
		return unix.Fallocate(fd, mode, offset, size)
	}
	defer func() { filespace.Fallocate = unix.Fallocate }()
	n := open(t, testOptions(t.TempDir()))
	defer n.Close()
	for i := range 3 {
		n.must(put(fmt.Sprint("key", i), "value"))
	}
	require.GreaterOrEqual(t, calls, 3)
	require.Less(t, n.database().space.Allocated, int64(1<<40))
}

// TestDefragmentWithoutDescriptors: once the new file is in place, nothing is opened that may fail.
func TestDefragmentWithoutDescriptors(t *testing.T) {
	n, control := openTemp(t), openTemp(t)
	holes(t, n)
	holes(t, control)
	r := rewriting{s: n.Store, db: n.database(), ctx: t.Context()}
	r.record(newChanges())
	require.NoError(t, firstOf(r.create, r.copy, r.follow, r.reopen))
	give := takeDescriptors(t, 1)
	n.Interrupt()
	release := r.halt()
	err := r.exchange()
	release()
	give()
	require.NoError(t, err)
	require.NoError(t, r.end())
	change(t, n, 0)
	change(t, control, 0)
	equalStores(t, control, n)
}

// breakWrites makes this process's writes to a file fail that it opened for reading and writing.
func breakWrites(t *testing.T, name string) {
	t.Helper()
	broken := 0
	all, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, e := range all {
		fd, err := strconv.Atoi(e.Name())
		require.NoError(t, err)
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || target != name {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		require.NoError(t, err)
		if flags&unix.O_ACCMODE != unix.O_RDWR {
			continue
		}
		null, err := os.Open(os.DevNull)
		require.NoError(t, err)
		require.NoError(t, unix.Dup3(int(null.Fd()), fd, unix.O_CLOEXEC))
		require.NoError(t, null.Close())
		broken++
	}
	require.Positive(t, broken)
}

// TestNewFileFails: if the new file cannot be written, it is the defragmentation that ends, and neither the store nor
// what writes to it meanwhile. Once it is the database's, it is the store.
func TestNewFileFails(t *testing.T) {
	n, control := openTemp(t), openTemp(t)
	holes(t, n)
	holes(t, control)
	for i, fails := range []func(*rewriting) error{
		func(r *rewriting) error { // in a write of its own
			n.must(put("more", string(make([]byte, 1<<20))))
			control.must(put("more", string(make([]byte, 1<<20))))
			if err := r.follow(); err != nil {
				return err
			}
			<-r.own.failed // at the next commit
			return r.write(&passage{})
		},
		func(r *rewriting) error { // in the exchange
			defer r.halt()()
			return r.exchange()
		},
	} {
		r := rewriting{s: n.Store, db: n.database(), ctx: t.Context()}
		r.record(newChanges())
		require.NoError(t, firstOf(r.create, r.copy, r.follow, r.reopen))
		breakWrites(t, r.name)
		require.ErrorAs(t, fails(&r), new(*FatalError))
		require.NoError(t, r.end())
		require.NoFileExists(t, r.name)
		require.NoError(t, n.Err())
		change(t, n, i)
		change(t, control, i)
		equalStores(t, control, n)
	}
	require.NoError(t, n.Defragment(t.Context()))
	change(t, n, 2)
	change(t, control, 2)
	equalStores(t, control, n)
	breakWrites(t, n.opts.path())
	n.raw(n.encode(put("last", "v")))
	require.ErrorAs(t, n.Sync(), new(*FatalError))
	require.ErrorAs(t, n.Err(), new(*FatalError))
}
