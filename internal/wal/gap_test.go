package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/vfs"
)

// covering is a snapshot that covers a given number of entries of each instance.
func covering(upto ...uint64) *Cover {
	c := &Cover{Upto: func(i uint32) uint64 {
		if int(i) < len(upto) {
			return upto[i]
		}
		return 0
	}}
	for i := range upto {
		if upto[i] > 0 {
			c.Instances = append(c.Instances, uint32(i))
		}
	}
	return c
}

func openCovered(fs vfs.FS, c *Cover) (*Log, error) {
	return Open(Options{FS: fs, Dir: "/d/log", SegmentBytes: testSegment, Identity: []byte("me"), Cover: c})
}

// numbered makes a log of an entry and, every fourth time, a state for each batch.
func numbered(t *testing.T, n uint64) (*vfs.Mem, []int64) {
	t.Helper()
	fs := vfs.NewMem()
	l := openMem(t, fs)
	var at []int64
	for i := uint64(1); i <= n; i++ {
		records := []Record{entry(1, i, payload(1, i, 100))}
		if i%4 == 0 {
			records = append(records, state(1, fmt.Sprintf("%03d", i), 3))
		}
		at = append(at, l.end)
		require.NoError(t, l.Append(records))
		require.NoError(t, l.Sync())
	}
	abandon(l)
	return fs, at
}

// TestDamageBelowASnapshot: a batch is damaged. With a snapshot that covers its contents the log opens, has
// everything that is not covered, and can be opened repeatedly.
func TestDamageBelowASnapshot(t *testing.T) {
	fs, at := numbered(t, 40)
	flip(t, fs, "/d/log/0000000000000001.wal", at[19]+batchHeaderSize+recordHeaderSize+1, 2) // entry 20 and state 020
	var corrupt *CorruptError
	require.ErrorAs(t, open(fs, "me"), &corrupt, "nothing is covered")
	_, err := openCovered(copyOf(fs), covering(0, 19))
	require.ErrorAs(t, err, &corrupt)
	require.Contains(t, err.Error(),
		"entries before 21 of instance 1 were perhaps in it; the newest snapshot stands for those up to 19")
	for range 3 {
		l, err := openCovered(fs, covering(0, 20))
		require.NoError(t, err)
		require.NoError(t, l.check())
		require.Len(t, l.Damaged(), 1)
		require.Equal(t, at[19], l.Damaged()[0].Offset)
		all := replayAll(t, l, 1)
		require.Equal(t, "state 0 040", all[0])
		require.Len(t, all, 1+20)
		require.Contains(t, all[1], "entry 21 ")
		_, err = l.ReadEntry(1, 20)
		var gone *CompactedError
		require.ErrorAs(t, err, &gone)
		require.NoError(t, l.Close())
	}
	require.ErrorAs(t, open(fs, "me"), &corrupt, "the batch is where it was")
	l, err := openCovered(fs, covering(0, 30))
	require.NoError(t, err)
	for i := uint64(41); l.current().seq < 3; i++ {
		require.NoError(t, l.Append([]Record{entry(1, i, payload(1, i, 1000))}))
	}
	require.NoError(t, l.Compact(1, 45))
	require.NoError(t, l.Close())
	require.NoError(t, open(fs, "me"), "its segment is given up")
}

// TestDamageAtTheEnd: no later batch is evidence of what was in the damaged one. Neither votes nor entries are
// forgotten, whatever the snapshot covers.
func TestDamageAtTheEnd(t *testing.T) {
	var corrupt *CorruptError
	fs, at := numbered(t, 40)
	flip(t, fs, "/d/log/0000000000000001.wal", at[39]+batchHeaderSize+recordHeaderSize+1, 2)
	_, err := openCovered(fs, covering(0, 40))
	require.ErrorAs(t, err, &corrupt, "the last batch")
	fs, at = numbered(t, 38)
	flip(t, fs, "/d/log/0000000000000001.wal", at[35]+batchHeaderSize+recordHeaderSize+1, 2)
	_, err = openCovered(fs, covering(0, 38))
	require.ErrorAs(t, err, &corrupt)
	require.Contains(t, err.Error(), "the last state of instance 1 was perhaps in it")
	_, err = openCovered(fs, covering(0, 38, 5))
	require.ErrorAs(t, err, &corrupt, "of another instance there is nothing at all")
}

