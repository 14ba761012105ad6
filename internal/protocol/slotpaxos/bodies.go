package slotpaxos

import "github.com/braidlog/braid/protocol"

// A body is named after its proposal: the slot, and the ballot under which its entry was first proposed (the entry's
// term). Both are known before the slot is decided. Under a higher ballot the entry keeps its name, so a stored body
// remains valid. The same command may be in several slots. These are several proposals, and each has a body of its
// own.
//
// A disk has one body for a slot. It is stored once: when the entry is accepted, or else when it is learned. The body
// of an entry that was not chosen is dropped when another one replaces it, or when the log is truncated.

// keeps reports whether the body of an entry is on the disk because of the cell.
func (s *Paxos) keeps(e *protocol.Entry) bool {
	if s.cfg.Mutant == MutantBodyAssumed {
		return s.cell.accepted != 0
	}
	return s.cell.accepted != 0 && s.cell.entry.Index == e.Index && s.cell.entry.Term == e.Term
}

// unstored is an entry as a record has it: with its body if that is not on disk.
func (s *Paxos) unstored(e protocol.Entry) protocol.Entry {
	if e.BodySize > 0 && s.keeps(&e) {
		e.Form, e.Body = protocol.FormNone, nil
	}
	return e
}

// whole reports whether all of an entry is here or on disk.
func (s *Paxos) whole(e *protocol.Entry) bool {
	return e.Applicable() && (e.BodySize == 0 || e.Form == protocol.FormWhole && (e.Resident() || s.keeps(e)))
}

// holds reports whether a member certainly has the bodies of all slots before the proposer's. A member that promises
// there has these slots in its log, and reports missing bodies.
func (s *Paxos) holds(id protocol.MemberID) bool {
	if id == s.cfg.Self {
		return !s.bodies.Missing && s.disk.Durable.Last == s.log.Last()
	}
	p := s.peer(id)
	return p != nil && p.promised >= s.try.slot && !p.lacking
}
