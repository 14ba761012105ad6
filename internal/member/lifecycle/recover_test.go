package lifecycle

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// logOf is a log on disk with entries from … to of one term.
func logOf(t *testing.T, term protocol.Term, from, to protocol.Index) *wal.Log {
	l, err := wal.Open(wal.Options{FS: vfs.NewMem(), Dir: "log", SegmentBytes: 1 << 16})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	for i := from; i <= to; i++ {
		e := membertest.Sealed(uint64(i), "c").Entry
		e.Seal(i, term, make([]byte, protocol.HeadSize))
		require.NoError(t, l.Append([]wal.Record{member.WALRecord(1,
			&protocol.Record{Kind: protocol.RecordEntry, Entry: e})}))
	}
	state := protocol.Record{Kind: protocol.RecordState, State: protocol.HardState{Term: term, Vote: 2, Commit: 1}}
	require.NoError(t, l.Append([]wal.Record{member.WALRecord(1, &state)}))
	require.NoError(t, l.Sync())
	return l
}

func indexes(rec protocol.Recovered) (out []protocol.Index) {
	for i := range rec.Entries {
		out = append(out, rec.Entries[i].Index)
	}
	return out
}

func TestRecoverJoinsSnapshotAndLog(t *testing.T) {
	rec, err := Recover(logOf(t, 3, 1, 5), 1, membertest.MetaAt(2, 2, 3))
	require.NoError(t, err)
	require.Equal(t, []protocol.Index{3, 4, 5}, indexes(rec))
	require.Equal(t, protocol.HardState{Term: 3, Vote: 2, Commit: 2}, rec.State)
	require.Equal(t, []byte("\x01c"), rec.Entries[0].Payload)

	rec, err = Recover(logOf(t, 3, 1, 5), 1, member.Meta{})
	require.NoError(t, err)
	require.Len(t, rec.Entries, 5)
}

func TestRecoverPrefersTheLeadersSnapshot(t *testing.T) {
	for name, l := range map[string]*wal.Log{
		"the log ends before it":          logOf(t, 3, 1, 5),
		"the log has another entry there": logOf(t, 3, 1, 9),
	} {
		rec, err := Recover(l, 1, membertest.MetaAt(8, 8, 4))
		require.NoError(t, err, name)
		require.Empty(t, rec.Entries, name)
		require.EqualValues(t, 8, rec.State.Commit, name)
		// The log on disk begins after it as well: the next entry is 9.
		again, err := Recover(l, 1, membertest.MetaAt(8, 8, 4))
		require.NoError(t, err, name)
		require.Empty(t, again.Entries, name)
	}
}

func TestRecoverRefusesAGap(t *testing.T) {
	var corrupt *protocol.CorruptError
	l := logOf(t, 3, 1, 9)
	require.NoError(t, l.Compact(1, 6))
	_, err := Recover(l, 1, membertest.MetaAt(4, 4, 3))
	require.ErrorAs(t, err, &corrupt, "the log was cut under a snapshot that is gone")

	l = logOf(t, 3, 1, 9)
	require.NoError(t, l.Compact(1, 9))
	_, err = Recover(l, 1, membertest.MetaAt(4, 4, 3))
	require.ErrorAs(t, err, &corrupt, "likewise, and nothing came after the cut")

	l = logOf(t, 3, 1, 2)
	base := protocol.Record{Kind: protocol.RecordBase, Base: &protocol.Base{Index: 8, Term: 3}}
	require.NoError(t, l.Append([]wal.Record{member.WALRecord(1, &base)}))
	require.NoError(t, l.Sync())
	_, err = Recover(l, 1, membertest.MetaAt(2, 2, 3))
	require.ErrorAs(t, err, &corrupt)
}
