package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/vfs"
)

// tightFS is a file system with a limited number of bytes, like a small disk. Preallocated bytes are reserved, others
// are charged as they are written.
type tightFS struct {
	vfs.FS
	mu   sync.Mutex
	left int64
	size map[string]int64 // what each file takes
	// refuse makes the refuse-th allocation from now on fail. 0: none.
	refuse, allocations int
}

func newTight(left int64) *tightFS {
	return &tightFS{FS: vfs.NewMem(), left: left, size: map[string]int64{}}
}

// charge charges a file for its new size.
func (d *tightFS) charge(name string, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	more := size - d.size[name]
	if more <= 0 {
		return nil
	}
	d.allocations++
	if d.allocations == d.refuse || more > d.left {
		return &os.PathError{Op: "allocate", Path: name, Err: syscall.ENOSPC}
	}
	d.left -= more
	d.size[name] = size
	return nil
}

// grow adds to the size of the disk.
func (d *tightFS) grow(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left += bytes
}

// fill uses up the space that is left.
func (d *tightFS) fill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = 0
}

func (d *tightFS) Create(name string) (vfs.File, error) {
	f, err := d.FS.Create(name)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left += d.size[name]
	delete(d.size, name)
	return &tightFile{f, d, &name}, nil
}

func (d *tightFS) OpenReadWrite(name string) (vfs.File, error) {
	f, err := d.FS.OpenReadWrite(name)
	if err != nil {
		return nil, err
	}
	return &tightFile{f, d, &name}, nil
}

func (d *tightFS) Remove(name string) error {
	err := d.FS.Remove(name)
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.left += d.size[name]
		delete(d.size, name)
	}
	return err
}

func (d *tightFS) Rename(from, to string) error {
	err := d.FS.Rename(from, to)
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.left += d.size[to]
		d.size[to] = d.size[from]
		delete(d.size, from)
	}
	return err
}

type tightFile struct {
	vfs.File
	d    *tightFS
	name *string
}

func (f *tightFile) Preallocate(offset, length int64) error {
	return f.d.charge(*f.name, offset+length)
}

// WriteAt permits writes within a segment: segments are preallocated.
func (f *tightFile) WriteAt(b []byte, at int64) (int, error) {
	if info, err := f.File.Stat(); err != nil || at+int64(len(b)) > info.Size() {
		if err := f.d.charge(*f.name, at+int64(len(b))); err != nil {
			return 0, err
		}
	}
	return f.File.WriteAt(b, at)
}

const tightSegment = 16 << 10

func openTight(t testing.TB, d *tightFS) (*Log, *Bodies) {
	l, err := Open(Options{FS: d, Dir: "/log", SegmentBytes: tightSegment})
	require.NoError(t, err)
	b, err := OpenBodies(BodiesOptions{FS: d, Dir: "/bodies", SegmentBytes: tightSegment})
	require.NoError(t, err)
	b.Retain(func(Body) bool { return true })
	return l, b
}

// tightWork submits entries, each with a small record and a body, and counts what is durable.
type tightWork struct {
	w    *Writer
	mu   sync.Mutex
	next uint64
	done uint64
	err  error
}

func (k *tightWork) submit(size, body int) {
	k.next++
	i := k.next
	r := entry(1, i, payload(1, i, size))
	if body > 0 {
		held := someBody(1, i, 1, body)
		r.Body = &held
	}
	k.w.Submit([]Record{r}, func(err error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if err == nil {
			k.done = i
		} else if k.err == nil && !errors.Is(err, ErrClosed) {
			k.err = err
		}
	})
}

func (k *tightWork) at() (uint64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.done, k.err
}

func (k *tightWork) await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := k.at()
		return err != nil || ok()
	}, 30*time.Second, time.Millisecond, what)
	_, err := k.at()
	require.NoError(t, err, what)
}

func (k *tightWork) allDurable() bool { done, _ := k.at(); return done == k.next }

