package braid_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// flipByte spoils a byte of a file.
func flipByte(t *testing.T, name string, offset int64) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], offset)
	require.NoError(t, err)
	b[0] ^= 0x10
	_, err = f.WriteAt(b[:], offset)
	require.NoError(t, err)
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	require.NoError(t, err)
	slices.Sort(names)
	return names
}

// TestDamageInLogBehindASnapshot: a byte goes bad in a part of the log for which a snapshot
// stands. The member starts and has everything.
func TestDamageInLogBehindASnapshot(t *testing.T) {
	c := newCluster(t, 1, func(o *braid.Options) { o.SnapshotBytes = 4 << 10 })
	c.leader()
	var acked []string
	for _, name := range []string{"a", "b", "c"} {
		acked = append(acked, c.fill(name, 100)...)
	}
	c.stop(1)
	log := files(t, filepath.Join(c.dirs[1], "log", "*.wal"))
	flipByte(t, log[0], 4096+600)
	c.start(c.members[0], false)
	c.leader()
	c.verify(acked)
}
