package paxos

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// The accepted entries after the log continue it. Unknown slots between them are empty.
func TestBehindTheLogIsWhatWasAccepted(t *testing.T) {
	at := func(i protocol.Index) protocol.Entry {
		e := protocol.Entry{Kind: protocol.EntryBatch, Count: 1,
			ID: protocol.ProposalID{Session: protocol.Session{Member: 1, Incarnation: 1}, Seq: uint64(i)}}
		e.Seal(i, 257, make([]byte, protocol.HeadSize))
		return e
	}
	rec := &protocol.Recovered{Entries: []protocol.Entry{at(1), at(2)},
		Cells: []protocol.Cell{{Number: 0, Data: make([]byte, 8)}}}
	for _, i := range []protocol.Index{2, 3, 6} { // the cell of slot 2 is out of date
		v := Vote{257, at(i)}
		rec.Cells = append(rec.Cells, v.Cell())
	}
	var kinds []protocol.EntryKind
	for i, e := range Behind(rec) {
		require.Equal(t, protocol.Index(3+i), e.Index)
		kinds = append(kinds, e.Kind)
	}
	require.Equal(t, []protocol.EntryKind{protocol.EntryBatch, protocol.EntryNoop, protocol.EntryNoop,
		protocol.EntryBatch}, kinds)
	require.Empty(t, Behind(&protocol.Recovered{}))
}
