package wal

import (
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/sys"
	"github.com/braidlog/braid/internal/vfs"
)

// scarceFS is a file system for a process that may have no descriptors left, and whose calls may be interrupted by
// signals.
type scarceFS struct {
	vfs.FS
	out         atomic.Pointer[syscall.Errno] // the error of opening a file; nil: it succeeds
	refused     atomic.Int32
	interrupted atomic.Int32 // calls that a signal interrupts before one is not
}

func newScarce() *scarceFS { return &scarceFS{FS: vfs.NewMem()} }

func (s *scarceFS) open(op, name string, open func() (vfs.File, error)) (vfs.File, error) {
	if no := s.out.Load(); no != nil {
		s.refused.Add(1)
		return nil, &os.PathError{Op: op, Path: name, Err: *no}
	}
	f, err := open()
	if err != nil {
		return nil, err
	}
	return &scarceFile{f, s}, nil
}

func (s *scarceFS) Create(name string) (vfs.File, error) {
	return s.open("create", name, func() (vfs.File, error) { return s.FS.Create(name) })
}

func (s *scarceFS) Open(name string) (vfs.File, error) {
	return s.open("open", name, func() (vfs.File, error) { return s.FS.Open(name) })
}

func (s *scarceFS) OpenReadWrite(name string) (vfs.File, error) {
	return s.open("open", name, func() (vfs.File, error) { return s.FS.OpenReadWrite(name) })
}

func (s *scarceFS) OpenDir(name string) (vfs.File, error) {
	return s.open("open", name, func() (vfs.File, error) { return s.FS.OpenDir(name) })
}

type scarceFile struct {
	vfs.File
	s *scarceFS
}

// signal interrupts three of four calls.
func (f *scarceFile) signal(op string) error {
	if f.s.interrupted.Load() == 0 || f.s.interrupted.Add(1)%4 == 0 {
		return nil
	}
	return &os.PathError{Op: op, Err: syscall.EINTR}
}

func (f *scarceFile) Preallocate(offset, length int64) error {
	if err := f.signal("fallocate"); err != nil {
		return err
	}
	return f.File.Preallocate(offset, length)
}

func (f *scarceFile) SyncData() error {
	if err := f.signal("fdatasync"); err != nil {
		return err
	}
	return f.File.SyncData()
}

func openScarce(t testing.TB, s *scarceFS) (*Log, *Bodies) {
	l, err := Open(Options{FS: s, Dir: "/log", SegmentBytes: tightSegment})
	require.NoError(t, err)
	b, err := OpenBodies(BodiesOptions{FS: s, Dir: "/bodies", SegmentBytes: tightSegment})
	require.NoError(t, err)
	b.Retain(func(Body) bool { return true })
	return l, b
}

// TestDescriptorsAreWaitedFor exhausts the descriptors: calls that need another file wait, nothing fails, and they
// continue once there are descriptors. Calls that need no new file continue.
func TestDescriptorsAreWaitedFor(t *testing.T) {
	for _, no := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE} {
		for name, body := range map[string]int{"log": 0, "bodies": 5000} {
			t.Run(no.Error()+", "+name, func(t *testing.T) {
				s := newScarce()
				l, b := openScarce(t, s)
				k := &tightWork{w: NewWriter(l, b)}
				var told []*FullError
				k.w.Waits(func(full *FullError) { told = append(told, full) })
				s.out.Store(&no)
				if body == 0 {
					k.submit(100, 0)
					k.await(t, "the segment that is open is written", k.allDurable)
				}
				for range 100 {
					k.submit(2000, body)
				}
				k.await(t, "no descriptor", func() bool { return k.w.Metrics().Full != nil })
				require.ErrorIs(t, k.w.Metrics().Full, no)
				require.ErrorContains(t, k.w.Metrics().Full, "no descriptor")
				require.Less(t, k.done, k.next)
				s.out.Store(nil)
				k.await(t, "everything is durable once there are descriptors", k.allDurable)
				require.Nil(t, k.w.Metrics().Full)
				require.Positive(t, s.refused.Load())
				require.NoError(t, k.w.Close())
				require.Len(t, told, 2, "it is told that the wait begins and ends")
				require.ErrorIs(t, told[0], no)
				require.Nil(t, told[1])
				require.EqualValues(t, 1, k.w.Metrics().Waits)
				require.NoError(t, b.Close())
				require.NoError(t, l.Close())

				l, b = openScarce(t, s)
				require.Len(t, replayAll(t, l, 1), int(k.next))
				require.NoError(t, b.Close())
				require.NoError(t, l.Close())
			})
		}
	}
}

