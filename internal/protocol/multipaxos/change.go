package multipaxos

import (
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// removed reports whether this member was removed, as far as it knows.
func (s *Paxos) removed() bool { return slots.Removed(&s.conf, s.cfg.Self) }

// proposeChange accepts a change at the leader. It waits there until everything before it is decided.
func (s *Paxos) proposeChange(in protocol.ProposeChange) {
	reason := slots.RefuseChange(&s.conf, s.cfg.Self, s.role, s.leader, &in)
	switch {
	case s.closed():
		s.refuse(in.Context, protocol.ReasonSealing)
	case reason != protocol.ReasonNone:
		s.refuse(in.Context, reason)
	case s.sealing():
		s.refuse(in.Context, protocol.ReasonSealing)
	case s.lead.transfer.to != 0:
		s.refuse(in.Context, protocol.ReasonTransferring)
	case s.changing():
		s.refuse(in.Context, protocol.ReasonChangePending)
	default:
		if _, reason := s.changed(in.Changes); reason != protocol.ReasonNone {
			s.refuse(in.Context, reason)
			return
		}
		s.lead.change = &in
		s.fill()
		s.advance()
	}
}

// changing reports whether an earlier change is in progress.
func (s *Paxos) changing() bool {
	return s.lead.change != nil || s.undecided() != nil || s.settled() < s.log.Last() || s.prop.Phase != paxos.Ready ||
		s.log.Last() < s.prop.Floor
}

// undecided is the configuration that is proposed and not decided; nil if there is none.
func (s *Paxos) undecided() *protocol.Config {
	if s.role != protocol.Leader || s.prop.End <= s.log.Last() {
		return nil
	}
	// Nothing is proposed after it.
	v := s.acc.Votes[s.prop.End]
	if v.Entry.Kind != protocol.EntryConfig {
		return nil
	}
	c, _ := protocol.DecodeConfig(v.Entry.Payload) // it was checked when it was accepted
	return &c
}

// nextConfig returns the entry of the change that waits.
func (s *Paxos) nextConfig() (e protocol.Entry, ok bool) {
	in := s.lead.change
	s.lead.change = nil
	e, reason := slots.NextConfig(&s.conf, in, s.quorums, s.others(), &s.bodies)
	if reason != protocol.ReasonNone {
		s.refuse(in.Context, reason)
		return e, false
	}
	return e, true
}

// proposedConfig is the configuration that this member proposes or will propose; nil if there is none.
func proposedConfig(s *Paxos) *protocol.Config {
	if in := s.lead.change; in != nil {
		if c, reason := s.changed(in.Changes); reason == protocol.ReasonNone {
			return &c
		}
	}
	return s.undecided()
}

// changed returns the configuration after the changes, or the reason for refusing them.
func (s *Paxos) changed(changes []protocol.Change) (protocol.Config, protocol.Reason) {
	next, reason := slots.Changed(&s.conf, changes, s.quorums, s.others())
	if reason == protocol.ReasonNone {
		reason = s.tuning.Refuses(&s.cfg, &s.conf.Profile, &next.Profile)
	}
	return next, reason
}

// others is what this member, as the leader, knows of the other members.
func (s *Paxos) others() slots.Others {
	o := slots.Others{Answers: s.answers, CaughtUp: s.caughtUp, Holds: s.holdsAll}
	if s.cfg.Mutant == MutantChangeLosesBodies {
		o.Holds = nil
	}
	return o
}

// answers reports whether a member is active, as far as this member knows.
func (s *Paxos) answers(id protocol.MemberID) bool {
	p := s.lead.peer(id)
	return id == s.cfg.Self || p != nil && s.active(p)
}

// caughtUp reports whether a member is active and has everything that was decided a heartbeat ago, with its bodies.
func (s *Paxos) caughtUp(id protocol.MemberID) bool {
	p := s.lead.peer(id)
	return p != nil && s.active(p) && !s.streaming[p.ID] && p.Match >= s.lead.endAtHeartbeat &&
		(!p.MissingBodies || s.cfg.Mutant == MutantChangeLosesBodies)
}

// promote makes a joining member a voter once it is caught up.
func (s *Paxos) promote() {
	if s.changing() || s.sealing() || s.lead.transfer.to != 0 {
		return
	}
	if in, ok := slots.Joiner(&s.conf, s.caughtUp); ok {
		s.proposeChange(in)
	}
}

// configChanged applies a configuration that has become active, in place of one that may have other quorums, because
// of other voters or of their zones: a leader asks the new voters for promises. Until then it has promises of an old
// quorum only, which need not intersect those that decide now.
func (s *Paxos) configChanged(before *protocol.Config) {
	switch s.role {
	case protocol.Leader:
		s.trackPeers()
		if !slots.SameQuorums(s.quorums, before, &s.conf) && s.cfg.Mutant != MutantChangeUnasked {
			s.prepare()
		}
	case protocol.Candidate, protocol.PreCandidate:
		if m := s.conf.Find(s.cfg.Self); m == nil || m.Learner {
			s.stepDown()
		}
	}
}

// configSettled is called when the slot after a configuration is decided. A leader that is not a voter any more has
// led until now, and transfers leadership.
func (s *Paxos) configSettled() {
	if m := s.conf.Find(s.cfg.Self); s.role != protocol.Leader || m != nil && !m.Learner {
		return
	}
	for _, p := range s.lead.peers {
		s.sendAccept(p, nil) // no other member sends the departing ones what is decided
	}
	if p := s.mostAdvanced(); p != nil {
		s.send(p.ID, MsgLead, Part{Ballot: s.ballot})
	}
	s.stepDown()
}
