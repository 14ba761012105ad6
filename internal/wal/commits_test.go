package wal

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/vfs/errorfs"
)

// atOnce is a Background without a goroutine.
func atOnce(do func()) (wait func()) {
	do()
	return func() {}
}

// drain executes steps until Gather returns false.
func drain(c *Commits) {
	for c.Gather() {
		c.Step()
	}
}

// TestStagesOfABatch goes through a batch step by step. No done function is called before the last sync.
func TestStagesOfABatch(t *testing.T) {
	l, b := openMem(t, vfs.NewMem()), openBodiesMem(t, vfs.NewMem())
	c := NewCommits(l, b, atOnce)
	var told []error
	done := func(err error) { told = append(told, err) }
	require.True(t, c.Submit([]Record{withBody(entry(1, 1, []byte("e")), 1, []byte("body"))}, done))
	require.False(t, c.Closed())
	for _, stage := range []Stage{StageBodies, StageBodySync, StageRecords, StageSync} {
		require.True(t, c.Gather())
		require.Equal(t, stage, c.Stage())
		require.Equal(t, stage == StageBodySync || stage == StageSync, c.Syncs())
		require.Empty(t, told)
		require.True(t, c.Submit(nil, done), "it waits for the next batch")
		c.Step()
	}
	require.Equal(t, StageAnswer, c.Stage())
	require.Equal(t, uint64(1), c.Stats().Submits)
	c.Step()
	require.Equal(t, []error{nil}, told)
	jobs, _ := c.Queued()
	require.Equal(t, 4, jobs)
	c.Close()
	require.False(t, c.Submit(nil, done))
	drain(c)
	require.True(t, c.Closed())
	require.Len(t, told, 5)
	require.Equal(t, uint64(2), c.Stats().Syncs)
	require.NoError(t, errors.Join(b.Close(), l.Close()))
}

// TestFullDiskCutsNothingUnwritten: a compaction that waits frees space on a full disk. It must not pass entries that
// are still to be rewritten.
func TestFullDiskCutsNothingUnwritten(t *testing.T) {
	full := false
	fs := hooked(vfs.NewMem(), func(o errorfs.Op) error {
		if full && o.Kind == errorfs.OpFileWriteAt && strings.Contains(o.Path, "/bodies/") {
			return syscall.ENOSPC
		}
		return nil
	})
	l, b := openMem(t, fs), openBodiesMem(t, fs)
	c := NewCommits(l, b, atOnce)
	var told []error
	done := func(err error) { told = append(told, err) }
	for i := uint64(1); i <= 12; i++ {
		c.Submit([]Record{withBody(entry(1, i, []byte("old")), 1, []byte("body"))}, done)
	}
	drain(c)
	full = true
	c.Submit([]Record{withBody(entry(1, 5, []byte("new")), 1, []byte("body"))}, done)
	drain(c)
	require.Equal(t, StageBodySync, c.Stage())
	require.NotNil(t, c.Stats().Full)
	for i := uint64(6); i <= 12; i++ {
		c.Submit([]Record{entry(1, i, []byte("new"))}, done)
	}
	c.Compact(1, 10)
	drain(c)
	require.Equal(t, uint64(4), l.index.find(1).floor, "as far as may be")
	full = false
	c.Step()
	drain(c)
	require.Len(t, told, 12+1+7)
	for _, err := range told {
		require.NoError(t, err)
	}
	require.Equal(t, []string{"entry 11 new", "entry 12 new"}, replayAll(t, l, 1))
	require.NoError(t, errors.Join(b.Close(), l.Close()))
}

// TestFullDiskUsesNoFreeFile: on some disks a write to a file that is reused needs new space. If such a disk is full
// when the log or the bodies continue to the next file, they wait for space, and the file stays free.
func TestFullDiskUsesNoFreeFile(t *testing.T) {
	full, reused, made := false, 0, 0
	fs := hooked(vfs.NewMem(), func(o errorfs.Op) error {
		switch {
		case !full:
			return nil
		case o.Kind == errorfs.OpFilePreallocate, o.Kind == errorfs.OpCreate:
			made++
		case o.Kind == errorfs.OpFileWriteAt && o.Offset == 0 && !strings.HasSuffix(o.Path, markName): // a file's first page
			reused++
		default:
			return nil
		}
		return syscall.ENOSPC
	})
	l, b := openMem(t, fs), openBodiesMem(t, fs)
	c := NewCommits(l, b, atOnce)
	var told []error
	done := func(err error) { told = append(told, err) }
	i := uint64(0)
	write := func(payloadBytes, bodyBytes int) {
		i++
		c.Submit([]Record{withBody(entry(1, i, payload(1, i, payloadBytes)), 1, payload(1, i, bodyBytes))}, done)
		drain(c)
	}
	for len(l.free) == 0 || len(b.free) == 0 {
		for range 10 {
			write(3000, 3000)
		}
		c.Compact(1, i-1)
		for k := range i {
			b.Release(1, k)
		}
		drain(c)
	}
	for _, bytes := range [][2]int{{3000, 9}, {9, 3000}} { // first the log finds the disk full, then the bodies
		files := []int{len(l.free), len(b.free)}
		require.Positive(t, min(files[0], files[1]))
		full, reused, made = true, 0, 0
		for n := 0; c.Stats().Full == nil; n++ {
			require.Less(t, n, 100)
			require.NoError(t, c.Stats().Failed)
			write(bytes[0], bytes[1])
		}
		require.Positive(t, reused)
		require.Zero(t, made, "there is a free file")
		require.Equal(t, files, []int{len(l.free), len(b.free)})
		full = false
		c.Step()
		drain(c)
		require.Nil(t, c.Stats().Full)
	}
	require.Len(t, told, int(i))
	for _, err := range told {
		require.NoError(t, err)
	}
	require.NoError(t, errors.Join(b.Close(), l.Close()))
}
