package paxos

import (
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// A body is named after the proposal that brought it: the slot, and the ballot under which its entry was
// first proposed (the entry's term). Under a higher ballot the entry keeps its name. A disk has one body
// for a slot. It is stored once: when the entry is accepted, or else when it is learned.

// bodies is what this member knows of the bodies of decided entries.
type bodies struct {
	any     bool // there are some
	missing bool // the disk lacks some of them
}

// learned: an entry was decided.
func (b *bodies) learned(e *protocol.Entry) {
	b.any = b.any || e.BodySize > 0
	b.missing = b.missing || e.BodySize > 0 && e.Form != protocol.FormWhole
}

// unstored is an entry as a record has it: with its body if that is not on the disk.
func (s *Paxos) unstored(e protocol.Entry) protocol.Entry {
	if e.BodySize > 0 && s.acc.holds(&e) {
		e.Form, e.Body = protocol.FormNone, nil
	}
	return e
}

// whole reports whether all of an entry is here or on the disk.
func (s *Paxos) whole(e *protocol.Entry) bool {
	return e.Applicable() && (e.BodySize == 0 || e.Form == protocol.FormWhole && (e.Resident() || s.acc.holds(e)))
}

// holdsAll reports whether a member certainly has the bodies of all that is decided.
func (s *Paxos) holdsAll(id protocol.MemberID) bool {
	if id == s.cfg.Self {
		return !s.bodies.missing && s.stable() >= s.log.Last()
	}
	p := s.peer(id)
	return p != nil && p.match >= s.log.Last() && !p.lacking
}

// keepsBodies reports whether every quorum of the next configuration's voters has all bodies. Those that
// leave may have been the only ones that had some.
func (s *Paxos) keepsBodies(next *protocol.Config) protocol.Reason {
	if !s.bodies.any || s.cfg.Mutant == MutantChangeLosesBodies {
		return protocol.ReasonNone
	}
	voters, holders := next.Voters(), 0
	for _, id := range voters {
		if s.holdsAll(id) {
			holders++
		}
	}
	if n := len(voters); holders < n-quorum.Size(n)+1 {
		return protocol.ReasonBodies
	}
	return protocol.ReasonNone
}
