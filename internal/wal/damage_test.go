package wal

import (
	"errors"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/vfs/errorfs"
)

// fullLog makes a closed log of five segments or more, all of them needed.
func fullLog(t *testing.T) (*vfs.Mem, []string) {
	t.Helper()
	fs := vfs.NewMem()
	l := openMem(t, fs)
	for i := uint64(1); l.current().seq < 5; i++ {
		require.NoError(t, l.Append([]Record{entry(1, i, payload(1, i, 1000))}))
		require.NoError(t, l.Sync())
	}
	require.NoError(t, l.Close())
	return fs, segmentFiles(t, fs)
}

func open(fs vfs.FS, identity string) error {
	l, err := Open(Options{FS: fs, Dir: "/d/log", SegmentBytes: testSegment, Identity: []byte(identity)})
	if err == nil {
		err = l.Close()
	}
	return err
}

func copyFile(t *testing.T, fs vfs.FS, from, to string, bytes int) {
	t.Helper()
	b, err := ReadFile(fs, from, 1<<20)
	require.NoError(t, err)
	require.NoError(t, WriteFile(fs, to, b[:min(bytes, len(b))]))
}

func TestDamagedDirectory(t *testing.T) {
	tests := []struct {
		name   string
		damage func(t *testing.T, fs vfs.FS, segs []string)
		file   int // index of the file that must be named
		detail string
	}{
		{"a segment in the middle is gone", func(t *testing.T, fs vfs.FS, segs []string) {
			require.NoError(t, fs.Remove(segs[2]))
		}, 2, "missing"},
		{"the first segment is gone", func(t *testing.T, fs vfs.FS, segs []string) {
			require.NoError(t, fs.Remove(segs[0]))
		}, 0, "missing"},
		{"the last segment is gone", func(t *testing.T, fs vfs.FS, segs []string) {
			require.NoError(t, fs.Remove(segs[4]))
		}, 4, "the one before it is full"},
		{"a segment is a copy of another", func(t *testing.T, fs vfs.FS, segs []string) {
			copyFile(t, fs, segs[1], segs[3], 1<<20)
		}, 3, "segment 2 by its header"},
		{"the last segment is cut short", func(t *testing.T, fs vfs.FS, segs []string) {
			copyFile(t, fs, segs[4], segs[4], testSegment-1)
		}, 4, "the file has"},
		{"a segment is cut to nothing", func(t *testing.T, fs vfs.FS, segs []string) {
			copyFile(t, fs, segs[1], segs[1], 0)
		}, 1, "header has 0"},
		{"a segment is something else", func(t *testing.T, fs vfs.FS, segs []string) {
			require.NoError(t, WriteFile(fs, segs[0], make([]byte, testSegment)))
		}, 0, "not a segment"},
		{"a whole segment was never written", func(t *testing.T, fs vfs.FS, segs []string) {
			b, err := ReadFile(fs, segs[2], 1<<20)
			require.NoError(t, err)
			clear(b[segmentHeaderSize:])
			require.NoError(t, WriteFile(fs, segs[2], b))
		}, 2, "damaged"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fs, segs := fullLog(t)
			test.damage(t, fs, segs)
			var corrupt *CorruptError
			require.ErrorAs(t, open(fs, "me"), &corrupt)
			require.Equal(t, segs[test.file], corrupt.File)
			require.Contains(t, corrupt.Error(), test.detail)
			before, err := fs.List("/d/log")
			require.NoError(t, err)
			require.ErrorAs(t, open(fs, "me"), &corrupt, "trying again changes nothing")
			after, err := fs.List("/d/log")
			require.NoError(t, err)
			require.ElementsMatch(t, before, after)
		})
	}
}

