package epaxos

import "time"

// Members' logs differ, and meet at commands that touch everything (rule 12): those that name no keys. If a snapshot is
// due and no client proposes one, a member proposes a command that brings nothing and touches everything.

// meeting has this member's part of getting members connected.
type meeting struct {
	wanted bool // a snapshot waits
	since  time.Duration
	tried  ID // was proposed for it
}

// tendMeeting proposes what a snapshot waits for. Snapshots of several members are due at about the same time, so they
// begin one after the other, and one is enough.
func (s *EPaxos) tendMeeting() {
	m := &s.meet
	if !m.wanted || s.now < m.since+time.Duration(s.rank())*s.cfg.Heartbeat {
		return
	}
	if s.undecided(m.tried) || !s.replica.takes(s.replica.Next()) {
		return
	}
	m.tried = s.replica.Next()
	s.open(nil, nil)
}

// rank is how many members come before this one of those that are heard from.
func (s *EPaxos) rank() (n int) {
	for _, p := range s.peers {
		if s.active(p) && p.id < s.cfg.Self {
			n++
		}
	}
	return n
}

// undecided reports whether a command may still be executed.
func (s *EPaxos) undecided(id ID) bool {
	if id.Column == 0 {
		return false
	}
	rec := s.replica.Record(id)
	return rec != nil && !(rec.Phase == Decided && rec.Noop)
}
