package wal

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/vfs/errorfs"
)

// scrubbed is the result of a round of scrubbing: the bytes that were read, and the damage.
func scrubbed(s *Scrubber) (bytes int64, found []*Damage) {
	for {
		n, d, _ := s.Next()
		if bytes += n; d != nil {
			found = append(found, d)
		}
		if n == 0 {
			return bytes, found
		}
	}
}

// TestScrub finds damage in every part of a log that is written to meanwhile, and reports exactly the records that
// are in danger.
func TestScrub(t *testing.T) {
	fs := vfs.NewMem()
	l := openMem(t, fs)
	defer l.Close()
	s := l.NewScrubber()
	n, found := scrubbed(s)
	require.Zero(t, n, "the little that there is was all read at once")
	require.Empty(t, found)
	var at []int64
	for i := uint64(1); i <= 40; i++ {
		require.NoError(t, l.Append([]Record{entry(1, i, payload(1, i, 1000)), state(1, fmt.Sprintf("%03d", i), 3),
			entry(2, i, payload(2, i, 70))}))
		require.NoError(t, l.Sync())
		if l.current().seq == 1 {
			at = append(at, l.start)
		}
	}
	n, found = scrubbed(s)
	require.Empty(t, found)
	require.Greater(t, n, 2*int64(testSegment)*2/3)

	flip(t, fs, "/d/log/0000000000000001.wal", at[4]+batchHeaderSize+recordHeaderSize+7, 1) // entries 6
	// a batch's header, of entries 9
	flip(t, fs, "/d/log/0000000000000001.wal", at[7]+8, 1)
	last := l.index.find(1).state
	flip(t, fs, l.path(uint64(last.seg), liveSuffix), int64(last.off)+recordHeaderSize, 1)
	for range 2 {
		_, found = scrubbed(s)
		require.Len(t, found, 3)
		require.Equal(t, "/d/log/0000000000000001.wal", found[0].Where.File)
		require.Equal(t, at[4], found[0].Where.Offset)
		require.Equal(t, []Lost{{Instance: 1, Last: 6}, {Instance: 2, Last: 6}}, found[0].Lost)
		require.Equal(t, []Lost{{Instance: 1, Last: 9}, {Instance: 2, Last: 9}}, found[1].Lost)
		require.Equal(t, []Lost{{Instance: 1, State: true, Last: 40}, {Instance: 2, Last: 40}}, found[2].Lost)
	}
	require.NoError(t, l.Rewrite(1))
	require.NoError(t, l.Compact(1, 6))
	require.NoError(t, l.Sync())
	_, found = scrubbed(s)
	require.Equal(t, []Lost{{Instance: 2, Last: 6}}, found[0].Lost)
	require.Equal(t, []Lost{{Instance: 1, Last: 40}, {Instance: 2, Last: 40}}, found[2].Lost)
	require.NoError(t, l.Compact(1, 40))
	require.NoError(t, l.Compact(2, 40))
	require.NoError(t, l.Sync())
	_, found = scrubbed(s)
	require.Len(t, found, 1, "the segment that is being written stays")
	require.Empty(t, found[0].Lost)
	require.Equal(t, "040", stateOf(t, l, 1))
}

// TestScrubReadError: bytes that the disk fails to read are not damaged, and no records are in danger. The scrub
// continues with the next segment, and the next round tries again.
func TestScrubReadError(t *testing.T) {
	broken := int64(0) // from here on the first segment cannot be read; 0: it can
	fs := vfs.NewMem()
	l := openMem(t, errorfs.Wrap(fs, errorfs.InjectorFunc(func(o errorfs.Op) error {
		if broken > 0 && o.Kind == errorfs.OpFileReadAt && o.Offset >= broken &&
			strings.HasPrefix(o.Path, "/d/log/0000000000000001") {
			return syscall.EIO
		}
		return nil
	})))
	defer l.Close()
	var at []int64
	for i := uint64(1); l.current().seq < 3; i++ {
		require.NoError(t, l.Append([]Record{entry(1, i, payload(1, i, 1000))}))
		require.NoError(t, l.Sync())
		at = append(at, l.start)
	}
	flip(t, fs, l.path(2, liveSuffix), segmentHeaderSize+batchHeaderSize+recordHeaderSize+9, 0)
	s := l.NewScrubber()
	round := func(failures int) {
		t.Helper()
		var found []*Damage
		var failed []error
		for n := int64(1); n > 0; {
			var d *Damage
			var err error
			if n, d, err = s.Next(); d != nil {
				found = append(found, d)
			}
			if err != nil {
				failed = append(failed, err)
			}
		}
		require.Len(t, failed, failures)
		for _, err := range failed {
			require.ErrorIs(t, err, syscall.EIO)
			require.ErrorAs(t, err, new(*ReadError))
			require.NotErrorAs(t, err, new(*CorruptError))
		}
		require.NotEmpty(t, found)
		require.Equal(t, l.path(2, liveSuffix), found[len(found)-1].Where.File, "the damage behind it")
		require.Len(t, found, 1)
	}
	for _, broken = range []int64{1, segmentHeaderSize + 1} {
		s.buffer = readBuffer{step: 512} // so that a part of it is read before
		round(1)
	}
	broken = 0
	round(0)

	// How far damage reaches is not known if what is after it cannot be read.
	flip(t, fs, l.path(1, liveSuffix), at[2]+batchHeaderSize+recordHeaderSize+9, 0)
	broken = at[2] + 1
	round(1)
	broken = 0
	_, found := scrubbed(s)
	require.Len(t, found, 2)
	require.Equal(t, at[2], found[0].Where.Offset)
}

