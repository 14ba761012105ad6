package wal

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/internal/vfs"
)

func cellOf(instance uint32, number uint64, data string) Record {
	return Record{Instance: instance, Kind: KindCell, Index: number, Parts: [2][]byte{[]byte(data)}}
}

func dropOf(instance uint32, number uint64) Record {
	return Record{Instance: instance, Kind: KindDrop, Index: number}
}

func base(instance uint32, index uint64) Record {
	return Record{Instance: instance, Kind: KindBase, Index: index}
}

// Entries and bases do not change cells. A cell has what was last written to it.
func TestCellsAreNextToEntries(t *testing.T) {
	fs := vfs.NewMem()
	l := openMem(t, fs)
	require.NoError(t, l.Append([]Record{cellOf(1, 7, "a"), cellOf(1, 9, "b"), entry(1, 1, []byte("x")), cellOf(1, 7, "c"),
		dropOf(1, 8)}))
	require.Equal(t, []string{"entry 1 x", "cell 7 c", "cell 9 b"}, replayAll(t, l, 1), "before a sync")
	require.NoError(t, l.Sync())
	parts := Record{Instance: 1, Kind: KindCell, Index: 4, Parts: [2][]byte{[]byte("two "), []byte("parts")}}
	require.NoError(t, l.Append([]Record{entry(1, 1, []byte("y")), base(1, 5), dropOf(1, 9), cellOf(1, 3, "d"), parts,
		cellOf(2, 7, "other")}))
	for range 3 {
		require.Equal(t, []string{"base 5 ", "cell 3 d", "cell 4 two parts", "cell 7 c"}, replayAll(t, l, 1))
		require.Equal(t, []string{"cell 7 other"}, replayAll(t, l, 2))
		require.NoError(t, l.check())
		require.NoError(t, l.Close())
		l = openMem(t, fs)
	}
	require.NoError(t, l.Close())
}

// passBy writes entries of instance 2 into the given number of further segments, and compacts them.
func passBy(t *testing.T, l *Log, from, segments uint64) (next uint64) {
	t.Helper()
	for until := l.current().seq + segments; l.current().seq < until; from++ {
		require.NoError(t, l.Append([]Record{entry(2, from, make([]byte, 900))}))
	}
	require.NoError(t, l.Compact(2, from-1))
	require.NoError(t, l.Sync())
	require.NoError(t, l.check())
	return from
}

// Cells do not pin segments for long: each compaction rewrites some of them, the oldest first, even if they are
// larger than one segment together.
func TestCellsAreWrittenAgain(t *testing.T) {
	fs := vfs.NewMem()
	l := openMem(t, fs)
	large := string(make([]byte, 3000))
	var want []string
	for i := range uint64(20) {
		require.NoError(t, l.Append([]Record{cellOf(1, i, large)}))
		want = append(want, fmt.Sprintf("cell %d %s", i, large))
	}
	require.Greater(t, l.current().seq, uint64(3))
	next, most := uint64(1), 0
	for range 200 {
		next = passBy(t, l, next, 1)
		most = max(most, len(l.segs))
	}
	require.Less(t, most, 60, "the log does not grow without bounds")
	require.Greater(t, l.first, uint64(100))
	require.NoError(t, l.Close())
	l = openMem(t, fs)
	require.Equal(t, want, replayAll(t, l, 1))
	for i := range uint64(20) {
		require.NoError(t, l.Append([]Record{dropOf(1, i)}))
	}
	passBy(t, l, next, 2)
	require.Less(t, len(l.segs), 4)
	require.Empty(t, replayAll(t, l, 1))
	require.NoError(t, l.Close())
}

// If compactions are rare, each of them rewrites more cells: the length of the log depends on the cells, not on the
// frequency of compactions.
func TestCellsAreWrittenAgainBetweenRareCompactions(t *testing.T) {
	l := openMem(t, vfs.NewMem())
	for i := range uint64(20) {
		require.NoError(t, l.Append([]Record{cellOf(1, i, string(make([]byte, 3000)))}))
	}
	const apart = 8
	segment := l.current().capacity
	for next := uint64(1); l.first < 100; {
		next = passBy(t, l, next, apart)
		require.Less(t, l.Size(), carriedCells*l.CellBytes()+2*apart*segment)
	}
	require.NoError(t, l.Close())
}

