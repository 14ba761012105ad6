package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/internal/vfs"
)

func bodyFiles(t testing.TB, fs vfs.FS) (names []string) {
	t.Helper()
	require.NoError(t, InspectBodies(fs, "/d/bodies", func(s SegmentInfo) error {
		names = append(names, s.File)
		return nil
	}, func(BodyInfo) error { return nil }))
	return names
}

// TestBodiesFlipEverywhere flips bits all over a store that was closed. No flip is mistaken for data, none restores a
// replaced body, and none costs more than one body.
func TestBodiesFlipEverywhere(t *testing.T) {
	mem := vfs.NewMem()
	b := openBodiesMem(t, mem)
	sizes := []int{0, 30, 64, 200, 2000, largePart + 7}
	for i := uint64(1); i <= 60; i++ {
		require.NoError(t, b.Append(someBody(1, i%20, i, sizes[i%6])))
		if i%4 == 0 {
			require.NoError(t, b.Sync())
		}
	}
	want := b.all()
	require.NoError(t, b.Close())
	rng := rand.New(rand.NewPCG(1, 9))
	read, noticed, stride := 0, 0, testsize.Pick(testsize.Storage, 16, 4, 1)
	for _, name := range bodyFiles(t, mem) {
		for offset := int64(0); offset < testBodies; offset += int64(rng.IntN(397*stride)) + 1 {
			bit := rng.IntN(8)
			flip(t, mem, name, offset, bit)
			r, n := flipped(t, mem, want, fmt.Sprintf("%s offset %d bit %d", name, offset, bit))
			read, noticed = read+r, noticed+n
			flip(t, mem, name, offset, bit)
		}
	}
	require.Greater(t, read, 100/stride)
	require.Greater(t, noticed, 20/stride)
}

// flipped opens a copy of a store with one bit flipped, and counts the bodies that cannot be read and the damage that
// Open found.
func flipped(t *testing.T, mem *vfs.Mem, want []Body, where string) (unread, noticed int) {
	t.Helper()
	b := openBodiesMem(t, copyOf(mem))
	require.Equal(t, want, b.all(), where)
	for _, body := range want {
		got, err := b.Read(body.Instance, body.Index)
		var corrupt *CorruptError
		switch {
		case errors.As(err, &corrupt):
			require.Contains(t, corrupt.File, "/d/bodies/")
			require.ErrorAs(t, b.Verify(body.Instance, body.Index), &corrupt)
			unread++
		case err != nil:
			t.Fatalf("%s: %v", where, err)
		case string(got.Bytes) != string(someBody(body.Instance, body.Index, body.Term, len(got.Bytes)).Bytes):
			t.Fatalf("%s: the flip was taken for data", where)
		}
	}
	require.LessOrEqual(t, unread, 1, where)
	require.Nil(t, b.lost, where)
	noticed = len(b.Damaged())
	require.LessOrEqual(t, noticed, 1, where)
	require.NoError(t, b.Close())
	return unread, noticed
}

// damagedStore has bodies 1 to 6, of which 5 replaces an older one; at are their offsets.
func damagedStore(t *testing.T) (fs *vfs.Mem, name string, at map[uint64]int64) {
	t.Helper()
	fs = vfs.NewMem()
	b := openBodiesMem(t, fs)
	require.NoError(t, b.Append(someBody(1, 5, 1, 100)))
	fill(t, b, 6, 3000)
	at = map[uint64]int64{}
	for key, h := range b.index {
		at[key.index] = h.offset
	}
	require.NoError(t, b.Close())
	return fs, bodyFiles(t, fs)[0], at
}

