package wal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/format"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/vfs/errorfs"
)

const testSegment = minSegmentBytes

func openMem(t testing.TB, fs vfs.FS) *Log {
	t.Helper()
	l, err := Open(Options{FS: fs, Dir: "/d/log", SegmentBytes: testSegment, Identity: []byte("me")})
	require.NoError(t, err)
	return l
}

func entry(instance uint32, index uint64, data []byte) Record {
	k := len(data) / 3
	return Record{Instance: instance, Kind: KindEntry, Index: index, Parts: [2][]byte{data[:k], data[k:]}}
}

func payload(instance uint32, index uint64, n int) []byte {
	b := bytes.Repeat([]byte{byte(index), byte(instance)}, (n+1)/2)[:n]
	copy(b, fmt.Sprintf("%d/%d", instance, index))
	return b
}

func replayAll(t testing.TB, l *Log, instance uint32) (all []string) {
	t.Helper()
	require.NoError(t, l.Replay(instance, func(k Kind, index uint64, data []byte) error {
		all = append(all, fmt.Sprintf("%v %d %s", k, index, data))
		return nil
	}))
	return all
}

func TestAppendReopenReplay(t *testing.T) {
	fs := vfs.NewMem()
	l := openMem(t, fs)
	require.NoError(t, l.Append([]Record{
		entry(1, 1, []byte("a1")), entry(2, 1, []byte("b1")), entry(1, 2, []byte("a2")), entry(1, 3, []byte("a3")),
		{Instance: 1, Kind: KindState, Parts: [2][]byte{[]byte("old")}},
		{Instance: 1, Kind: KindState, Parts: [2][]byte{[]byte("ne"), []byte("w")}},
		entry(1, 2, []byte("A2")),
		{Instance: 2, Kind: KindBase, Index: 7, Parts: [2][]byte{[]byte("base")}}, entry(2, 8, []byte("b8")),
	}))
	want1 := []string{"state 0 new", "entry 1 a1", "entry 2 A2"}
	want2 := []string{"base 7 base", "entry 8 b8"}
	data, err := l.ReadEntry(1, 2)
	require.NoError(t, err)
	require.Equal(t, "A2", string(data), "an entry can be read before it is written")
	require.NoError(t, l.Sync())
	for life := 0; life < 3; life++ {
		require.Equal(t, []uint32{1, 2}, l.Instances())
		require.Equal(t, want1, replayAll(t, l, 1))
		require.Equal(t, want2, replayAll(t, l, 2))
		_, err = l.ReadEntry(1, 3)
		require.Equal(t, &NotFoundError{Instance: 1, Index: 3}, err)
		_, err = l.ReadEntry(2, 7)
		require.Equal(t, &CompactedError{Instance: 2, Index: 7, Floor: 7}, err)
		require.NoError(t, l.Close())
		l = openMem(t, fs)
	}
	require.NoError(t, l.Close())
}

func TestManySegments(t *testing.T) {
	fs := vfs.NewMem()
	l := openMem(t, fs)
	for i := uint64(1); i <= 200; i++ {
		require.NoError(t, l.Append([]Record{entry(3, i, payload(3, i, 1000))}))
		require.NoError(t, l.Sync())
	}
	check := func(from uint64) {
		t.Helper()
		for i := from; i <= 200; i++ {
			data, err := l.ReadEntry(3, i)
			require.NoError(t, err)
			require.Equal(t, payload(3, i, 1000), data)
		}
	}
	check(1)
	require.NoError(t, l.Close())
	l = openMem(t, fs)
	check(1)
	before := l.Size()
	require.NoError(t, l.Compact(3, 150))
	require.NoError(t, l.Sync())
	require.Less(t, l.Size(), before/2)
	check(151)
	require.NoError(t, l.Close())
	l = openMem(t, fs)
	check(151)
	_, err := l.ReadEntry(3, 150)
	require.Equal(t, &CompactedError{Instance: 3, Index: 150, Floor: 150}, err)
	require.NoError(t, l.Close())
}

