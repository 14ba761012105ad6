package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/wal"
)

// writeBodies creates a log and two bodies next to it, and closes them.
func writeBodies(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	l, err := wal.Open(wal.Options{Dir: filepath.Join(dir, "log"), SegmentBytes: 1 << 16, Identity: []byte("m1")})
	require.NoError(t, err)
	b, err := wal.OpenBodies(wal.BodiesOptions{Dir: filepath.Join(dir, "bodies"), SegmentBytes: 1 << 17,
		Identity: []byte("m1")})
	require.NoError(t, err)
	for i := uint64(1); i <= 2; i++ {
		require.NoError(t,
			b.Append(wal.Body{Instance: 1, Index: i, Term: 3, Form: 2, K: 3, Size: 300, Bytes: bytes.Repeat([]byte{7}, 100)}))
	}
	require.NoError(t, b.Close())
	require.NoError(t, l.Close())
	return dir
}

func TestLogDumpShowsBodies(t *testing.T) {
	dir := writeBodies(t)
	var out strings.Builder
	require.NoError(t, dumpLog(&out, filepath.Join(dir, "log"), false, false))
	name := filepath.Join(dir, "bodies", "0000000000000001.bod")
	require.Contains(t, out.String(), "bodies "+name+": 131072 bytes, \"m1\"\n")
	require.Contains(t, out.String(),
		name+":00001000 number 1 instance 1 index 1 term 3 form 2 k 3 length 100 of 300 ok\n")

	f, err := os.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{8}, 0x1000+64+10)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	out.Reset()
	require.EqualError(t, dumpLog(&out, filepath.Join(dir, "log"), false, false), "damaged in 1 places")
	require.Contains(t, out.String(), "length 100 of 300 corrupt: the checksum of its bytes is")
	require.Contains(t, out.String(), "number 2 instance 1 index 2 term 3 form 2 k 3 length 100 of 300 ok\n")
	out.Reset()
	require.Error(t, dumpLog(&out, filepath.Join(dir, "log"), true, false))
	require.Contains(t, out.String(),
		`"kind":"body","number":2,"instance":1,"index":2,"term":3,"form":2,"k":3,"length":100,"size":300}`)
}