// TestLostHeadAndTail damages both the head and the tail of the body that replaced another: then the older one must
// not be reported as the stored body.
func TestLostHeadAndTail(t *testing.T) {
	fs, name, at := damagedStore(t)
	flip(t, fs, name, at[5]+20, 1)
	b := openBodiesMem(t, copyOf(fs))
	require.NoError(t, readBack(b, bodyKey{1, 5}, someBody(1, 5, 5, 3000)), "the tail tells whose it is")
	require.Len(t, b.Damaged(), 1)
	require.Equal(t, at[5], b.Damaged()[0].Offset)
	var corrupt *CorruptError
	require.ErrorAs(t, b.Verify(1, 5), &corrupt)
	require.NoError(t, b.Verify(1, 4))
	require.NoError(t, b.Close())

	flip(t, fs, name, at[5]+bodyHeadSize+alignBody(3000)+9, 1)
	b = openBodiesMem(t, fs)
	require.Len(t, b.Damaged(), 1)
	require.Equal(t, at[5], b.Damaged()[0].Offset)
	require.Equal(t, name, b.Damaged()[0].File)
	for i := uint64(1); i <= 6; i++ {
		require.ErrorAs(t, b.Verify(1, i), &corrupt, "perhaps body %d was replaced", i)
		require.Equal(t, at[5], corrupt.Offset)
	}
	require.NoError(t, b.Sync())
	require.NoError(t, b.Close())
	b = openBodiesMem(t, fs)
	require.ErrorAs(t, b.Verify(1, 5), &corrupt, "it is not forgotten")
	found, ok := b.Find(1, 5)
	require.True(t, ok)
	require.EqualValues(t, 1, found.Term)
	require.NoError(t, b.Append(someBody(1, 5, 7, 10)), "it is brought again")
	require.NoError(t, b.Verify(1, 5))
	b.Retain(func(body Body) bool { return body.Index == 5 })
	require.NoError(t, b.Sync())
	require.NotEqual(t, name, bodyFiles(t, fs)[0])
	require.NoError(t, b.Close())
}

// TestDamagedBodyKeepsItsFile: its file is not emptied until the body was replaced.
func TestDamagedBodyKeepsItsFile(t *testing.T) {
	fs, name, at := damagedStore(t)
	flip(t, fs, name, at[4]+bodyHeadSize+5, 3)
	b := openBodiesMem(t, fs)
	tidy := func() {
		for more := true; more; {
			var err error
			more, err = b.Compact()
			require.NoError(t, err)
			require.NoError(t, b.Sync())
		}
	}
	require.NoError(t, b.Append(someBody(2, 1, 1, 10)))
	tidy()
	_, err := b.Read(1, 4)
	var corrupt *CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.Equal(t, name, corrupt.File)
	require.Equal(t, at[4], corrupt.Offset)
	require.Contains(t, corrupt.Error(), "body 4 of instance 1: the checksum of its 3000 bytes")
	require.Equal(t, name, bodyFiles(t, fs)[0])
	repaired := someBody(1, 4, 9, 2000)
	require.NoError(t, b.Append(repaired))
	b.LogDurable()
	tidy()
	require.NotEqual(t, name, bodyFiles(t, fs)[0], "now it is not needed any more")
	require.NoError(t, readBack(b, bodyKey{1, 4}, repaired))
	for _, i := range []uint64{1, 2, 3, 5, 6} {
		require.NoError(t, readBack(b, bodyKey{1, i}, someBody(1, i, i, 3000)))
	}
	require.NoError(t, b.Close())
}

// TestTornOrDamagedBody: the same flip is damage if it is known that the body was durable,
// by a seal or by the mark, and a torn end otherwise.
func TestTornOrDamagedBody(t *testing.T) {
	for _, known := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
		seal, mark := known[0], known[1]
		mem := vfs.NewMem()
		b := openBodiesMem(t, mem)
		fill(t, b, 2, 100)
		offset := b.index[bodyKey{1, 2}].offset
		if seal {
			require.NoError(t, b.seal())
			require.NoError(t, b.seal(), "a second seal writes nothing")
		}
		fs := copyOf(mem)
		if !mark {
			loseMark(t, fs, "/d/bodies")
		}
		flip(t, fs, b.path(1, bodySuffix), offset+bodyHeadSize+3, 3)
		again := openBodiesMem(t, fs)
		_, err := again.Read(1, 2)
		var corrupt *CorruptError
		require.Equal(t, seal || mark, errors.As(err, &corrupt), "%v", err)
		require.NoError(t, readBack(again, bodyKey{1, 1}, someBody(1, 1, 1, 100)))
		require.Empty(t, again.Damaged())
		require.NoError(t, again.Close())
	}
}

