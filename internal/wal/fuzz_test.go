package wal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/vfs"
)

// putSegment makes a directory with one segment that has these bytes after its header.
func putSegment(t testing.TB, body []byte) *vfs.Mem {
	t.Helper()
	fs := vfs.NewMem()
	require.NoError(t, fs.MkdirAll("/d/log", 0o755))
	h := segmentHeader{seq: 1, capacity: testSegment, identity: []byte("me")}
	b := make([]byte, testSegment)
	copy(b, h.encode())
	copy(b[segmentHeaderSize:], body)
	require.NoError(t, WriteFile(fs, "/d/log/"+segmentName(1, liveSuffix), b))
	return fs
}

// openAny opens any bytes: they are a valid log or damage, and a second Open agrees with the first.
func openAny(t *testing.T, fs *vfs.Mem) {
	t.Helper()
	err := Inspect(fs, "/d/log", func(SegmentInfo) error { return nil }, func(RecordInfo) error { return nil })
	require.NoError(t, err)
	l, err := Open(Options{FS: fs, Dir: "/d/log", SegmentBytes: testSegment, Identity: []byte("me")})
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		return
	}
	require.NoError(t, err)
	require.NoError(t, l.check())
	for _, i := range l.Instances() {
		require.NoError(t, l.Replay(i, func(Kind, uint64, []byte) error { return nil }))
	}
	first := l.Instances()
	require.NoError(t, l.Close())
	l, err = Open(Options{FS: fs, Dir: "/d/log", SegmentBytes: testSegment, Identity: []byte("me")})
	require.NoError(t, err)
	require.Equal(t, first, l.Instances())
	require.NoError(t, l.Close())
}

// FuzzSegment opens segments of any bytes.
func FuzzSegment(f *testing.F) {
	fs := vfs.NewMem()
	l := openMem(f, fs)
	require.NoError(f, l.Append([]Record{entry(1, 1, []byte("one")),
		{Instance: 1, Kind: KindState, Parts: [2][]byte{[]byte("s")}}}))
	require.NoError(f, l.Sync())
	require.NoError(f, l.Append([]Record{{Instance: 2, Kind: KindBase, Index: 4}, entry(2, 5, []byte("five")),
		cellOf(1, 3, "cell"), dropOf(1, 4)}))
	require.NoError(f, l.Close())
	b, err := ReadFile(fs, "/d/log/"+segmentName(1, liveSuffix), 1<<20)
	require.NoError(f, err)
	f.Add([]byte{})
	f.Add(b[segmentHeaderSize:][:512])
	f.Add(b[segmentHeaderSize:][:200])
	f.Fuzz(func(t *testing.T, body []byte) {
		openAny(t, putSegment(t, body))
	})
}

// FuzzRecords opens batches with right checksums and arbitrary records. Each 6 bytes of the input are one: kind,
// flag, instance, index, length, new batch.
func FuzzRecords(f *testing.F) {
	f.Add([]byte{1, 0, 1, 1, 3, 0, 1, 0, 1, 2, 9, 1, 2, 0, 1, 0, 4, 0})
	f.Add([]byte{3, 0, 1, 7, 2, 0, 1, 0, 1, 8, 1, 1, 4, 5, 1, 9, 0, 0})
	f.Add([]byte{4, 3, 0, 2, 0, 1, 4, 4, 0, 9, 0, 1})
	f.Add([]byte{6, 0, 1, 7, 2, 0, 6, 1, 1, 8, 1, 1, 7, 0, 1, 7, 0, 0, 4, 6, 1, 0, 0, 0, 6, 0, 1, 7, 2, 0})
	f.Fuzz(func(t *testing.T, input []byte) {
		openAny(t, putSegment(t, forge(input)))
	})
}

func forge(input []byte) (body []byte) {
	seed := salt([]byte("me"), 1, 1)
	h := batchHeader{seq: 1, incarnation: 1}
	start := -1
	end := func() {
		if start < 0 {
			return
		}
		h.number++
		h.durable, h.offset, h.length = h.number-1, uint32(segmentHeaderSize+start), uint32(len(body)-start-batchHeaderSize)
		h.encode(body[start:], seed)
		body = append(body, make([]byte, align(int64(len(body)))-int64(len(body)))...)
		start, h.count = -1, 0
	}
	for ; len(input) >= 6; input = input[6:] {
		if input[5]&1 == 1 {
			end()
		}
		if start < 0 {
			start = len(body)
			body = append(body, make([]byte, batchHeaderSize)...)
		}
		r := recordHeader{kind: Kind(input[0]), flag: input[1], instance: uint32(input[2]), index: uint64(input[3]),
			length: uint32(input[4])}
		at := len(body)
		body = append(body, make([]byte, recordHeaderSize+int(r.length))...)
		r.encode(body[at:])
		binary.LittleEndian.PutUint32(body[at:], crc32.Update(seed, castagnoli, body[at+4:]))
		h.count++
	}
	end()
	return body
}