// Cells are rewritten repeatedly and nothing is applied, so no compaction is requested. The log stays short on its
// own.
func TestCellsAreWrittenAgainWithoutCompactions(t *testing.T) {
	l := openMem(t, vfs.NewMem())
	c := NewCommits(l, nil, atOnce)
	for i := range uint64(4000) {
		require.True(t, c.Submit([]Record{cellOf(1, i%20, string(make([]byte, 3000)))},
			func(err error) { require.NoError(t, err) }))
		drain(c)
		require.Less(t, l.Size(), carriedCells*l.CellBytes()+2*crowdedSegments*l.current().capacity)
	}
	require.NoError(t, l.check())
	require.NotZero(t, l.first)
	c.Close()
	require.NoError(t, l.Close())
}

// A disk is full, and there are cells in the segments that could be reused. The space that every segment reserves is
// enough for small cells.
func TestCellsOnFullDisk(t *testing.T) {
	d := newTight(6 * tightSegment)
	l, b := openTight(t, d)
	for i := range uint64(6) {
		require.NoError(t, l.Append([]Record{cellOf(1, i, "cell")}))
	}
	var full *FullError
	var err error
	last := uint64(0)
	for ; err == nil; last++ {
		if err = l.Append([]Record{entry(2, last+1, make([]byte, 100))}); err == nil {
			err = l.Sync()
		}
	}
	require.ErrorAs(t, err, &full)
	d.fill()
	require.NoError(t, l.Compact(2, last-1))
	require.NoError(t, l.Sync())
	require.Greater(t, l.first, uint64(3))
	for i := last; i < last+100; i++ {
		require.NoError(t, l.Append([]Record{entry(2, i, make([]byte, 100)), cellOf(1, 9, "new")}))
	}
	require.NoError(t, l.Close())
	require.NoError(t, b.Close())
	l, b = openTight(t, d)
	require.Len(t, replayAll(t, l, 1), 7)
	require.NoError(t, l.Close())
	require.NoError(t, b.Close())
}

// A batch is damaged. It may have had any cell, so a log that may have cells does not open, whatever a snapshot
// covers.
func TestDamageAndCells(t *testing.T) {
	for _, name := range []string{"none", "before", "after", "may be"} {
		t.Run(name, func(t *testing.T) {
			fs, at := numbered(t, 40)
			cover := covering(0, 20)
			cover.Cells = name == "may be"
			if name == "before" {
				at = celled(t, fs)
			}
			l, err := openCovered(fs, cover)
			require.NoError(t, err)
			if name == "after" {
				require.NoError(t, l.Append([]Record{cellOf(2, 1, "x")}))
			}
			require.NoError(t, l.Close())
			flip(t, fs, "/d/log/0000000000000001.wal", at[19]+batchHeaderSize+recordHeaderSize+1, 2)
			l, err = openCovered(fs, cover)
			if name == "none" {
				require.NoError(t, err)
				require.NoError(t, l.Close())
				return
			}
			var corrupt *CorruptError
			require.ErrorAs(t, err, &corrupt)
			require.Contains(t, err.Error(), "were perhaps in it")
		})
	}
}

// celled makes the log of numbered, with a cell before everything else.
func celled(t *testing.T, fs *vfs.Mem) (at []int64) {
	require.NoError(t, fs.RemoveAll("/d"))
	l := openMem(t, fs)
	require.NoError(t, l.Append([]Record{cellOf(1, 1, "x")}))
	for i := uint64(1); i <= 40; i++ {
		at = append(at, l.end)
		require.NoError(t, l.Append([]Record{entry(1, i, payload(1, i, 100)), state(1, fmt.Sprintf("%03d", i), 3)}))
		require.NoError(t, l.Sync())
	}
	require.NoError(t, l.Close())
	return at
}

