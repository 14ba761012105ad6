package slotpaxos

import "github.com/braidlog/braid/protocol"

// Wrote reports whether this protocol may have written a record. Everything that it writes has the ballot of a
// member, and it stores no votes for candidates.
func Wrote(r *protocol.Record) bool {
	switch r.Kind {
	case protocol.RecordState:
		return r.State.Vote == 0 && (r.State.Term == 0 || Ballot(r.State.Term).Number() > 0)
	case protocol.RecordEntry:
		return Ballot(r.Entry.Term).Number() > 0
	case protocol.RecordCell:
		_, err := decodeCell(r.Cell)
		return err == nil && r.Cell.Number > 0
	}
	return true
}
