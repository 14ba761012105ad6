package slotpaxos

import (
	"slices"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/slots"
)

// removed reports whether this member was removed for ever, as far as it knows.
func (s *Paxos) removed() bool { return slices.Contains(s.conf.Removed, s.cfg.Self) }

// proposeChange takes a change in on the leader. It waits for the next slot there.
func (s *Paxos) proposeChange(in protocol.ProposeChange) {
	switch {
	case s.removed():
		s.refuse(in.Context, protocol.ReasonRemoved)
	case s.role != protocol.Leader && s.leader != 0:
		s.refuse(in.Context, protocol.ReasonNotLeader)
	case s.role != protocol.Leader:
		s.refuse(in.Context, protocol.ReasonNoLeader)
	case in.Target != nil:
		s.refuse(in.Context, protocol.ReasonInvalidChange) // this protocol's instances are not woven
	case s.changing():
		s.refuse(in.Context, protocol.ReasonChangePending)
	default:
		if _, reason := s.changed(in.Changes); reason != protocol.ReasonNone {
			s.refuse(in.Context, reason)
			return
		}
		s.lead.change = &in
		s.fill()
	}
}

// changing reports whether an earlier change is under way.
func (s *Paxos) changing() bool {
	return s.lead.change != nil || s.try.phase == accepting && s.try.value.Kind == protocol.EntryConfig || s.settled() < s.log.Last()
}

// nextConfig makes the entry of the change that waits. Whether the change still makes sense is decided
// now: a slot may have been decided in between.
func (s *Paxos) nextConfig() (e protocol.Entry, ok bool) {
	in := s.lead.change
	if in == nil {
		return e, false
	}
	s.lead.change = nil
	next, reason := s.changed(in.Changes)
	if reason == protocol.ReasonNone && !slices.Equal(next.Voters(), s.conf.Voters()) && s.cfg.Mutant != MutantChangeLosesBodies {
		reason = s.bodies.Kept(&next, s.holds)
	}
	if reason != protocol.ReasonNone {
		s.refuse(in.Context, reason)
		return e, false
	}
	return slots.ConfigEntry(next, in.ID), true
}

// proposed is the configuration that this member proposes, or will in the next slot; nil if it is none.
func (s *Paxos) proposed() *protocol.Config {
	switch {
	case s.try.phase == accepting && s.try.value.Kind == protocol.EntryConfig:
		if c, err := protocol.DecodeConfig(s.try.value.Payload); err == nil {
			return &c
		}
	case s.lead.change != nil:
		if c, reason := s.changed(s.lead.change.Changes); reason == protocol.ReasonNone {
			return &c
		}
	}
	return nil
}

// changed is the configuration after the changes, or why they are not made.
func (s *Paxos) changed(changes []protocol.Change) (protocol.Config, protocol.Reason) {
	return slots.Changed(&s.conf, changes, func(next *protocol.Config) protocol.Reason {
		return slots.Wise(&s.conf, next, quorum.Of(next), s.answers, func(id protocol.MemberID) bool {
			p := s.peer(id)
			return p != nil && s.caughtUp(p)
		})
	})
}

// answers reports whether a member is well, as far as is known.
func (s *Paxos) answers(id protocol.MemberID) bool {
	p := s.peer(id)
	return id == s.cfg.Self || p != nil && s.active(p)
}

// caughtUp reports whether a member answers, knows what was decided a heartbeat ago, and has its bodies.
func (s *Paxos) caughtUp(p *peer) bool {
	return s.active(p) && !s.streaming[p.id] && p.last >= s.lead.beaten && (!p.lacking || s.cfg.Mutant == MutantChangeLosesBodies)
}

// promote makes a joining member a voter once it is caught up.
func (s *Paxos) promote() {
	if s.changing() {
		return
	}
	for i := range s.conf.Members {
		m := &s.conf.Members[i]
		if p := s.peer(m.ID); m.Joining && p != nil && s.caughtUp(p) {
			s.proposeChange(protocol.ProposeChange{Changes: []protocol.Change{{Kind: protocol.AddVoter, Member: protocol.Member{ID: m.ID}}}})
			return
		}
	}
}

// obeyConfig does what the configuration in force asks of a proposer. A leader that is no voter any more
// goes on until that is settled, and hands over then.
func (s *Paxos) obeyConfig() {
	if s.role == protocol.Leader {
		s.trackPeers()
	}
	m := s.conf.Find(s.cfg.Self)
	if s.role == protocol.Follower || m != nil && !m.Learner || s.role == protocol.Leader && s.settled() < s.log.Last() {
		return
	}
	if to := s.mostAdvanced(); to != 0 {
		s.send(to, MsgLead, Part{})
	}
	s.giveWay()
}
