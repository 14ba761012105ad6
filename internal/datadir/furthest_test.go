package datadir

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// A member is ahead in each instance whose log is longer than the other member's, not only in the first one.
func TestAhead(t *testing.T) {
	a := &logEnds{map[uint32]logEnd{1: {1, 15}, 2: {1, 4}, 3: {1, 4}}, 1}
	b := &logEnds{map[uint32]logEnd{1: {1, 15}, 2: {1, 12}, 3: {2, 1}}, 1}
	require.Equal(t, 0, a.ahead(b))
	require.Equal(t, 2, b.ahead(a))
	c := &logEnds{map[uint32]logEnd{4: {1, 1}}, 1}
	require.Equal(t, 1, c.ahead(a), "an instance that the other does not know")
	c.first = 4
	require.Equal(t, 0, a.ahead(c), "instances before a seal")
	require.Positive(t, c.compare(a))
}

// A member that has begun what is behind a seal is further than one with more in the instances before it, also where
// only a snapshot says so.
func TestFurthestBehindASeal(t *testing.T) {
	fs := vfs.NewMem()
	noop := func(instance protocol.InstanceID, index protocol.Index) wal.Record {
		e := protocol.Entry{Kind: protocol.EntryNoop}
		e.SealPayload()
		e.Seal(index, 1, make([]byte, protocol.HeadSize))
		return member.WALRecord(instance, &protocol.Record{Kind: protocol.RecordEntry, Entry: e})
	}
	write := func(dir string, records ...wal.Record) {
		log, err := wal.Open(wal.Options{FS: fs, Dir: dir + "/" + logDir, SegmentBytes: 1 << 16})
		require.NoError(t, err)
		require.NoError(t, log.Append(records))
		require.NoError(t, log.Sync())
		require.NoError(t, log.Close())
	}
	begun := protocol.Base{Ended: []protocol.EndedLog{{Instance: 1, Index: 1}}}
	write("/behind", noop(1, 1), member.WALRecord(2, &protocol.Record{Kind: protocol.RecordBase, Base: &begun}))
	write("/before", noop(1, 1), noop(1, 2), noop(1, 3))
	write("/further", noop(2, 1))
	snapshots, err := OpenSnapshots(fs, "/further/"+snapshotDir)
	require.NoError(t, err)
	for _, first := range []protocol.InstanceID{1, 2} {
		meta := member.Meta{Cursor: order.Cursor{Position: protocol.Position(first),
			Points: []order.Point{{Instance: first}}}}
		require.NoError(t, snapshots.Write(SnapshotHeader{Meta: meta, HasState: true}, writeState("state")))
	}
	ordered, more, err := FurthestFirst(fs, []string{"/before", "/behind", "/further"})
	require.NoError(t, err)
	require.Equal(t, []string{"/further", "/before", "/behind"}, ordered)
	require.Empty(t, more)
	ordered, more, err = FurthestFirst(fs, []string{"/before", "/behind"})
	require.NoError(t, err)
	require.Equal(t, []string{"/behind", "/before"}, ordered)
	require.Empty(t, more)
}
