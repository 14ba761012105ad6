package multipaxos

import (
	"encoding/binary"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
)

// Wrote reports whether multi-Paxos may have written a record. Everything that it writes has the ballot of a
// member, and it stores no votes for candidates.
func Wrote(r *protocol.Record) bool {
	switch r.Kind {
	case protocol.RecordState:
		return r.State.Vote == 0 && (r.State.Term == 0 || taken(paxos.Ballot(r.State.Term)))
	case protocol.RecordEntry:
		return taken(paxos.Ballot(r.Entry.Term)) && r.Entry.Kind != protocol.EntryEmpty && paxos.SlotKind(&r.Entry)
	case protocol.RecordCell:
		if r.Cell.Number == paxos.All.PromiseCell() {
			return len(r.Cell.Data) == 8 && taken(paxos.Ballot(binary.LittleEndian.Uint64(r.Cell.Data)))
		}
		v, err := paxos.DecodeVote(r.Cell)
		return err == nil && r.Cell.Number&paxos.SegmentCell == 0 && taken(v.Ballot)
	}
	return true
}

// taken reports whether some member may have taken a ballot as its own: see [Ballot.After].
func taken(b paxos.Ballot) bool { return b.Number() > 0 }