func TestDamagedFilesOfBodies(t *testing.T) {
	three := func(t *testing.T) (*vfs.Mem, []string, []Body) {
		fs := vfs.NewMem()
		b := openBodiesMem(t, fs)
		fill(t, b, 25, 9000)
		all := b.all()
		require.NoError(t, b.Close())
		return fs, bodyFiles(t, fs), all
	}
	tests := []struct {
		name   string
		damage func(t *testing.T, fs vfs.FS, files []string)
		detail string
		all    bool // all bodies are there nevertheless
	}{
		{"a header is something else", func(t *testing.T, fs vfs.FS, files []string) {
			put(t, fs, files[1], 0, make([]byte, 100))
		}, "not a segment", true},
		{"a file is a copy of another", func(t *testing.T, fs vfs.FS, files []string) {
			copyFile(t, fs, files[0], files[1], 1<<20)
		}, "file 1 by its header", false},
		{"a file is cut short", func(t *testing.T, fs vfs.FS, files []string) {
			copyFile(t, fs, files[0], files[0], 50000)
		}, "the file has 50000 bytes", false},
		{"a file was overwritten", func(t *testing.T, fs vfs.FS, files []string) {
			put(t, fs, files[0], segmentHeaderSize, make([]byte, testBodies-segmentHeaderSize))
		}, "nothing says that the file ends", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fs, files, all := three(t)
			require.Len(t, files, 3)
			test.damage(t, fs, files)
			b := openBodiesMem(t, fs)
			require.NotEmpty(t, b.Damaged())
			require.Contains(t, b.Damaged()[0].Error(), test.detail)
			require.Equal(t, test.all, len(b.all()) == len(all))
			require.Equal(t, !test.all, b.lost != nil)
			for _, body := range b.all() {
				got, err := b.Read(body.Instance, body.Index)
				var corrupt *CorruptError
				if !errors.As(err, &corrupt) {
					require.NoError(t, err)
					require.Equal(t, someBody(1, body.Index, body.Term, 9000), got)
				}
			}
			require.NoError(t, b.Append(someBody(1, 3, 99, 10)))
			require.NoError(t, b.Close())
		})
	}
}

func TestInspectBodies(t *testing.T) {
	fs, name, at := damagedStore(t)
	flip(t, fs, name, at[3]+20, 1)
	flip(t, fs, name, at[4]+bodyHeadSize+5, 3)
	flip(t, fs, name, at[5]+20, 1)
	flip(t, fs, name, at[5]+bodyHeadSize+alignBody(3000)+9, 1)
	var lines []string
	require.NoError(t, InspectBodies(fs, "/d/bodies", func(s SegmentInfo) error {
		require.NoError(t, s.Err)
		require.Equal(t, "me", string(s.Identity))
		return nil
	}, func(i BodyInfo) error {
		lines = append(lines, strings.TrimPrefix(i.String(), name+":"))
		return nil
	}))
	require.Equal(t, []string{
		"00001000 number 1 instance 1 index 5 term 1 form 2 k 3 length 100 of 300 ok",
		"00001100 number 2 instance 1 index 1 term 1 form 2 k 3 length 3000 of 9000 ok",
		"00001d40 number 3 instance 1 index 2 term 2 form 3 k 3 length 3000 of 9000 ok",
		"00002980 number 4 instance 1 index 3 term 3 form 4 k 3 length 3000 of 9000 corrupt: " +
			"the head is damaged; the record's tail is read instead",
		"000035c0 number 5 instance 1 index 4 term 4 form 5 k 3 length 3000 of 9000 corrupt: " +
			"the checksum of its bytes is " + crcs(t, fs, name, at[4]),
		"00004200 damaged: no head of a body here, but one follows",
		"00004e40 number 7 instance 1 index 6 term 6 form 7 k 3 length 3000 of 9000 ok",
		"00005a80 seal",
		"00005b00 no body from here on",
	}, lines)
}

