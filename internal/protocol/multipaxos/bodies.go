package multipaxos

import "github.com/braidlog/braid/protocol"

// A body is named after the proposal that brought it: the slot, and the ballot under which its entry was
// first proposed (the entry's term). Under a higher ballot the entry keeps its name. A disk has one body
// for a slot. It is stored once: when the entry is accepted, or else when it is learned.

// holdsAll reports whether a member certainly has the bodies of all that is decided.
func (s *Paxos) holdsAll(id protocol.MemberID) bool {
	if id == s.cfg.Self {
		return !s.bodies.Missing && s.stable() >= s.log.Last()
	}
	p := s.lead.peer(id)
	return p != nil && p.Match >= s.log.Last() && !p.MissingBodies
}