// A member that runs knows its cells. Once they are written again behind damage, the log opens with it.
func TestCellsAreMended(t *testing.T) {
	for _, live := range []bool{true, false} {
		fs := vfs.NewMem()
		at := celled(t, fs)
		cover := covering(0, 40)
		cover.Cells = true
		l, err := openCovered(fs, cover)
		require.NoError(t, err)
		want := []string{}
		if live {
			want = []string{"cell 1 x", "cell 5 y"}
			require.NoError(t, l.Append([]Record{cellOf(1, 5, "y")}))
		} else {
			require.NoError(t, l.Append([]Record{dropOf(1, 1)}))
		}
		require.NoError(t, l.Append([]Record{entry(1, 41, nil), state(1, "041", 3)}))
		require.NoError(t, l.Sync())
		flip(t, fs, "/d/log/0000000000000001.wal", at[19]+batchHeaderSize+recordHeaderSize+1, 2)
		s := l.NewScrubber()
		_, found := scrubbed(s)
		require.Len(t, found, 1)
		require.Equal(t, []Lost{{Instance: 1, Last: 20, Cells: true}}, found[0].Lost, "whatever was there")
		require.NoError(t, l.Rewrite(1))
		require.NoError(t, l.Compact(1, 30))
		require.NoError(t, l.Sync())
		_, found = scrubbed(s)
		require.Empty(t, found[0].Lost, "it is mended")
		for range 2 {
			abandon(l)
			l, err = openCovered(fs, cover)
			require.NoError(t, err)
			require.NoError(t, l.check())
			all := replayAll(t, l, 1)
			require.Len(t, all, 1+11+len(want))
			require.Subset(t, all, want)
		}
		abandon(l)
		flip(t, fs, "/d/log/0000000000000001.wal", l.start-20, 2)
		_, err = openCovered(fs, cover)
		require.Error(t, err, "what was written again is damaged too")
	}
}

// TestDamageAnywhereWithCells damages logs in random places, and rewrites the cells. Whenever such a log opens it has
// every cell unchanged.
func TestDamageAnywhereWithCells(t *testing.T) {
	testsize.Long(t)
	opened, refused := 0, 0
	for seed := uint64(1); seed <= 60; seed++ {
		mem := vfs.NewMem()
		w := newWorkload(seed)
		w.sizes, w.cells = []int{0, 3, 40, 700}, true
		l := openMem(t, mem)
		rng := rand.New(rand.NewPCG(seed, 9))
		for l.current().seq < 2+seed%4 {
			require.NoError(t, w.step(l))
		}
		upto := make([]uint64, modelInstances)
		for i := range upto {
			upto[i] = w.last.floor[i] + uint64(len(w.last.entries[i]))
		}
		from := l.end
		again := func() {
			for i := range upto {
				require.NoError(t, l.Rewrite(uint32(i)))
				require.NoError(t, l.Append([]Record{base(uint32(i), upto[i])}))
				w.last.apply(op{record: base(uint32(i), upto[i])})
			}
		}
		again()
		for range rng.IntN(60) {
			require.NoError(t, w.step(l))
		}
		for i := range upto {
			upto[i] = min(upto[i], w.last.floor[i]+uint64(len(w.last.entries[i])))
		}
		require.NoError(t, l.Sync())
		abandon(l)
		for range 12 {
			fs := copyOf(mem)
			segs := segmentFiles(t, fs)
			put(t, fs, segs[rng.IntN(len(segs))], rng.Int64N(from), make([]byte, rng.IntN(200)))
			got, err := openCovered(fs,
				&Cover{Instances: []uint32{0, 1, 2}, Cells: true, Upto: func(i uint32) uint64 { return upto[i] }})
			var corrupt *CorruptError
			if errors.As(err, &corrupt) {
				refused++
				continue
			}
			require.NoError(t, err)
			require.NoError(t, got.check())
			requireUncovered(t, got, w.last, upto)
			have := modelOf(t, got)
			for i := range upto {
				require.True(t, maps.Equal(w.last.cells[i], have.cells[i]), "seed %d: cells of instance %d are %v, want %v", seed,
					i, have.cells[i], w.last.cells[i])
			}
			opened++
			require.NoError(t, got.Close())
		}
	}
	t.Logf("%d opened, %d refused", opened, refused)
	require.Greater(t, opened, 50)
	require.Greater(t, refused, 50)
}