// TestFullDiskIsWaitedFor fills the disk: submissions that do not fit wait, nothing fails, and they continue once
// there is space.
func TestFullDiskIsWaitedFor(t *testing.T) {
	for name, body := range map[string]int{"log": 0, "bodies": 5000} {
		t.Run(name, func(t *testing.T) {
			d := newTight(5 * tightSegment)
			l, b := openTight(t, d)
			k := &tightWork{w: NewWriter(l, b)}
			for range 100 {
				k.submit(2000, body)
			}
			k.await(t, "the disk is full", func() bool { return k.w.Metrics().Full != nil })
			require.Less(t, k.done, k.next)
			require.False(t, k.w.Metrics().SyncStart.IsZero(), "it shows as a disk that stands still")
			d.grow(100 * tightSegment)
			k.await(t, "everything is durable once there is space", k.allDurable)
			require.Nil(t, k.w.Metrics().Full)
			require.NoError(t, k.w.Close())
			require.NoError(t, b.Close())
			require.NoError(t, l.Close())

			l, b = openTight(t, d)
			require.Len(t, replayAll(t, l, 1), int(k.next))
			if body > 0 {
				require.Equal(t, int(k.next), b.Count())
			}
		})
	}
}

// TestFullDiskIsRelievedByCompaction: a compaction in the queue after a waiting write frees the space that the write
// needs.
func TestFullDiskIsRelievedByCompaction(t *testing.T) {
	d := newTight(6 * tightSegment)
	l, b := openTight(t, d)
	k := &tightWork{w: NewWriter(l, b)}
	k.w.Submit([]Record{state(1, "voted", 100)}, func(err error) { require.NoError(t, err) })
	for range 200 {
		k.submit(1000, 0)
	}
	for last := uint64(0); !k.allDurable(); {
		k.await(t, "durable or full",
			func() bool { done, _ := k.at(); return done > last || k.allDurable() || k.w.Metrics().Full != nil })
		if last, _ = k.at(); last > 10 {
			k.w.Compact(1, last-10)
		}
	}
	require.NoError(t, k.w.Close())
	require.NoError(t, l.Close())
	require.NoError(t, b.Close())
}

// TestFullDiskIsRelievedByRelease is the same for bodies.
func TestFullDiskIsRelievedByRelease(t *testing.T) {
	d := newTight(6 * tightSegment)
	l, b := openTight(t, d)
	k := &tightWork{w: NewWriter(l, b)}
	for range 50 {
		k.submit(10, 5000)
	}
	released := uint64(0)
	k.await(t, "durable", func() bool {
		if k.w.Metrics().Full != nil {
			for last, _ := k.at(); released < last; released++ {
				b.Release(1, released+1)
			}
		}
		return k.allDurable()
	})
	require.NoError(t, k.w.Close())
	require.NoError(t, l.Close())
	require.NoError(t, b.Close())
}

// TestFullDiskEndsWithClose closes a writer that waits for space.
func TestFullDiskEndsWithClose(t *testing.T) {
	d := newTight(3 * tightSegment)
	l, b := openTight(t, d)
	w := NewWriter(l, b)
	failed := make(chan error, 1000)
	for i := range uint64(100) {
		w.Submit([]Record{entry(1, i+1, payload(1, i+1, 2000))}, func(err error) { failed <- err })
	}
	require.Eventually(t, func() bool { return w.Metrics().Full != nil }, 30*time.Second, time.Millisecond)
	require.NoError(t, w.Close())
	var last error
	for range 100 {
		last = receive(t, failed)
	}
	require.ErrorIs(t, last, ErrClosed)
	require.NoError(t, l.Close(), "it is not damaged")
}

