package iss

import (
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
)

// Wrote reports whether ISS may have written a record.
func Wrote(r *protocol.Record) bool {
	switch r.Kind {
	case protocol.RecordState:
		return r.State.Vote == 0
	case protocol.RecordEntry:
		return paxos.SlotKind(&r.Entry)
	case protocol.RecordCell:
		if r.Cell.Number&paxos.SegmentCell != 0 {
			return len(r.Cell.Data) == 8 || len(r.Cell.Data) == 9
		}
		_, err := paxos.DecodeVote(r.Cell)
		return err == nil && r.Cell.Number != paxos.All.PromiseCell()
	case protocol.RecordDrop:
		return r.Cell.Number != paxos.All.PromiseCell()
	}
	return true
}
