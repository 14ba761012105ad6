package braid_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

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
	t.Parallel()
	c := newCluster(t, 1, func(o *braid.Options) { o.Limits.SnapshotBytes = 4 << 10 })
	c.leader()
	var acked []string
	for _, name := range []string{"a", "b", "c"} {
		acked = append(acked, c.fill(name, 100)...)
	}
	c.restart() // writes the member's state behind what is damaged: else no one could know that the last one was not there
	c.leader()
	c.stop(1)
	log := files(t, filepath.Join(c.dirs[1], "log", "*.wal"))
	flipByte(t, log[0], 4096+600)
	c.start(c.members[0], false)
	c.leader()
	c.verify(acked)
}

// TestDamagedSnapshotAtStart: the newest snapshot is damaged. The one before it and the log
// are enough.
func TestDamagedSnapshotAtStart(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, func(o *braid.Options) { o.Limits.SnapshotBytes = 4 << 10 })
	c.leader()
	var acked []string
	for _, name := range []string{"a", "b", "c"} {
		acked = append(acked, c.fill(name, 100)...)
	}
	c.stop(1)
	snapshots := files(t, filepath.Join(c.dirs[1], "snapshots", "*.snap"))
	newest := snapshots[len(snapshots)-1]
	info, err := os.Stat(newest)
	require.NoError(t, err)
	flipByte(t, newest, info.Size()/2)
	c.start(c.members[0], false)
	c.leader()
	require.EqualValues(t, 1, c.nodes[1].Status().Disk.Damaged)
	c.verify(acked)
	c.verify(c.fill("d", 100))
	c.restart()
	c.leader()
	c.verify(acked)
}

// TestScrubMends: bytes of the log and of the snapshots of a running member go bad. Scrubbing
// finds and counts them. A snapshot is made that stands for the log, and one for the snapshot;
// then nothing is left to mend, and a start finds nothing missing.
func TestScrubMends(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, func(o *braid.Options) {
		o.Limits.SnapshotBytes, o.Limits.ScrubBytesPerSecond = 64<<10, 1<<30
	})
	leader := c.leader()
	acked := c.fill("a", 500)
	require.Eventually(t, func() bool { return c.nodes[leader].Status().Snapshots > 0 }, testTimeout, 5*time.Millisecond)
	acked = append(acked, c.fill("b", 50)...)
	c.verify(acked)
	dir := c.dirs[leader]
	log := files(t, filepath.Join(dir, "log", "*.wal"))
	used := written(t, log[0])
	flipByte(t, log[0], used-400)
	flipByte(t, log[0], used/2)
	snapshots := files(t, filepath.Join(dir, "snapshots", "*.snap"))
	for _, name := range snapshots {
		flipByte(t, name, 100)
	}
	require.Eventually(t, func() bool {
		d := c.nodes[leader].Status().Disk
		return d.Damaged >= 3 && d.Mended == d.Damaged && d.Failing == nil
	}, testTimeout, 5*time.Millisecond, "%+v", c.nodes[leader].Status().Disk)
	require.NoError(t, c.nodes[leader].Close())
	delete(c.nodes, leader)
	c.leader()
	acked = append(acked, c.fill("c", 20)...)
	c.start(c.members[leader-1], false)
	c.leader()
	c.verify(acked)
}

// written is where a file's bytes that are not zero end.
func written(t *testing.T, name string) int64 {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return int64(len(bytes.TrimRight(b, "\x00")))
}