// A log that was written before cells existed opens, and accepts cells.
func TestLogFromBeforeCells(t *testing.T) {
	dir := t.TempDir()
	files, err := filepath.Glob("testdata/before-cells/*")
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(f)), b, 0o644))
	}
	var cells []string
	for i := range uint64(3) {
		l, err := Open(Options{Dir: dir, SegmentBytes: testSegment, Identity: []byte("old")})
		require.NoError(t, err)
		require.Equal(t, append([]string{"state 0 state", "base 4 base", "entry 6 another", "entry 7 end"}, cells...),
			replayAll(t, l, 1))
		require.Equal(t, []string{"entry 1 one"}, replayAll(t, l, 2))
		require.NoError(t, l.Append([]Record{cellOf(1, i, "new")}))
		cells = append(cells, fmt.Sprintf("cell %d new", i))
		require.NoError(t, l.Close())
	}
}

// The rewritten cells are damaged too, before their mark was written. Then the mark proves nothing.
func TestDamageToCellsThatWereWrittenAgain(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		fs := vfs.NewMem()
		cover := covering(0, 5)
		cover.Cells = true
		l, err := openCovered(fs, cover)
		require.NoError(t, err)
		for i := range uint64(8) {
			require.NoError(t, l.Append([]Record{{Instance: 1, Kind: KindCell, Index: i,
				Parts: [2][]byte{payload(1, i, 3000)}}}))
		}
		require.NoError(t, l.Rewrite(1))
		require.NoError(t, l.Append([]Record{base(1, 5), state(1, "s", 1), entry(1, 6, nil)}))
		require.NoError(t, l.Sync())
		require.NoError(t, l.Append([]Record{entry(1, 7, nil)}))
		require.NoError(t, l.Sync())
		first, third := l.index.find(1).cells[0].at, l.index.find(1).cells[3].at
		require.Less(t, first.seg, third.seg, "they are in several batches")
		abandon(l)
		if damaged {
			flip(t, fs, l.path(uint64(third.seg), liveSuffix), int64(third.off)+recordHeaderSize+9, 1)
		} else {
			flip(t, fs, l.path(1, liveSuffix), segmentHeaderSize+batchHeaderSize+2*recordHeaderSize+9, 1)
		}
		l, err = openCovered(fs, cover)
		if damaged {
			require.ErrorContains(t, err, "cells of instance 1 were perhaps in it")
			continue
		}
		require.NoError(t, err)
		require.Len(t, replayAll(t, l, 1), 1+1+2+8)
		require.NoError(t, l.Close())
	}
}

// TestFullDiskContinuesInAJob: a disk gets full while the log writes one of several jobs. When there is space again,
// the log continues where it stopped. If it started the job again, the first entry would cut off the second one,
// whose cell is already dropped: a crash then would lose both.
func TestFullDiskContinuesInAJob(t *testing.T) {
	d := newTight(2 * tightSegment)
	l, b := openTight(t, d)
	c := NewCommits(l, b, atOnce)
	told := 0
	done := func(err error) {
		if err == nil {
			told++
		}
	}
	c.Submit([]Record{cellOf(1, 1, "accepted 1"), cellOf(1, 2, "accepted 2"), cellOf(1, 3, "accepted 3")}, done)
	drain(c)
	d.fill()
	sizes := []int{2000, 6000, 8000} // the third does not fit into the segment, and neither would all of them together
	var job []Record
	for i, n := range sizes {
		job = append(job, entry(1, uint64(i+1), make([]byte, n)), dropOf(1, uint64(i+1)))
	}
	c.Submit([]Record{state(1, "voted", 10)}, done)
	c.Submit(job, done)
	drain(c)
	require.Equal(t, 2, told, "the job in front of the full disk is durable")
	require.NotNil(t, c.Stats().Full)
	c.Close()
	drain(c)
	require.Equal(t, 2, told)
	require.NoError(t, errors.Join(b.Close(), l.Close()))

	d.grow(10 * tightSegment)
	l, b = openTight(t, d)
	var have []string
	for _, r := range replayAll(t, l, 1) {
		have = append(have, r[:min(len(r), 7)])
	}
	require.Equal(t, []string{"state 0", "entry 1", "entry 2", "cell 3 "}, have)
	require.NoError(t, errors.Join(b.Close(), l.Close()))
}
