package wal

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/vfs"
)

// A removed instance leaves nothing, and its space is freed. Its number may be reused.
func TestRemovedInstanceIsGone(t *testing.T) {
	fs := vfs.NewMem()
	l := openMem(t, fs)
	for i := uint64(1); l.current().seq < 5; i++ {
		require.NoError(t, l.Append([]Record{entry(1, i, make([]byte, 900)), cellOf(1, i, "c")}))
	}
	require.NoError(t, l.Append([]Record{state(1, "s", 1), entry(2, 1, []byte("stays"))}))
	require.NoError(t, l.Remove(1))
	require.NoError(t, l.Remove(9), "there is none")
	require.NoError(t, l.Sync())
	require.Less(t, len(l.segs), 3)
	for range 3 {
		require.Empty(t, replayAll(t, l, 1))
		require.Equal(t, []uint32{2}, l.Instances())
		require.Equal(t, []string{"entry 1 stays"}, replayAll(t, l, 2))
		require.NoError(t, l.check())
		require.NoError(t, l.Close())
		l = openMem(t, fs)
	}
	require.NoError(t, l.Append([]Record{entry(1, 1, []byte("again")), cellOf(1, 9, "new")}))
	require.NoError(t, l.Close())
	l = openMem(t, fs)
	require.Equal(t, []string{"entry 1 again", "cell 9 new"}, replayAll(t, l, 1))
	require.NoError(t, l.Close())
}

// The records that remain of a compacted instance are rewritten forever. Nothing remains of a removed one.
func TestNothingRemainsOfARemovedInstance(t *testing.T) {
	fs := vfs.NewMem()
	l := openMem(t, fs)
	for i := range uint32(100) {
		require.NoError(t, l.Append([]Record{state(100+i, "voted", 1), base(100+i, 7)}))
		require.NoError(t, l.Compact(100+i, ^uint64(0)))
	}
	next := passBy(t, l, 1, 3)
	require.Len(t, l.Instances(), 101)
	for i := range uint32(100) {
		require.NoError(t, l.Remove(100+i))
	}
	passBy(t, l, next, 3)
	require.NoError(t, l.Close())
	about := 0
	require.NoError(t, Inspect(fs, "/d/log", func(SegmentInfo) error { return nil }, func(r RecordInfo) error {
		if r.Instance >= 100 {
			about++
		}
		return nil
	}))
	require.Zero(t, about)
}

// Damage to records of a removed instance costs nothing.
func TestDamageToARemovedInstance(t *testing.T) {
	fs := vfs.NewMem()
	l := openMem(t, fs)
	require.NoError(t, l.Append([]Record{state(1, "s", 1), entry(1, 1, []byte("one")), state(2, "t", 1),
		entry(2, 1, nil)}))
	require.NoError(t, l.Sync())
	at := l.end
	require.NoError(t, l.Append([]Record{entry(1, 2, []byte("two"))}))
	require.NoError(t, l.Sync())
	require.NoError(t, l.Append([]Record{state(2, "u", 1), entry(2, 2, []byte("needed"))}))
	require.NoError(t, l.Sync())
	abandon(l)
	spoil := func() { flip(t, fs, "/d/log/0000000000000001.wal", at+batchHeaderSize+recordHeaderSize+1, 2) }
	spoil()
	cover := covering(0, 0, 1)
	_, err := openCovered(copyOf(fs), cover)
	require.ErrorContains(t, err, "of instance 1 was perhaps in it")

	spoil() // it is unchanged
	l = openMem(t, fs)
	require.NoError(t, l.Remove(1))
	require.NoError(t, l.Close())
	spoil()
	for range 2 {
		l, err = openCovered(fs, cover)
		require.NoError(t, err)
		require.Len(t, l.Damaged(), 1)
		require.Equal(t, []string{"state 0 u", "entry 2 needed"}, replayAll(t, l, 2))
		require.Empty(t, replayAll(t, l, 1))
		require.NoError(t, l.Close())
	}
}