// TestCloseDoesNotWaitForDescriptors: Close ends the wait, and what is not durable fails with ErrClosed.
func TestCloseDoesNotWaitForDescriptors(t *testing.T) {
	s, no := newScarce(), syscall.EMFILE
	l, b := openScarce(t, s)
	k := &tightWork{w: NewWriter(l, b)}
	s.out.Store(&no)
	for range 100 {
		k.submit(2000, 0)
	}
	k.await(t, "no descriptor", func() bool { return k.w.Metrics().Full != nil })
	require.NoError(t, k.w.Close())
	require.NoError(t, b.Close())
	require.NoError(t, l.Close())
	s.out.Store(nil)
	l, _ = openScarce(t, s)
	require.GreaterOrEqual(t, len(replayAll(t, l, 1)), int(k.done))
}

// TestNoDescriptorAtAnyOpening fails each opening of a file in turn, for a while: none of them shuts the log.
func TestNoDescriptorAtAnyOpening(t *testing.T) {
	for at := range 40 {
		s := &countedFS{FS: vfs.NewMem(), refuse: at}
		l, err := Open(Options{FS: s, Dir: "/log", SegmentBytes: tightSegment})
		require.NoError(t, err)
		s.armed = true
		for i := uint64(1); i <= 60; i++ {
			err := l.Append([]Record{entry(1, i, payload(1, i, 2000))})
			if err == nil {
				err = l.Sync()
			}
			if err != nil {
				require.NotNil(t, spaceMissing(err), "%v", err)
				i--
			}
		}
		require.NoError(t, l.Compact(1, 50))
		require.NoError(t, l.Sync())
		require.NoError(t, l.Close())
		if s.opened <= at {
			return // there are no more openings
		}
	}
}

// countedFS refuses one opening.
type countedFS struct {
	vfs.FS
	armed          bool
	opened, refuse int
}

func (c *countedFS) refuses() error {
	if !c.armed {
		return nil
	}
	c.opened++
	if c.opened-1 == c.refuse {
		return &os.PathError{Op: "open", Err: syscall.EMFILE}
	}
	return nil
}

func (c *countedFS) Create(name string) (vfs.File, error) {
	if err := c.refuses(); err != nil {
		return nil, err
	}
	return c.FS.Create(name)
}

func (c *countedFS) OpenDir(name string) (vfs.File, error) {
	if err := c.refuses(); err != nil {
		return nil, err
	}
	return c.FS.OpenDir(name)
}

// TestWriteFileWithoutDescriptors changes nothing and can be repeated: the directory that is synced
// last is opened first.
func TestWriteFileWithoutDescriptors(t *testing.T) {
	for at := range 2 {
		c := &countedFS{FS: vfs.NewMem(), refuse: at}
		require.NoError(t, WriteFile(c, "/file", []byte("old")))
		c.armed = true
		var full *FullError
		require.ErrorAs(t, WriteFile(c, "/file", []byte("new")), &full)
		require.True(t, sys.NoDescriptor(full))
		b, err := ReadFile(c, "/file", 100)
		require.NoError(t, err)
		require.Equal(t, "old", string(b))
		require.NoError(t, WriteFile(c, "/file", []byte("new")))
	}
}

// TestSignalsInterruptNothing has signals interrupt most calls that allocate or sync.
func TestSignalsInterruptNothing(t *testing.T) {
	s := newScarce()
	l, b := openScarce(t, s)
	s.interrupted.Store(1)
	k := &tightWork{w: NewWriter(l, b)}
	for range 100 {
		k.submit(2000, 3000)
	}
	k.await(t, "durable", k.allDurable)
	require.NoError(t, k.w.Close())
	require.NoError(t, b.Close())
	require.NoError(t, l.Close())
}
