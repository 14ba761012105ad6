package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/vfs/errorfs"
)

// gateFS lets a test block syncs of data.
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

// TestWriterSealsWhenIdle: after the seal, damage to the last batch is not mistaken for a torn batch.
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

// TestWriterWithReaders reads, writes and compacts at the same time, on real files.
func TestWriterWithReaders(t *testing.T) {
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

// sizeOf returns sizes of small entries, and of some that the log writes without a copy.
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

func withBody(r Record, form uint8, data []byte) Record {
	r.Body = &Body{Instance: r.Instance, Index: r.Index, Term: 1, Form: form, K: 1, Size: uint32(len(data)),
		Digest: checksum(data), Bytes: data}
	return r
}

// bodiesOfLog checks the state after a crash: each entry has its body, the entries up to durable are there, and the
// body of every fourth of these has been replaced.
func bodiesOfLog(fs vfs.FS, durable uint64, size func(uint64) int) error {
	l, err := Open(Options{FS: fs, Dir: "/d/log", SegmentBytes: testSegment, Identity: []byte("me")})
	if err != nil {
		return err
	}
	defer l.Close()
	b, err := openBodies(fs)
	if err != nil {
		return err
	}
	defer b.Close()
	last := uint64(0)
	err = l.Replay(1, func(k Kind, index uint64, _ []byte) error {
		last = index
		body, err := b.Read(1, index)
		if err != nil {
			return fmt.Errorf("the log has entry %d: %w", index, err)
		}
		if string(body.Bytes) != string(payload(1, index, size(index))) {
			return fmt.Errorf("the body of entry %d has %d other bytes", index, len(body.Bytes))
		}
		if index%4 == 0 && index <= durable && body.Form != 7 {
			return fmt.Errorf("the body of entry %d has form %d", index, body.Form)
		}
		return nil
	})
	if err == nil && last < durable {
		err = fmt.Errorf("the log ends at %d, but %d is durable", last, durable)
	}
	return err
}

// TestWriterMakesBodiesDurableFirst crashes before each operation. Every record in the log must have its body, and
// everything that was reported as durable must be there.
func TestWriterMakesBodiesDurableFirst(t *testing.T) {
	mem := vfs.NewCrashableMem()
	rng := rand.New(rand.NewPCG(1, 7))
	var told atomic.Uint64
	size := func(i uint64) int { return int(i%3) * (largePart - 100) }
	var one sync.Mutex
	fs := hooked(mem, func(errorfs.Op) error {
		one.Lock() // files are prepared at the same time as the writer writes
		defer one.Unlock()
		durable := told.Load()
		clone := mem.Crash(50, rng)
		if err := bodiesOfLog(clone, durable, size); err != nil {
			t.Error(err)
		}
		return nil
	})
	l, b := openMem(t, fs), openBodiesMem(t, fs)
	w := NewWriter(l, b)
	answers := make(chan error, 100)
	for i := uint64(1); i <= 12; i++ {
		records := []Record{withBody(entry(1, i, []byte("head")), 2, payload(1, i, size(i)))}
		if i%4 == 0 {
			records = append(records, withBody(Record{Instance: 1, Kind: KindBody, Index: i}, 7, payload(1, i, size(i))))
		}
		w.Submit(records, func(err error) {
			if err == nil {
				told.Store(i)
			}
			answers <- err
		})
		if i%3 == 0 {
			require.NoError(t, receive(t, answers))
			require.NoError(t, receive(t, answers))
			require.NoError(t, receive(t, answers))
		}
	}
	require.NoError(t, w.Close())
	require.GreaterOrEqual(t, w.Metrics().Bytes, uint64(4*3*(largePart-100)), "bodies count")
	require.NoError(t, b.Close())
	require.NoError(t, l.Close())
}

// TestWriterFailsWithItsBodies: if bodies cannot be made durable, the writer writes no record that
// names them. After that it writes nothing else.
func TestWriterFailsWithItsBodies(t *testing.T) {
	broken := errors.New("the disk is broken")
	for _, kind := range []errorfs.OpKind{errorfs.OpFileWriteAt, errorfs.OpFileSyncData} {
		fail := false
		mem := vfs.NewMem()
		l := openMem(t, mem)
		b := openBodiesMem(t, hooked(mem, func(o errorfs.Op) error {
			if fail && o.Kind == kind {
				return broken
			}
			return nil
		}))
		w := NewWriter(l, b)
		answers := make(chan error, 10)
		done := func(err error) { answers <- err }
		w.Submit([]Record{withBody(entry(1, 1, []byte("a")), 1, []byte("body"))}, done)
		require.NoError(t, receive(t, answers))
		fail = true
		w.Submit([]Record{withBody(entry(1, 2, []byte("b")), 1, []byte("body"))}, done)
		var failed *FailedError
		require.ErrorAs(t, receive(t, answers), &failed)
		require.ErrorIs(t, failed, broken)
		fail = false
		w.Submit([]Record{entry(1, 2, []byte("b"))}, done)
		require.ErrorIs(t, receive(t, answers), broken, "also without a body")
		require.ErrorIs(t, w.Close(), broken)
		require.ErrorIs(t, b.Close(), broken)
		require.ErrorIs(t, l.Close(), broken)
		l = openMem(t, mem)
		require.Equal(t, []string{"entry 1 a"}, replayAll(t, l, 1))
		require.NoError(t, l.Close())
	}
}

func TestWriterWithoutPlaceForBodies(t *testing.T) {
	l := openMem(t, vfs.NewMem())
	w := NewWriter(l, nil)
	answers := make(chan error, 1)
	w.Submit([]Record{withBody(entry(1, 1, []byte("a")), 1, []byte("body"))}, func(err error) { answers <- err })
	var missing *NotFoundError
	require.ErrorAs(t, receive(t, answers), &missing)
	require.Error(t, w.Close())
	require.Error(t, l.Close())
}

// TestWriterTidiesWhenIdle: an idle writer moves live bodies out of files that are mostly dead, without a submission.
// Then it seals the log and the bodies.
func TestWriterTidiesWhenIdle(t *testing.T) {
	fs := vfs.NewMem()
	l, b := openMem(t, fs), openBodiesMem(t, fs)
	w := NewWriter(l, b)
	answers := make(chan error, 1)
	var records []Record
	for i := uint64(1); i <= 60; i++ {
		records = append(records, withBody(entry(1, i, []byte("e")), 1, payload(1, i, 8000)))
	}
	w.Submit(records, func(err error) { answers <- err })
	require.NoError(t, receive(t, answers))
	for i := uint64(1); i <= 60; i++ {
		if i%10 != 0 {
			b.Release(1, i)
		}
	}
	require.Eventually(t, func() bool {
		live, total := b.Size()
		return live == 6*bodyRecordSize(8000) && total <= 2*testBodies
	}, 30*time.Second, 5*time.Millisecond)
	for i := uint64(10); i <= 60; i += 10 {
		body, err := b.Read(1, i)
		require.NoError(t, err)
		require.Equal(t, payload(1, i, 8000), body.Bytes)
	}
	require.NoError(t, w.Close())
	require.NoError(t, b.Close())
	require.NoError(t, l.Close())
}

// TestReleasedBodiesGiveSpaceBackWhenIdle: bodies are released after the last step of an idle writer, and nothing is
// submitted any more.
func TestReleasedBodiesGiveSpaceBackWhenIdle(t *testing.T) {
	l, b := openMem(t, vfs.NewMem()), openBodiesMem(t, vfs.NewMem())
	c := NewCommits(l, b, atOnce)
	for i := uint64(1); i <= 60; i++ {
		require.True(t, c.Submit([]Record{withBody(entry(1, i, []byte("e")), 1, payload(1, i, 8000))}, nil))
	}
	drain(c)
	for c.Pause() >= 0 {
		c.Step()
	}
	_, before := b.Size()
	require.Greater(t, before, int64(5*testBodies))
	for i := uint64(1); i <= 60; i++ {
		if i%10 != 0 {
			b.Release(1, i)
			c.Tidy()
		}
	}
	for steps := 0; c.Gather() || c.Pause() >= 0; steps++ {
		require.Less(t, steps, 20)
		c.Step()
	}
	live, total := b.Size()
	require.Equal(t, 6*bodyRecordSize(8000), live)
	require.LessOrEqual(t, total, int64(2*testBodies))
	c.Tidy()
	require.True(t, c.Gather(), "it says so again")
	c.Step()
	require.False(t, c.Gather(), "once")
	require.NoError(t, errors.Join(b.Close(), l.Close()))
}

// TestWriterTidiesAgain: the same in a goroutine.
func TestWriterTidiesAgain(t *testing.T) {
	l, b := openMem(t, vfs.NewMem()), openBodiesMem(t, vfs.NewMem())
	w := NewWriter(l, b)
	answers := make(chan error, 1)
	var records []Record
	for i := uint64(1); i <= 60; i++ {
		records = append(records, withBody(entry(1, i, []byte("e")), 1, payload(1, i, 8000)))
	}
	w.Submit(records, func(err error) { answers <- err })
	require.NoError(t, receive(t, answers))
	total := func() int64 {
		_, total := b.Size()
		return total
	}
	for last := uint64(60); last > 0; last -= 20 { // it may or may not be idle already
		for i := last - 19; i <= last; i++ {
			b.Release(1, i)
			w.Tidy()
		}
		require.Eventually(t, func() bool { return total() <= int64(last/10)*testBodies }, 30*time.Second, time.Millisecond)
	}
	require.NoError(t, errors.Join(w.Close(), b.Close(), l.Close()))
}