// TestFullEverywhere refuses the k-th allocation, for every k: nothing fails, and durable records survive.
func TestFullEverywhere(t *testing.T) {
	for k := 1; ; k++ {
		d := newTight(1 << 30)
		l, b := openTight(t, d)
		d.refuse = d.allocations + k
		rng := rand.New(rand.NewPCG(uint64(k), 1))
		work := &tightWork{w: NewWriter(l, b)}
		for i := range 60 {
			work.submit(rng.IntN(3000), rng.IntN(2)*rng.IntN(9000))
			if i%20 == 19 {
				work.await(t, "durable", work.allDurable)
				work.w.Compact(1, work.next-15)
				for i := uint64(1); i < work.next-15; i++ {
					b.Release(1, i)
				}
			}
		}
		work.await(t, fmt.Sprintf("durable after refusal of allocation %d", k), work.allDurable)
		require.NoError(t, work.w.Close())
		require.NoError(t, b.Close())
		require.NoError(t, l.Close())
		l, _ = openTight(t, d)
		require.Len(t, replayAll(t, l, 1), 15)
		if d.allocations < d.refuse {
			require.Greater(t, k, 5)
			return
		}
	}
}

// TestStartOnFullDisk opens a log and bodies again and again while there is no space at all.
func TestStartOnFullDisk(t *testing.T) {
	d := newTight(6 * tightSegment)
	l, b := openTight(t, d)
	k := &tightWork{w: NewWriter(l, b)}
	for range 200 {
		k.submit(700, 700)
	}
	k.await(t, "full", func() bool { return k.w.Metrics().Full != nil })
	durable, _ := k.at()
	d.fill()
	for range 3 {
		require.NoError(t, k.w.Close())
		require.NoError(t, b.Close())
		require.NoError(t, l.Close())
		l, b = openTight(t, d)
		require.GreaterOrEqual(t, len(replayAll(t, l, 1)), int(durable))
		k.w = NewWriter(l, b)
	}
	require.NoError(t, k.w.Close())
}

// copyingFS is a copy-on-write file system. So on a full disk it also refuses overwrites.
type copyingFS struct {
	vfs.FS
	full bool
}

func (d *copyingFS) Create(name string) (vfs.File, error) {
	f, err := d.FS.Create(name)
	return &copyingFile{f, d}, err
}

type copyingFile struct {
	vfs.File
	d *copyingFS
}

func (f *copyingFile) WriteAt(b []byte, at int64) (int, error) {
	if f.d.full {
		return 0, &os.PathError{Op: "write", Path: "file", Err: syscall.ENOSPC}
	}
	return f.File.WriteAt(b, at)
}

// The disk is full when the log is about to continue to the next segment. When there is space again, the next segment
// must not be prepared again: the log would write into a file whose name is gone.
func TestFullDiskWhileTheLogContinues(t *testing.T) {
	d := &copyingFS{FS: vfs.NewMem()}
	l, err := Open(Options{FS: d, Dir: "/log", SegmentBytes: tightSegment})
	require.NoError(t, err)
	add := func(index uint64) error {
		return l.Append([]Record{{Instance: 1, Kind: KindEntry, Index: index, Parts: [2][]byte{make([]byte, 1000)}}})
	}
	waited := 0
	for i := uint64(1); i <= 60; i++ { // several segments
		d.full = l.next != nil
		err := add(i)
		if waiting := l.turning != nil; d.full {
			require.Equal(t, waiting, err != nil)
		}
		d.full = false
		l.prepare(inGoroutine)
		require.NoError(t, l.awaitPrepared())
		if err != nil {
			require.ErrorAs(t, err, new(*FullError))
			require.NoError(t, add(i))
			waited++
		}
		require.NoError(t, l.Sync())
	}
	require.Greater(t, waited, 3)
	require.NoError(t, l.Close())
	l, err = Open(Options{FS: d, Dir: "/log", SegmentBytes: tightSegment})
	require.NoError(t, err)
	defer l.Close()
	for i := uint64(1); i <= 60; i++ {
		_, err := l.ReadEntry(1, i)
		require.NoError(t, err)
	}
}
