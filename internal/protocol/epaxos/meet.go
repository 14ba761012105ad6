package epaxos

import "time"

// Members' logs differ, and meet at commands that touch everything (rule 12): those that name no keys. If a snapshot
// is due and no client proposes such a command, a member proposes an empty command that touches everything.

// meeting is this member's state of proposing a command at which members meet.
type meeting struct {
	wanted bool // a snapshot waits
	since  time.Duration
	tried  ID // was proposed for it
}

// runMeetingTimers proposes the command for which a snapshot waits. Snapshots of several members are due at about the
// same time, so members begin one after the other, and one command is enough.
func (s *EPaxos) runMeetingTimers() {
	m := &s.meet
	if !m.wanted || s.now < m.since+time.Duration(s.rank())*s.cfg.Heartbeat {
		return
	}
	if s.undecided(m.tried) || !s.replica.inWindow(s.replica.Next()) {
		return
	}
	m.tried = s.replica.Next()
	s.open(nil, nil)
}

// rank is the number of active members before this one.
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
