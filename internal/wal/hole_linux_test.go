package wal

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/braidlog/braid/internal/vfs"
)

// punch loses whole pages of a file, as if they had never been written.
func punch(t *testing.T, name string, from, length int64) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, length))
	require.NoError(t, f.Close())
}

// What follows bytes that were lost, and are as if they had never been written, is still found: the log was damaged,
// it does not end there.
func TestBatchesBehindAHoleAreFound(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(Options{Dir: dir, SegmentBytes: 4 << 20})
	require.NoError(t, err)
	for i, size := range []int{10, 600_000, 10} {
		require.NoError(t, l.Append([]Record{entry(1, uint64(i+1), bytes.Repeat([]byte("x"), size))}))
		require.NoError(t, l.Sync())
	}
	require.NoError(t, l.Close())
	name := filepath.Join(dir, segmentName(1, liveSuffix))
	punch(t, name, 8<<10, 512<<10)
	require.NoError(t, os.Remove(filepath.Join(dir, markName))) // only the log itself says what was durable
	var corrupt *CorruptError
	_, err = Open(Options{Dir: dir, SegmentBytes: 4 << 20})
	require.ErrorAs(t, err, &corrupt)
	require.ErrorContains(t, err, "it was durable when the one at offset")
}

func TestBodiesBehindAHoleAreFound(t *testing.T) {
	dir := t.TempDir()
	b, err := OpenBodies(BodiesOptions{Dir: dir, SegmentBytes: 4 << 20})
	require.NoError(t, err)
	first := 4096 - bodyEndSize // the second begins with a page
	for i, size := range []int{first, 600_000, 10} {
		data := bytes.Repeat([]byte("x"), size)
		require.NoError(t, b.Append(Body{Instance: 1, Index: uint64(i + 1), Term: 1, Form: 1, Bytes: data}))
		require.NoError(t, b.Sync())
	}
	require.NoError(t, b.Close())
	punch(t, filepath.Join(dir, segmentName(1, bodySuffix)), 8<<10, 512<<10)
	b, err = OpenBodies(BodiesOptions{Dir: dir, SegmentBytes: 4 << 20})
	require.NoError(t, err)
	for i, size := range []int{first, 0, 10} {
		body, err := b.Read(1, uint64(i+1))
		if size == 0 {
			var corrupt *CorruptError
			require.ErrorAs(t, err, &corrupt)
			continue
		}
		require.NoError(t, err)
		require.Len(t, body.Bytes, size)
	}
	require.Len(t, b.damage, 1)
	require.ErrorContains(t, b.damage[0], "the record's tail is read instead")
	require.NoError(t, b.Close())
}

// A start reads about what was written, not the whole size of the files, however often it happens.
func TestAStartReadsWhatWasWritten(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		l, err := Open(Options{Dir: dir})
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
	f, err := vfs.OS.Open(filepath.Join(dir, segmentName(1, liveSuffix)))
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	hole := vfs.NextHole(f, 0)
	if hole > DefaultSegmentBytes { // this file system does not know
		return
	}
	require.Less(t, hole, int64(1<<20))
	last := vfs.NextWritten(f, hole)
	require.Greater(t, last, int64(DefaultSegmentBytes-(1<<20)), "pages were read where there is nothing")
}