// TestIdleInstancePinsNothing: the records of an instance that wrote little and long ago are rewritten.
func TestIdleInstancePinsNothing(t *testing.T) {
	fs := vfs.NewCrashableMem()
	l := openMem(t, fs)
	require.NoError(t, l.Append([]Record{
		{Instance: 7, Kind: KindState, Parts: [2][]byte{[]byte("s7")}},
		{Instance: 7, Kind: KindBase, Index: 3, Parts: [2][]byte{[]byte("b7")}},
		entry(7, 4, []byte("e4")), entry(7, 5, []byte("e5")),
		{Instance: 8, Kind: KindState, Parts: [2][]byte{[]byte("s8")}},
	}))
	for i := uint64(1); i <= 300; i++ {
		require.NoError(t, l.Append([]Record{entry(1, i, payload(1, i, 900))}))
		require.NoError(t, l.Sync())
		require.NoError(t, l.Compact(1, i-min(i, 3)))
		require.NoError(t, l.check())
	}
	require.NoError(t, l.Sync())
	require.Less(t, l.Size(), int64(8*testSegment))
	require.LessOrEqual(t, len(l.free), 8)
	for range 2 {
		require.Equal(t, []string{"state 0 s7", "base 3 b7", "entry 4 e4", "entry 5 e5"}, replayAll(t, l, 7))
		require.Equal(t, []string{"state 0 s8"}, replayAll(t, l, 8))
		require.Len(t, replayAll(t, l, 1), 3)
		l = openMem(t, fs.Crash(0, nil))
	}
}

// TestReuse: files are reused, even by the next incarnation, and the pool is small.
func TestReuse(t *testing.T) {
	fs := vfs.NewMem()
	l := openMem(t, fs)
	index := uint64(0)
	turn := func(n int) {
		for range n {
			index++
			require.NoError(t, l.Append([]Record{entry(1, index, payload(1, index, 5000))}))
			require.NoError(t, l.Sync())
			require.NoError(t, l.Compact(1, index-1))
		}
	}
	turn(50)
	names, err := fs.List("/d/log")
	require.NoError(t, err)
	require.LessOrEqual(t, len(names), 3+minFree+1, "%v", names)
	free := len(l.free)
	require.Positive(t, free)
	require.NoError(t, l.Close())
	l = openMem(t, fs)
	require.Equal(t, free, len(l.free))
	turn(50)
	data, err := l.ReadEntry(1, index)
	require.NoError(t, err)
	require.Equal(t, payload(1, index, 5000), data)
	require.NoError(t, l.Close())
}

// TestLargeRecords: a record larger than a segment gets a segment of its own size.
func TestLargeRecords(t *testing.T) {
	for _, fs := range []vfs.FS{vfs.NewMem(), vfs.OS} {
		dir := "/d/log"
		if fs == vfs.OS {
			dir = t.TempDir() + "/a/b"
		}
		o := Options{FS: fs, Dir: dir, SegmentBytes: testSegment, Identity: []byte("me")}
		l, err := Open(o)
		require.NoError(t, err)
		sizes := []int{10, largePart*3 + 1, 5, 3 << 20, 100, largePart, 1 << 20, 0}
		var records []Record
		for k, size := range sizes {
			records = append(records, entry(1, uint64(k+1), payload(1, uint64(k+1), size)))
		}
		require.NoError(t, l.Append(records[:4]))
		require.NoError(t, l.Append(records[4:]))
		for range 3 {
			for k, size := range sizes {
				data, err := l.ReadEntry(1, uint64(k+1))
				require.NoError(t, err)
				require.Equal(t, payload(1, uint64(k+1), size), data)
			}
			require.NoError(t, l.Close())
			l, err = Open(o)
			require.NoError(t, err)
		}
		require.NoError(t, l.Compact(1, uint64(len(sizes))))
		require.NoError(t, l.Sync())
		require.LessOrEqual(t, l.Size(), int64(2*testSegment))
		require.NoError(t, l.Close())
	}
}

