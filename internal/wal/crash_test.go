package wal

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/vfs/errorfs"
)

func state(instance uint32, data string, size int) Record {
	b := make([]byte, size)
	copy(b, data)
	return Record{Instance: instance, Kind: KindState, Parts: [2][]byte{b}}
}

func stateOf(t *testing.T, l *Log, instance uint32) (s string) {
	t.Helper()
	require.NoError(t, l.Replay(instance, func(_ Kind, _ uint64, data []byte) error {
		s = string(data[:min(3, len(data))])
		return nil
	}))
	return s
}

// abandon ends a log like kill -9: nothing is written, nothing is lost.
func abandon(l *Log) { l.closeFiles() }

// loseMark simulates a power failure before the kernel has written back the mark.
func loseMark(t *testing.T, fs vfs.FS, dir string) {
	t.Helper()
	put(t, fs, filepath.Join(dir, markName), 0, make([]byte, 2*markSlotSize))
}

// put overwrites bytes of a file.
func put(t *testing.T, fs vfs.FS, name string, offset int64, b []byte) {
	t.Helper()
	f, err := fs.OpenReadWrite(name)
	require.NoError(t, err)
	require.NoError(t, writeAt(f, b, offset))
	require.NoError(t, f.Close())
}

// TestTornBatchDoesNotReappear: of two batches that were never synced, the second one survived a crash. The next
// incarnation's first batch is as long as the lost one, so the survivor follows it exactly.
func TestTornBatchDoesNotReappear(t *testing.T) {
	fs := vfs.NewMem()
	l := openMem(t, fs)
	lost := l.end
	require.NoError(t, l.Append([]Record{state(1, "", 0)}))
	require.NoError(t, l.flush())
	size := l.end - lost
	require.NoError(t, l.Append([]Record{state(2, "ghost", 5)}))
	require.NoError(t, l.flush())
	abandon(l)
	put(t, fs, l.path(1, liveSuffix), lost, make([]byte, size))
	l = openMem(t, fs)
	require.Equal(t, lost+size, l.end, "the mark of the new life takes the place of the lost batch")
	abandon(l)
	l = openMem(t, fs)
	require.Equal(t, "", stateOf(t, l, 2))
	require.NoError(t, l.Close())
}

// TestOldSegmentDoesNotReappear: half of a batch was lost, and in its place are the bytes of the recycled file: a
// record of the same size.
func TestOldSegmentDoesNotReappear(t *testing.T) {
	const page = 8192 // where the second record begins
	fs := vfs.NewMem()
	l := openMem(t, fs)
	two := func(data string) {
		head := int64(batchHeaderSize + recordHeaderSize)
		if l.end == segmentHeaderSize {
			head += recordHeaderSize
		}
		require.NoError(t, l.Append([]Record{state(1, data, int(page-l.end-head)), state(2, data, 100)}))
		require.EqualValues(t, page, l.index.find(2).state.off)
		require.NoError(t, l.Sync())
	}
	two("one")
	l.mu.Lock()
	require.NoError(t, l.rotate(100))
	l.mu.Unlock()
	two("two")
	abandon(l)
	loseMark(t, fs, "/d/log") // the sync had not ended
	old, err := ReadFile(fs, l.path(1, liveSuffix), 1<<20)
	require.NoError(t, err)
	put(t, fs, l.path(2, liveSuffix), page, old[page:page+recordHeaderSize+100])
	l = openMem(t, fs)
	require.Equal(t, "one", stateOf(t, l, 1), "the batch is cut whole")
	require.Equal(t, "one", stateOf(t, l, 2))
	require.EqualValues(t, segmentHeaderSize, l.segs[1].incarnations[0].from, "cut at the segment's start")
	require.NoError(t, l.Close())
}

