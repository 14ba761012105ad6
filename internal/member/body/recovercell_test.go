package body

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// accepts is a log whose cells hold entries with these bodies.
func accepts(rec *protocol.Recovered, refs ...protocol.BodyRef) []member.InstanceLog {
	for i := range refs {
		rec.Cells = append(rec.Cells, protocol.Cell{Number: uint64(i)})
	}
	l := member.InstanceLog{Instance: 1, Recovered: rec}
	l.Accept(func(c protocol.Cell) (protocol.Entry, bool) {
		return committedEntry(refs[c.Number], protocol.FormWhole), true
	})
	return []member.InstanceLog{l}
}

// What an acceptor accepted it has promised to keep, also the body. The slot is not decided, so no one else need have
// it.
func TestBodiesOfCellsAreKept(t *testing.T) {
	fs, body := vfs.NewMem(), someBody(1000)
	lost, accepted := refTo(11, 1, body[:10]), refTo(11, 1, body)
	lost.Term, accepted.Term = 4, 7
	b := openStore(t, fs)
	store(t, b, lost, protocol.FormWhole, body[:10])
	store(t, b, accepted, protocol.FormWhole, body)
	require.NoError(t, b.Close())

	b = openStore(t, fs)
	require.NoError(t, RecoverBodies(accepts(recovered(10), accepted), b, nil))
	held, ok := b.Find(1, 11)
	require.True(t, ok)
	require.EqualValues(t, 7, held.Term)
	require.NoError(t, b.Close())

	// If the cell that names the later body did not reach the disk, the earlier one is still there.
	b = openStore(t, fs)
	require.NoError(t, RecoverBodies(accepts(recovered(10), lost), b, nil))
	held, ok = b.Find(1, 11)
	require.True(t, ok)
	require.EqualValues(t, 4, held.Term)
	require.NoError(t, b.Close())
}

func TestAMissingBodyOfACellStopsTheMember(t *testing.T) {
	body := someBody(1000)
	accepted := refTo(11, 1, body)
	b := openStore(t, vfs.NewMem())
	defer b.Close()
	var corrupt *protocol.CorruptError
	require.ErrorAs(t, RecoverBodies(accepts(recovered(10), accepted), b, nil), &corrupt, "it was accepted")
	accepted.Term--
	decided := recovered(11, refTo(11, 1, body))
	require.NoError(t, RecoverBodies(accepts(decided, accepted), b, nil),
		"the slot is decided, and the cell is out of date")
}

// A cell's body goes to the disk with the cell, unless it is there.
func TestARecordOfACellBringsABody(t *testing.T) {
	body := someBody(100)
	e := committedEntry(refTo(11, 1, body), protocol.FormWhole)
	e.Body = body
	cell := protocol.Cell{Number: 11, Data: []byte("accepted"), Rest: []byte("value")}
	got := member.WALRecord(3, &protocol.Record{Kind: protocol.RecordCell, Cell: cell, Entry: e})
	require.Equal(t, wal.KindCell, got.Kind)
	require.Equal(t, [2][]byte{cell.Data, cell.Rest}, got.Parts)
	require.Equal(t, &wal.Body{Instance: 3, Index: 11, Term: uint64(e.Term), Form: uint8(protocol.FormWhole), K: 1,
		Size: 100, Digest: e.BodyDigest, Bytes: body}, got.Body)
	e.Form, e.Body = protocol.FormNone, nil
	require.Nil(t, member.WALRecord(3, &protocol.Record{Kind: protocol.RecordCell, Cell: cell, Entry: e}).Body)
}
