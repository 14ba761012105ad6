package multipaxos

import "github.com/braidlog/braid/protocol"

// A body is named after the proposal that brought it: the slot, and the ballot under which its entry was
// first proposed (the entry's term). Under a higher ballot the entry keeps its name. A disk has one body
// for a slot. It is stored once: when the entry is accepted, or else when it is learned.

// unstored is an entry as a record has it: with its body if that is not on the disk.
func (s *Paxos) unstored(e protocol.Entry) protocol.Entry {
	if e.BodySize > 0 && s.acc.Holds(&e) {
		e.Form, e.Body = protocol.FormNone, nil
	}
	return e
}

// whole reports whether all of an entry is here or on the disk.
func (s *Paxos) whole(e *protocol.Entry) bool {
	return e.Applicable() && (e.BodySize == 0 || e.Form == protocol.FormWhole && (e.Resident() || s.acc.Holds(e)))
}

// holdsAll reports whether a member certainly has the bodies of all that is decided.
func (s *Paxos) holdsAll(id protocol.MemberID) bool {
	if id == s.cfg.Self {
		return !s.bodies.Missing && s.stable() >= s.log.Last()
	}
	p := s.peer(id)
	return p != nil && p.Match >= s.log.Last() && !p.MissingBodies
}
