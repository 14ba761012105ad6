package slotpaxos

import (
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// removed reports whether this member was removed, as far as it knows.
func (s *Paxos) removed() bool { return slots.Removed(&s.conf, s.cfg.Self) }

// proposeChange accepts a change at the leader. It waits there for the next slot.
func (s *Paxos) proposeChange(in protocol.ProposeChange) {
	reason := slots.RefuseChange(&s.conf, s.cfg.Self, s.role, s.leader, &in)
	switch {
	case reason != protocol.ReasonNone:
		s.refuse(in.Context, reason)
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

// changing reports whether an earlier change is in progress.
func (s *Paxos) changing() bool {
	return s.lead.change != nil || s.try.phase == accepting && s.try.value.Kind == protocol.EntryConfig ||
		s.settled() < s.log.Last()
}

// nextConfig returns the entry of the change that waits.
func (s *Paxos) nextConfig() (e protocol.Entry, ok bool) {
	in := s.lead.change
	if in == nil {
		return e, false
	}
	s.lead.change = nil
	e, reason := slots.NextConfig(&s.conf, in, quorum.System{}, s.others(), &s.bodies)
	if reason != protocol.ReasonNone {
		s.refuse(in.Context, reason)
		return e, false
	}
	return e, true
}

// proposed is the configuration that this member proposes, or will propose in the next slot; nil if there is none.
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

// changed returns the configuration after the changes, or the reason for refusing them.
func (s *Paxos) changed(changes []protocol.Change) (protocol.Config, protocol.Reason) {
	next, reason := slots.Changed(&s.conf, changes, quorum.System{}, s.others())
	if reason == protocol.ReasonNone {
		reason = s.tuning.Refuses(&s.cfg, &s.conf.Profile, &next.Profile)
	}
	return next, reason
}

// tune changes the settings to those under the profile of a configuration that becomes active, and lets what waits
// follow them. It reports whether this member continues: it stops if its program cannot have the profile. No rule of
// safety or of reads depends on these settings, and members may differ in them.
func (s *Paxos) tune(c *protocol.Config) bool {
	changed, ok := s.tuning.Tune(&s.cfg, c, s.out)
	if changed {
		if s.tunedAt = s.now; s.role == protocol.Leader {
			s.lead.heartbeatAt = s.now // the others learn by it that the profile is decided
		}
		s.resetElectionTimer()
		if r := &s.reads; len(r.asked) > 0 {
			r.again, r.until = min(r.again, s.now+s.cfg.Heartbeat), min(r.until, s.now+s.cfg.ElectionTimeout)
		}
	}
	s.stopped = s.stopped || !ok
	return ok
}

// others is the leader's view of the other members.
func (s *Paxos) others() slots.Others {
	o := slots.Others{Answers: s.answers, CaughtUp: s.caughtUp, Holds: s.holds}
	if s.cfg.Mutant == MutantChangeLosesBodies {
		o.Holds = nil
	}
	return o
}

// answers reports whether a member is active, as far as this member knows.
func (s *Paxos) answers(id protocol.MemberID) bool {
	p := s.peer(id)
	return id == s.cfg.Self || p != nil && s.active(p)
}

// caughtUp reports whether a member is active, knows what was decided a heartbeat ago, and has its bodies.
func (s *Paxos) caughtUp(id protocol.MemberID) bool {
	p := s.peer(id)
	return p != nil && s.active(p) && !s.streaming[p.id] && p.last >= s.lead.endAtHeartbeat &&
		(!p.lacking || s.cfg.Mutant == MutantChangeLosesBodies)
}

// promote makes a joining member a voter once it is caught up.
func (s *Paxos) promote() {
	if s.changing() {
		return
	}
	if in, ok := slots.Joiner(&s.conf, s.caughtUp); ok {
		s.proposeChange(in)
	}
}

// configChanged applies a configuration that has become active. A leader that is no longer a voter continues until
// that is resolved, and then transfers leadership.
func (s *Paxos) configChanged() {
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
	s.stepDown()
}