// TestKilledThenPowerLost: the state that was recovered after kill -9 may never have been synced. Once Open has
// returned, it is durable; a power loss while it runs is not damage.
func TestKilledThenPowerLost(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		mem := vfs.NewCrashableMem()
		w := newWorkload(seed)
		rng := rand.New(rand.NewPCG(seed, 3))
		l := openMem(t, mem)
		for range 10 {
			require.NoError(t, w.step(l))
		}
		require.NoError(t, l.flush())
		abandon(l)
		w.trying = len(w.states) - 1
		l = openMem(t, hooked(mem, func(errorfs.Op) error {
			for range 3 {
				again := w.verify(t, mem.Crash(50, rng))
				abandon(again)
			}
			return nil
		}))
		got, err := logText(l)
		require.NoError(t, err)
		require.Equal(t, w.last.text(), got)
		w.synced = len(w.states) - 1
		abandon(w.verify(t, mem.Crash(0, nil)))
		abandon(l)
	}
}

// TestKilledAnywhereThenPowerLost is TestKilledThenPowerLost for a kill between any two operations on files, also while
// the log continues in another segment.
func TestKilledAnywhereThenPowerLost(t *testing.T) {
	died := errors.New("the process is dead")
	for last, alive := 1, true; alive; last++ {
		mem := vfs.NewCrashableMem()
		w := newWorkload(1)
		ops := 0
		l := openMem(t, hooked(mem, func(errorfs.Op) error {
			if ops++; ops > last+100 { // after Open
				return died
			}
			return nil
		}))
		var err error
		for step := 0; step < 60 && err == nil; step++ {
			err = w.step(l)
		}
		alive = err != nil
		abandon(l)
		l = openMem(t, mem)
		found, err := logText(l)
		require.NoError(t, err)
		again := openMem(t, mem.Crash(0, nil))
		after, err := logText(again)
		require.NoError(t, err)
		require.Equal(t, found, after, "what a start found is durable then")
		abandon(again)
		abandon(l)
	}
}

// TestCarryCrosses: states are rewritten across several segments, and power is lost at any point: no state may be
// lost.
func TestCarryCrosses(t *testing.T) {
	mem := vfs.NewCrashableMem()
	crashes := 0
	armed := false
	l := openMem(t, hooked(mem, func(errorfs.Op) error {
		if !armed {
			return nil
		}
		crashes++
		again := openMem(t, mem.Crash(0, nil))
		for i := uint32(1); i <= 6; i++ {
			require.Equal(t, "abc", stateOf(t, again, i))
		}
		abandon(again)
		return nil
	}))
	for i := uint32(1); i <= 6; i++ {
		require.NoError(t, l.Append([]Record{state(i, "abc", 4500)}))
	}
	require.NoError(t, l.Append([]Record{entry(9, 1, nil)}))
	require.NoError(t, l.Sync())
	from := l.current().seq
	for index := uint64(2); l.current().seq < from+2; index++ {
		require.NoError(t, l.Append([]Record{entry(9, index, payload(9, index, 900))}))
	}
	require.NoError(t, l.Sync())
	armed = true
	require.NoError(t, l.Compact(9, l.index.find(9).next()-1))
	require.NoError(t, l.Sync())
	require.NoError(t, l.check())
	require.Greater(t, l.current().seq, from+3, "the states did not fit into one segment")
	require.Equal(t, l.first, l.segs[0].seq)
	require.Greater(t, crashes, 6)
	armed = false
	require.NoError(t, l.Close())
}

// TestReaderOfFreedSegment: a delayed reader gets its entry although the segment was dropped meanwhile and its file
// could have been reused.
func TestReaderOfFreedSegment(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	held := false
	l := openMem(t, errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(o errorfs.Op) error {
		if o.Kind == errorfs.OpFileReadAt && held {
			close(entered)
			<-release
		}
		return nil
	})))
	require.NoError(t, l.Append([]Record{entry(1, 1, payload(1, 1, 3000))}))
	require.NoError(t, l.Sync())
	held = true
	type answer struct {
		data []byte
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		data, err := l.ReadEntry(1, 1)
		read <- answer{data, err}
	}()
	receive(t, entered)
	held = false
	for i := uint64(2); i < 40; i++ {
		require.NoError(t, l.Append([]Record{entry(1, i, payload(1, i, 3000))}))
		require.NoError(t, l.Sync())
		require.NoError(t, l.Compact(1, i-1))
	}
	require.Greater(t, l.first, uint64(3))
	close(release)
	a := receive(t, read)
	require.NoError(t, a.err)
	require.Equal(t, payload(1, 1, 3000), a.data)
	require.NoError(t, l.Close())
}
