package wal

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

// gateFS lets a test hold syncs of data.
type gateFS struct {
	held    atomic.Bool
	entered chan struct{}
	release chan error
}

func newGate(fs vfs.FS) (*gateFS, vfs.FS) {
	g := &gateFS{entered: make(chan struct{}, 100), release: make(chan error)}
	return g, hooked(fs, func(o errorfs.Op) error {
		if o.Kind == errorfs.OpFileSyncData && g.held.Load() {
			g.entered <- struct{}{}
			return <-g.release
		}
		return nil
	})
}

func receive[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came in 30 s")
		panic("unreachable")
	}
}

func TestWriterCoversAllThatGathered(t *testing.T) {
	gate, fs := newGate(vfs.NewMem())
	l := openMem(t, fs)
	w := NewWriter(l, nil)
	gate.held.Store(true)
	order := make(chan int, 100)
	submit := func(k int, r ...Record) {
		w.Submit(r, func(err error) {
			require.NoError(t, err)
			order <- k
		})
	}
	submit(0, entry(1, 1, []byte("a")))
	receive(t, gate.entered)
	for k := 1; k <= 20; k++ {
		submit(k, entry(uint32(k), 1, payload(uint32(k), 1, 100)))
	}
	submit(21)
	s := w.Metrics()
	require.EqualValues(t, 2000, s.QueuedBytes)
	require.EqualValues(t, 1, s.PendingBytes)
	require.False(t, s.SyncStart.IsZero(), "a sync that runs shows")
	require.Empty(t, order, "nobody is told before the sync has ended")
	gate.release <- nil
	receive(t, gate.entered)
	gate.held.Store(false)
	gate.release <- nil
	for k := 0; k <= 21; k++ {
		require.Equal(t, k, receive(t, order), "in the order of submission")
	}
	s = w.Metrics()
	require.EqualValues(t, 2, s.Syncs, "twenty submissions by twenty instances, one sync")
	require.EqualValues(t, 21, s.Records)
	require.EqualValues(t, 22, s.Submits)
	require.NoError(t, w.Close())
	require.NoError(t, l.Close())
}

func TestWriterFailsForGood(t *testing.T) {
	gate, fs := newGate(vfs.NewMem())
	l := openMem(t, fs)
	w := NewWriter(l, nil)
	gate.held.Store(true)
	answers := make(chan error, 10)
	done := func(err error) { answers <- err }
	w.Submit([]Record{entry(1, 1, []byte("a"))}, done)
	receive(t, gate.entered)
	w.Submit([]Record{entry(1, 2, []byte("b"))}, done)
	gate.held.Store(false)
	broken := errors.New("the disk is broken")
	gate.release <- broken
	for k := 0; k < 2; k++ {
		err := receive(t, answers)
		var failed *FailedError
		require.ErrorAs(t, err, &failed)
		require.ErrorIs(t, err, broken)
	}
	w.Submit(nil, done)
	require.ErrorIs(t, receive(t, answers), broken, "also for what comes later")
	require.ErrorIs(t, w.Metrics().Failed, broken)
	require.ErrorIs(t, w.Close(), broken)
	w.Submit(nil, done)
	require.Equal(t, ErrClosed, receive(t, answers))
	require.ErrorIs(t, l.Close(), broken)
}

// TestWriterSealsWhenIdle: then damage to the last batch is not taken for a torn one.
func TestWriterSealsWhenIdle(t *testing.T) {
	fs := vfs.NewMem()
	l := openMem(t, fs)
	w := NewWriter(l, nil)
	durable := make(chan error, 1)
	w.Submit([]Record{entry(1, 1, []byte("one"))}, func(err error) { durable <- err })
	require.NoError(t, receive(t, durable))
	require.Eventually(t, func() bool {
		seals := 0
		err := Inspect(fs, "/d/log", func(SegmentInfo) error { return nil }, func(r RecordInfo) error {
			if r.Mark == "seal" {
				seals++
			}
			return nil
		})
		return err == nil && seals == 1
	}, 30*time.Second, 10*time.Millisecond)
	w.Compact(1, 1)
	w.Submit([]Record{entry(1, 2, []byte("two"))}, func(err error) { durable <- err })
	require.NoError(t, receive(t, durable))
	require.EqualValues(t, 2, w.Metrics().Submits)
	require.NoError(t, w.Close())
	require.NoError(t, l.Close())
	l = openMem(t, fs)
	require.Equal(t, []string{"entry 2 two"}, replayAll(t, l, 1))
	require.NoError(t, l.Close())
}

// TestWriterBesideReaders reads, writes and compacts at once, on real files.
func TestWriterBesideReaders(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir + "/log", SegmentBytes: 256 << 10, Identity: []byte("me")}
	l, err := Open(o)
	require.NoError(t, err)
	w := NewWriter(l, nil)
	const instances, entries = 4, 400
	var group sync.WaitGroup
	for i := uint32(0); i < instances; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			if err := writeAndRead(w, l, i, entries); err != nil {
				t.Error(err)
			}
		}()
	}
	group.Wait()
	require.NoError(t, w.Close())
	before := l.Size()
	require.NoError(t, l.Close())
	l, err = Open(o)
	require.NoError(t, err)
	require.Less(t, before, int64(instances*entries*sizeOf(3)), "space was given back")
	for i := uint32(0); i < instances; i++ {
		data, err := l.ReadEntry(i, entries)
		require.NoError(t, err)
		require.Equal(t, payload(i, entries, sizeOf(entries)), data)
	}
	require.NoError(t, l.Close())
}

// sizeOf draws small entries, and some that are written from where they are.
func sizeOf(index uint64) int {
	if index%8 == 3 {
		return 3 * largePart
	}
	return int(index * 7 % 900)
}

func writeAndRead(w *Writer, l *Log, instance uint32, entries uint64) error {
	durable := make(chan error, 1)
	for i := uint64(1); i <= entries; i++ {
		w.Submit([]Record{entry(instance, i, payload(instance, i, sizeOf(i)))}, func(err error) { durable <- err })
		if err := <-durable; err != nil {
			return err
		}
		from := i - min(i-1, 5)
		data, err := l.ReadEntry(instance, from)
		if err != nil {
			return err
		}
		if string(data) != string(payload(instance, from, sizeOf(from))) {
			return fmt.Errorf("entry %d of instance %d is not what was written", from, instance)
		}
		if i%20 == 0 {
			w.Compact(instance, i-10)
		}
	}
	return nil
}