// TestAppendKeepsNothing: the caller may reuse the records after Append.
func TestAppendKeepsNothing(t *testing.T) {
	l := openMem(t, vfs.NewMem())
	for k, size := range []int{10, largePart, 4 * largePart} {
		data := payload(1, uint64(k+1), size)
		r := []Record{entry(1, uint64(k+1), data)}
		want := string(data)
		require.NoError(t, l.Append(r))
		clear(data)
		got, err := l.ReadEntry(1, uint64(k+1))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	require.NoError(t, l.Close())
}

// TestNoAllocation: a record allocates no memory, except for the index.
func TestNoAllocation(t *testing.T) {
	l, err := Open(Options{FS: vfs.NewMem(), Dir: "/log", SegmentBytes: 8 << 20})
	require.NoError(t, err)
	records := make([]Record, 64)
	index := uint64(0)
	allocs := testing.AllocsPerRun(200, func() {
		for i := range records {
			index++
			records[i] = Record{Instance: 1, Kind: KindEntry, Index: index, Parts: [2][]byte{make([]byte, 0), nil}}
		}
		if l.Append(records) != nil || l.flush() != nil {
			t.Fatal("append failed")
		}
	})
	require.Less(t, allocs, 1.0, "per 64 records")
	require.NoError(t, l.Close())
}

func TestPlaces(t *testing.T) {
	var p places
	var dumb []place
	next := uint32(0)
	rng := rand.New(rand.NewPCG(3, 3))
	for step := range 60000 {
		switch r := rng.IntN(2000); {
		case r > 1 || len(dumb) == 0:
			next++
			p.push(place{off: next})
			dumb = append(dumb, place{off: next})
		case r == 1:
			n := rng.IntN(len(dumb) + 1)
			p.truncate(n)
			dumb = dumb[:n]
		default:
			n := rng.IntN(len(dumb) + 1)
			p.drop(n)
			dumb = dumb[n:]
		}
		require.Equal(t, len(dumb), p.n)
		if len(dumb) > 0 && (*p.at(0) != dumb[0] || *p.at(p.n - 1) != dumb[len(dumb)-1] ||
			*p.at(p.n / 2) != dumb[len(dumb)/2]) {
			t.Fatalf("step %d: places differ", step)
		}
		require.LessOrEqual(t, len(p.chunks), p.n/chunkSize+3)
	}
}

// TestGather: more pieces than one system call takes.
func TestGather(t *testing.T) {
	name := t.TempDir() + "/f"
	f, err := vfs.OS.Create(name)
	require.NoError(t, err)
	var pieces [][]byte
	var want []byte
	for i := range 3000 {
		p := payload(1, uint64(i), i%50)
		pieces = append(pieces, p)
		want = append(want, p...)
	}
	require.NoError(t, gather(f, pieces, 100))
	require.NoError(t, f.Close())
	got, err := ReadFile(vfs.OS, name, 1<<20)
	require.NoError(t, err)
	require.Equal(t, want, got[100:])
	require.Error(t, gather(f, pieces, 0), "a closed file")
}

func TestWriteFile(t *testing.T) {
	mem := vfs.NewCrashableMem()
	require.NoError(t, mem.MkdirAll("/d", 0o755))
	root, err := mem.OpenDir("/")
	require.NoError(t, err)
	require.NoError(t, root.Sync())
	require.NoError(t, WriteFile(mem, "/d/f", []byte("old")))
	rng := rand.New(rand.NewPCG(1, 1))
	ops := 0
	crashing := hooked(mem, func(errorfs.Op) error {
		for _, percent := range []int{0, 50, 100} {
			ops++
			clone := mem.Crash(percent, rng)
			b, err := ReadFile(clone, "/d/f", 100)
			require.NoError(t, err)
			require.Contains(t, []string{"old", "new, and longer"}, string(b))
		}
		return nil
	})
	require.NoError(t, WriteFile(crashing, "/d/f", []byte("new, and longer")))
	require.Greater(t, ops, 9)
	b, err := ReadFile(mem.Crash(0, nil), "/d/f", 100)
	require.NoError(t, err)
	require.Equal(t, "new, and longer", string(b))
	_, err = ReadFile(mem, "/d/f", 5)
	var large *TooLargeError
	require.ErrorAs(t, err, &large)
}

func TestInspect(t *testing.T) {
	fs := vfs.NewMem()
	l := openMem(t, fs)
	require.NoError(t, l.Append([]Record{entry(1, 1, []byte("one")), entry(2, 1, []byte("two"))}))
	require.NoError(t, l.Sync())
	require.NoError(t, l.Append([]Record{{Instance: 1, Kind: KindState, Parts: [2][]byte{[]byte("state")}}}))
	require.NoError(t, l.Sync())
	at := int64(l.index.find(1).entries.at(0).off)
	require.NoError(t, l.Close())
	lines := func() (all []string) {
		require.NoError(t, Inspect(fs, "/d/log", func(s SegmentInfo) error {
			require.NoError(t, s.Err)
			require.Equal(t, "me", string(s.Identity))
			return nil
		}, func(r RecordInfo) error {
			all = append(all, r.String())
			return nil
		}))
		return all
	}
	require.Equal(t, []string{
		"0000000000000001:00001030 batch 1 life 1 mark(first) instance 0 index 1 length 0",
		"0000000000000001:00001048 batch 1 life 1 mark(life) instance 0 index 1 length 0",
		"0000000000000001:00001090 batch 2 life 1 entry instance 1 index 1 length 3",
		"0000000000000001:000010ab batch 2 life 1 entry instance 2 index 1 length 3",
		"0000000000000001:000010f8 batch 3 life 1 state instance 1 index 0 length 5",
		"0000000000000001:00001148 batch 4 life 1 mark(seal) instance 0 index 0 length 0",
		"0000000000000001:00001160 no batch from here on",
	}, lines())
	flip(t, fs, "/d/log/"+segmentName(1, liveSuffix), at, 0)
	require.Equal(t, "0000000000000001:00001060 no good batch: the next one that may be is at 000010c8", lines()[2])
	require.Equal(t, "0000000000000001:000010f8 batch 3 life 1 state instance 1 index 0 length 5", lines()[3])
}

// TestFilesOfALaterFormat: a log has files of both formats, and a program that knows the earlier one refuses it.
func TestFilesOfALaterFormat(t *testing.T) {
	fs := vfs.NewMem()
	options := Options{FS: fs, Dir: "/d/log", SegmentBytes: testSegment, Identity: []byte("me"),
		Newest: format.First + 1}
	l, err := Open(options)
	require.NoError(t, err)
	for i := uint64(1); l.current().seq < 5; i++ {
		if l.current().seq == 3 {
			l.WriteFormat(format.First + 1)
		}
		require.NoError(t, l.Append([]Record{entry(1, i, payload(1, i, 1000))}))
		require.NoError(t, l.Sync())
	}
	require.NoError(t, l.Close())
	versions := map[uint32]int{}
	require.NoError(t, Inspect(fs, "/d/log", func(s SegmentInfo) error { versions[s.Version]++; return nil },
		func(RecordInfo) error { return nil }))
	require.Positive(t, versions[firstVersion])
	require.Positive(t, versions[firstVersion+1])
	l, err = Open(options)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorAs(t, open(fs, "me"), new(*VersionError))
	options.Newest++
	l, err = Open(options)
	require.NoError(t, err, "a still later version reads both")
	require.NoError(t, l.Close())
}