// TestCompactOverDamage: a state and a base that must be rewritten are damaged. The state is in memory, and a
// snapshot has the same base: the log is not shut.
func TestCompactOverDamage(t *testing.T) {
	fs := vfs.NewMem()
	l := openMem(t, fs)
	require.NoError(t, l.Append([]Record{
		state(1, "vote", 4), {Instance: 1, Kind: KindBase, Index: 7, Parts: [2][]byte{[]byte("base")}}, entry(1, 8, nil),
		entry(2, 1, nil)}))
	require.NoError(t, l.Sync())
	in := l.index.find(1)
	flip(t, fs, "/d/log/0000000000000001.wal", int64(in.state.off)+recordHeaderSize, 1)
	flip(t, fs, "/d/log/0000000000000001.wal", int64(in.base.off)+recordHeaderSize, 1)
	flip(t, fs, "/d/log/0000000000000001.wal", int64(l.index.find(2).entries.at(0).off), 1)
	for i := uint64(9); l.current().seq < 8; i++ {
		require.NoError(t, l.Append([]Record{entry(1, i, payload(1, i, 3000))}))
		require.NoError(t, l.Sync())
	}
	last := in.next() - 1
	require.NoError(t, l.Compact(1, last), "the entry of instance 2 keeps the segment")
	require.NoError(t, l.Sync())
	require.EqualValues(t, 1, l.first)
	require.NoError(t, l.Compact(2, 1))
	require.NoError(t, l.Sync())
	require.Greater(t, l.first, uint64(1))
	require.NoError(t, l.check())
	require.NoError(t, l.Close())
	l = openMem(t, fs)
	require.Equal(t, []string{"state 0 vote"}, replayAll(t, l, 1))
	require.NoError(t, l.Append([]Record{entry(1, last+1, nil)}), "it goes on where it was")
	require.NoError(t, l.Close())
}

// TestCompactKeepsABaseThatCannotBeRead: a base that must be rewritten cannot be read temporarily. Nothing is
// dropped, and the next compaction continues.
func TestCompactKeepsABaseThatCannotBeRead(t *testing.T) {
	broken := false
	l := openMem(t, errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(o errorfs.Op) error {
		if broken && o.Kind == errorfs.OpFileReadAt && strings.HasPrefix(o.Path, "/d/log/0000000000000001") {
			return syscall.EIO
		}
		return nil
	})))
	require.NoError(t, l.Append([]Record{
		state(1, "vote", 4), {Instance: 1, Kind: KindBase, Index: 7, Parts: [2][]byte{[]byte("base")}}, entry(1, 8, nil)}))
	last := uint64(8)
	for ; l.current().seq < 3; last++ {
		require.NoError(t, l.Append([]Record{entry(1, last+1, payload(1, last+1, 3000))}))
		require.NoError(t, l.Sync())
	}
	broken = true
	require.NoError(t, l.Compact(1, last))
	require.NoError(t, l.Sync())
	require.EqualValues(t, 7, l.index.find(1).baseIndex)
	require.EqualValues(t, 1, l.first)
	broken = false
	require.NoError(t, l.Compact(1, last))
	require.NoError(t, l.Sync())
	require.EqualValues(t, 3, l.first)
	require.Equal(t, []string{"state 0 vote", "base 7 base"}, replayAll(t, l, 1))
	require.NoError(t, l.check())
	require.NoError(t, l.Close())
}