func TestForeignDirectory(t *testing.T) {
	fs, segs := fullLog(t)
	var foreign *IdentityError
	require.ErrorAs(t, open(fs, "you"), &foreign)
	require.Equal(t, "me", string(foreign.Have))
	require.Equal(t, "you", string(foreign.Want))
	require.NoError(t, open(fs, "me"), "and it is as it was")

	b, err := ReadFile(fs, segs[4], 1<<20)
	require.NoError(t, err)
	h, err := decodeSegmentHeader(b, firstVersion)
	require.NoError(t, err)
	page := h.encode()
	page[8] = firstVersion + 1
	crc := segmentHeaderCRC(page)
	page[12], page[13], page[14], page[15] = byte(crc), byte(crc>>8), byte(crc>>16), byte(crc>>24)
	require.NoError(t, WriteFile(fs, segs[4], append(page, b[segmentHeaderSize:]...)))
	var version *VersionError
	require.ErrorAs(t, open(fs, "me"), &version)
	require.EqualValues(t, firstVersion+1, version.Have)
	require.Equal(t, segs[4], version.File)
}

func TestOpenTwice(t *testing.T) {
	fs := vfs.NewMem()
	l := openMem(t, fs)
	var locked *LockedError
	require.ErrorAs(t, open(fs, "me"), &locked)
	require.NoError(t, l.Close())
	require.NoError(t, open(fs, "me"))
	require.NoError(t, l.Close(), "closing twice is no error")
	require.Equal(t, ErrClosed, l.Sync())
	_, err := l.ReadEntry(1, 1)
	require.Equal(t, ErrClosed, err)
}

// TestTornOrDamaged: the same flipped bit is damage if it is known that the batch was
// durable, by a seal or by the mark, and a torn batch otherwise.
func TestTornOrDamaged(t *testing.T) {
	write := func(seal, mark bool) (*vfs.Mem, int64) {
		fs := vfs.NewMem()
		l := openMem(t, fs)
		require.NoError(t, l.Append([]Record{entry(1, 1, []byte("one"))}))
		require.NoError(t, l.Sync())
		require.NoError(t, l.Append([]Record{entry(1, 2, []byte("two"))}))
		require.NoError(t, l.Sync())
		at := l.index.find(1).entries.at(1)
		if seal {
			require.NoError(t, l.seal())
			require.NoError(t, l.seal(), "a second seal writes nothing")
		}
		left := copyOf(fs)
		if !mark {
			loseMark(t, left, "/d/log")
		}
		return left, int64(at.off)
	}
	for _, known := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
		fs, offset := write(known[0], known[1])
		flip(t, fs, "/d/log/0000000000000001.wal", offset+recordHeaderSize, 3)
		l, err := Open(Options{FS: fs, Dir: "/d/log", SegmentBytes: testSegment, Identity: []byte("me")})
		if known[0] || known[1] {
			var corrupt *CorruptError
			require.ErrorAs(t, err, &corrupt)
			require.Equal(t, offset-batchHeaderSize, corrupt.Offset)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []string{"entry 1 one"}, replayAll(t, l, 1))
		require.NoError(t, l.Close())
	}
}

// TestReadDetectsDamage: a running log does not serve damaged bytes.
func TestReadDetectsDamage(t *testing.T) {
	fs := vfs.NewMem()
	l := openMem(t, fs)
	require.NoError(t, l.Append([]Record{entry(1, 1, []byte("one"))}))
	require.NoError(t, l.Sync())
	at := int64(l.index.find(1).entries.at(0).off)
	flip(t, fs, "/d/log/0000000000000001.wal", at+recordHeaderSize+1, 0)
	_, err := l.ReadEntry(1, 1)
	var corrupt *CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.Equal(t, at, corrupt.Offset)
	require.ErrorAs(t, l.Replay(1, func(Kind, uint64, []byte) error { return nil }), &corrupt)
	require.NoError(t, l.Close())
}