// TestDamagedSegments: whole files below a snapshot are missing or have other contents.
func TestDamagedSegments(t *testing.T) {
	damages := map[string]func(t *testing.T, fs vfs.FS, segs []string){
		"gone":      func(t *testing.T, fs vfs.FS, segs []string) { require.NoError(t, fs.Remove(segs[2])) },
		"all gone":  func(t *testing.T, fs vfs.FS, segs []string) { require.NoError(t, fs.Remove(segs[0])) },
		"empty":     func(t *testing.T, fs vfs.FS, segs []string) { require.NoError(t, WriteFile(fs, segs[2], nil)) },
		"cut short": func(t *testing.T, fs vfs.FS, segs []string) { copyFile(t, fs, segs[2], segs[2], testSegment/2) },
		"a copy":    func(t *testing.T, fs vfs.FS, segs []string) { copyFile(t, fs, segs[1], segs[2], 1<<20) },
		"zeros": func(t *testing.T, fs vfs.FS, segs []string) {
			require.NoError(t, WriteFile(fs, segs[2], make([]byte, testSegment)))
		},
		"end": func(t *testing.T, fs vfs.FS, segs []string) {
			put(t, fs, segs[2], testSegment-3000, make([]byte, 3000))
		},
		"start": func(t *testing.T, fs vfs.FS, segs []string) {
			put(t, fs, segs[2], 0, make([]byte, segmentHeaderSize+2000))
		},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			l := openMem(t, fs)
			for i := uint64(1); l.current().seq < 6; i++ {
				require.NoError(t, l.Append([]Record{entry(1, i, payload(1, i, 1000)), state(1, fmt.Sprintf("%03d", i), 3)}))
				require.NoError(t, l.Sync())
			}
			last := l.index.find(1).next() - 1
			abandon(l)
			damage(t, fs, segmentFiles(t, fs))
			var corrupt *CorruptError
			require.ErrorAs(t, open(fs, "me"), &corrupt)
			_, err := openCovered(fs, covering(0, 3))
			require.ErrorAs(t, err, &corrupt)
			for range 2 {
				l, err = openCovered(fs, covering(0, last-2))
				require.NoError(t, err)
				require.NoError(t, l.check())
				all := replayAll(t, l, 1)
				require.Equal(t, fmt.Sprintf("state 0 %03d", last), all[0])
				require.Contains(t, all[len(all)-1], fmt.Sprintf("entry %d ", last))
				require.GreaterOrEqual(t, len(all), 3)
				require.NotEmpty(t, l.Damaged())
				require.NoError(t, l.Append([]Record{entry(1, last+1, []byte("next")), entry(1, last+1, []byte("replaced")),
					state(1, fmt.Sprintf("%03d", last+1), 3)}))
				require.NoError(t, l.Sync())
				last++
				abandon(l)
			}
		})
	}
}

// TestDamagedHeader: only the first page of a segment is damaged. It has nothing that does not follow from the file's
// name and the checksums of the batches: it is rewritten.
func TestDamagedHeader(t *testing.T) {
	fs, segs := fullLog(t)
	for _, name := range segs {
		put(t, fs, name, 30, []byte{1, 2, 3})
	}
	l := openMem(t, fs)
	require.Len(t, l.Damaged(), len(segs))
	require.NoError(t, l.Close())
	l = openMem(t, fs)
	require.Empty(t, l.Damaged())
	require.NoError(t, l.Close())
}

