package multipaxos

import "github.com/braidlog/braid/protocol"

// A body is named after the proposal that it belongs to: the slot, and the ballot under which its entry was first
// proposed (the entry's term). Under a higher ballot the entry keeps its name. A disk has one body for a slot. It
// is stored once: when the entry is accepted, or else when it is learned.

// holdsAll reports whether a member is known to have the bodies of all decided entries.
func (s *Paxos) holdsAll(id protocol.MemberID) bool {
	if id == s.cfg.Self {
		return !s.bodies.Missing && s.stable() >= s.log.Last()
	}
	p := s.lead.peer(id)
	return p != nil && p.Match >= s.log.Last() && !p.MissingBodies
}