// TestDiskFull: a full disk is detected when the next segment is created or renamed.
func TestDiskFull(t *testing.T) {
	for _, kind := range []errorfs.OpKind{errorfs.OpFilePreallocate, errorfs.OpCreate, errorfs.OpFileWriteAt} {
		mem := vfs.NewMem()
		full := false
		fs := hooked(mem, func(o errorfs.Op) error {
			if full && o.Kind == kind {
				return syscall.ENOSPC
			}
			return nil
		})
		l := openMem(t, fs)
		require.NoError(t, l.Append([]Record{entry(1, 1, []byte("one"))}))
		require.NoError(t, l.Sync())
		full = true
		var err error
		for i := uint64(2); err == nil; i++ {
			if err = l.Append([]Record{entry(1, i, payload(1, i, 900))}); err == nil {
				err = l.Sync()
			}
		}
		var noSpace *FullError
		require.IsType(t, noSpace, err, "the log is not shut")
		require.ErrorAs(t, err, &noSpace)
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.Equal(t, "/d/log", noSpace.Dir)
		require.Positive(t, noSpace.Need)
		full = false
		require.NoError(t, l.Append([]Record{state(1, "goes on", 0)}))
		require.NoError(t, l.Close())
		require.NoError(t, open(mem, "me"))
	}
	mem := vfs.NewMem()
	var noSpace *FullError
	require.ErrorAs(t, open(hooked(mem, func(o errorfs.Op) error {
		if o.Kind == errorfs.OpFilePreallocate {
			return syscall.ENOSPC
		}
		return nil
	}), "me"), &noSpace)
	require.EqualValues(t, testSegment, noSpace.Need)
}

// TestPrepareFull: there was no space to prepare the next segment, but there is later.
func TestPrepareFull(t *testing.T) {
	mem := vfs.NewMem()
	full := false
	l := openMem(t, hooked(mem, func(o errorfs.Op) error {
		if full && o.Kind == errorfs.OpFilePreallocate {
			return syscall.ENOSPC
		}
		return nil
	}))
	full = true
	for i := uint64(1); l.preparing == nil; i++ {
		require.NoError(t, l.Append([]Record{entry(1, i, payload(1, i, 900))}))
		require.NoError(t, l.Sync())
		l.prepare(inGoroutine)
	}
	require.NoError(t, l.awaitPrepared())
	require.Nil(t, l.next)
	full = false
	next := l.index.find(1).next()
	require.NoError(t, l.Append([]Record{entry(1, next, payload(1, next, 12000))}))
	require.NoError(t, l.Close())
}

func TestWrongOrder(t *testing.T) {
	l := openMem(t, vfs.NewMem())
	require.NoError(t, l.Append([]Record{entry(1, 5, nil), entry(1, 6, nil), entry(1, 5, nil)}))
	var order *OrderError
	err := l.Append([]Record{entry(1, 7, nil)})
	require.ErrorAs(t, err, &order)
	require.Equal(t, OrderError{Instance: 1, Kind: KindEntry, Index: 7, First: 5, Next: 6}, *order)
	require.Equal(t, err, l.Sync(), "the log is shut")
	require.Error(t, l.Close())
}

func TestErrorTexts(t *testing.T) {
	texts := map[string]error{
		`wal: /d belongs to "a", not to "b"`: &IdentityError{Dir: "/d", Have: []byte("a"),
			Want: []byte("b")},
		"wal: /d/f is damaged at offset 7: x":                &CorruptError{File: "/d/f", Offset: 7, Detail: "x"},
		"wal: the log is shut after a failed sync: boom":     &FailedError{Op: "sync", Err: errors.New("boom")},
		"wal: no space for 9 bytes in /d: boom":              &FullError{Dir: "/d", Need: 9, Err: errors.New("boom")},
		"wal: entry 3 of instance 1 was compacted (up to 4)": &CompactedError{Instance: 1, Index: 3, Floor: 4},
		"wal: instance 1 has no entry 3":                     &NotFoundError{Instance: 1, Index: 3},
		"wal: a record of 5 bytes is larger than 4":          &TooLargeError{Bytes: 5, Limit: 4},
		"wal: /d is in use: boom":                            &LockedError{Dir: "/d", Err: errors.New("boom")},
		"wal: f has version 2, this program knows versions up to 1": &VersionError{File: "f", Have: 2,
			Want: 1},
		"wal: entry 7 of instance 1 is out of order: want 5 to 6": &OrderError{Instance: 1, Kind: KindEntry, Index: 7,
			First: 5, Next: 6},
	}
	for text, err := range texts {
		require.EqualError(t, err, text)
	}
}