// TestDamageAnywhere damages logs in random places, with random snapshots. Whenever a log
// opens it has every state and every entry that is not covered, and nothing else.
func TestDamageAnywhere(t *testing.T) {
	opened, refused := 0, 0
	for seed := uint64(1); seed <= 40; seed++ {
		mem := vfs.NewMem()
		w := newWorkload(seed)
		w.sizes = []int{0, 3, 40, 700}
		l := openMem(t, mem)
		rng := rand.New(rand.NewPCG(seed, 9))
		for l.current().seq < 2+seed%4 {
			require.NoError(t, w.step(l))
		}
		upto := make([]uint64, modelInstances)
		for i := range upto {
			upto[i] = w.last.floor[i] + uint64(len(w.last.entries[i]))
		}
		for range rng.IntN(120) {
			require.NoError(t, w.step(l))
		}
		for i := range upto { // replaced entries were not committed
			upto[i] = min(upto[i], w.last.floor[i]+uint64(len(w.last.entries[i])))
		}
		require.NoError(t, l.Sync())
		abandon(l)
		for range 12 {
			fs := copyOf(mem)
			segs := segmentFiles(t, fs)
			for range 1 + rng.IntN(2) {
				name := segs[rng.IntN(len(segs))]
				put(t, fs, name, int64(rng.IntN(testSegment)), make([]byte, rng.IntN(200)))
			}
			if rng.IntN(8) == 0 {
				require.NoError(t, fs.Remove(segs[rng.IntN(len(segs))]))
			}
			got, err := openCovered(fs, &Cover{Instances: []uint32{0, 1, 2}, Upto: func(i uint32) uint64 { return upto[i] }})
			var corrupt *CorruptError
			if errors.As(err, &corrupt) {
				refused++
				continue
			}
			require.NoError(t, err)
			require.NoError(t, got.check())
			requireUncovered(t, got, w.last, upto)
			opened++
			require.NoError(t, got.Close())
		}
	}
	t.Logf("%d opened, %d refused", opened, refused)
	require.Greater(t, opened, 50)
	require.Greater(t, refused, 50)
}

func requireUncovered(t *testing.T, l *Log, want *model, upto []uint64) {
	t.Helper()
	have := modelOf(t, l)
	for i := range upto {
		require.Equal(t, want.state[i], have.state[i], "state of instance %d", i)
		next := want.floor[i] + uint64(len(want.entries[i])) + 1
		require.Equal(t, next, have.floor[i]+uint64(len(have.entries[i]))+1, "the end of instance %d", i)
		require.LessOrEqual(t, have.floor[i], max(want.floor[i], upto[i]))
		for x := max(have.floor[i], want.floor[i]) + 1; x < next; x++ {
			require.Equal(t, want.entries[i][x-want.floor[i]-1], have.entries[i][x-have.floor[i]-1], "entry %d of instance %d",
				x, i)
		}
	}
}

// TestDamageAndEntriesThatWereReplaced: a batch with an entry that a snapshot stands for is damaged. The mark that
// drops older segments comes after it in the same segment, so that a start misses these segments. What it finds first
// are entries that were replaced: entries before them are missing, and is not needed them.
func TestDamageAndEntriesThatWereReplaced(t *testing.T) {
	fs := vfs.NewMem()
	l := openMem(t, fs)
	write := func(index uint64, data string) {
		require.NoError(t, l.Append([]Record{entry(1, index, append([]byte(data), make([]byte, 1000)...)),
			state(1, data, 3)}))
		require.NoError(t, l.Sync())
	}
	n := uint64(0)
	for l.current().seq < 2 {
		n++
		write(n, "old")
	}
	require.Greater(t, n, uint64(5))
	write(n+1, "old")
	at := l.end
	write(3, "new")
	write(4, "new")
	require.NoError(t, l.Compact(1, 3))
	require.NoError(t, l.Sync())
	require.Equal(t, uint64(2), l.first)
	abandon(l)
	flip(t, fs, "/d/log/0000000000000002.wal", at+batchHeaderSize+recordHeaderSize+1, 2)
	for range 2 { // and again
		l, err := openCovered(fs, covering(0, 3))
		require.NoError(t, err)
		require.Equal(t, uint64(3), l.Floor(1))
		data, err := l.ReadEntry(1, 4)
		require.NoError(t, err)
		require.Equal(t, "new", string(data[:3]))
		_, err = l.ReadEntry(1, 5)
		require.Error(t, err, "it was replaced")
		abandon(l)
	}
}