// crcs returns the checksum that a body's bytes have and should have.
func crcs(t *testing.T, fs vfs.FS, name string, at int64) string {
	t.Helper()
	file, err := ReadFile(fs, name, 1<<20)
	require.NoError(t, err)
	return fmt.Sprintf("%08x, want %08x", checksum(file[at+bodyHeadSize:][:3000]), checksum(someBody(1, 4, 4, 3000).Bytes))
}

// FuzzBodyHead decodes any head, also with a right checksum: an accepted head stays within the file, and encodes to
// the same bytes.
func FuzzBodyHead(f *testing.F) {
	good := make([]byte, bodyHeadSize)
	h := someBody(1, 2, 3, 100)
	head := bodyHead{meta: meta(h), kind: bodyData, offset: 4096, durable: 4096, number: 1, length: 100, crc: 5}
	head.encode(good, false, 7)
	f.Add(good, int64(4096), false)
	head.encode(good, true, 7)
	f.Add(good, head.tailAt(), true)
	f.Add([]byte{}, int64(0), false)
	f.Fuzz(func(t *testing.T, b []byte, at int64, right bool) {
		if right && len(b) >= bodyHeadSize {
			copy(b, bodyHeadMagic)
			binary.LittleEndian.PutUint32(b[4:], crc32.Update(7, castagnoli, b[8:bodyHeadSize]))
		}
		h, ok := decodeBodyHead(b, 7, at, testBodies)
		if !ok {
			return
		}
		require.LessOrEqual(t, h.end(), int64(testBodies))
		require.GreaterOrEqual(t, int64(h.offset), int64(segmentHeaderSize))
		require.Less(t, int64(h.offset), h.end())
		require.LessOrEqual(t, h.durable, h.offset)
		again := make([]byte, bodyHeadSize)
		h.encode(again, h.tail, 7)
		require.Equal(t, b[:bodyHeadSize], again)
	})
}

// FuzzBodyFile opens files of any bytes: they are bodies or damage, and a second Open agrees
// with the first.
func FuzzBodyFile(f *testing.F) {
	fs := vfs.NewMem()
	b := openBodiesMem(f, fs)
	fill(f, b, 3, 100)
	require.NoError(f, b.Close())
	file, err := ReadFile(fs, "/d/bodies/"+segmentName(1, bodySuffix), 1<<20)
	require.NoError(f, err)
	f.Add(file[segmentHeaderSize:][:1024])
	f.Add(file[segmentHeaderSize:][:300])
	f.Add([]byte{})
	f.Add(append(make([]byte, 64), file[segmentHeaderSize+3*bodyRecordSize(100):][:bodyEndSize]...))
	f.Add(append(make([]byte, 3*bodyRecordSize(100)), file[segmentHeaderSize+3*bodyRecordSize(100):][:bodyEndSize]...))
	f.Fuzz(func(t *testing.T, body []byte) {
		fs := vfs.NewMem()
		require.NoError(t, fs.MkdirAll("/d/bodies", 0o755))
		file := make([]byte, testBodies)
		h := segmentHeader{seq: 1, capacity: testBodies, identity: []byte("me")}
		copy(file, h.page(bodyFileMagic))
		copy(file[segmentHeaderSize:testBodies-bodyEndSize], body)
		require.NoError(t, WriteFile(fs, "/d/bodies/"+segmentName(1, bodySuffix), file))
		b := openBodiesMem(t, fs)
		require.NoError(t, b.check())
		all, lost := b.all(), b.lost
		require.NoError(t, b.Close())
		b = openBodiesMem(t, fs)
		require.Equal(t, all, b.all())
		require.Equal(t, lost, b.lost)
		require.NoError(t, b.Close())
	})
}
