package multipaxos

import "github.com/braidlog/braid/protocol"

// WroteISS reports whether ISS may have written a record.
func WroteISS(r *protocol.Record) bool {
	switch r.Kind {
	case protocol.RecordState:
		return r.State.Vote == 0
	case protocol.RecordEntry:
		return common(&r.Entry)
	case protocol.RecordCell:
		if r.Cell.Number&noSlot != 0 {
			return len(r.Cell.Data) == 8 || len(r.Cell.Data) == 9
		}
		_, err := decodeVote(r.Cell)
		return err == nil && r.Cell.Number != all.promiseCell()
	case protocol.RecordDrop:
		return r.Cell.Number != all.promiseCell()
	}
	return true
}
