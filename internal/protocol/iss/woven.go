package iss

import (
	"cmp"
	"slices"

	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// Several instances whose logs are merged into one (docs/internals/iss.md, Cores). The order of the merged log leaves
// out skips of rounds, and a seal that does not count. So these have no value for the history, as ⊥,
// and are in no leader's last slot, from which suspicion follows.

// woven is the state of an instance for merging its log with the logs of other instances.
type woven struct {
	// follows: the members change in another instance, whose membership this one takes over.
	follows bool
	// skip is the round up to which this member is to skip; 0: none.
	skip protocol.Round
	// retained are the members that other instances have, ascending.
	retained []protocol.MemberID
}

// leftOut reports whether the order leaves out an entry, so that nothing may follow from it.
func (s *ISS) leftOut(e *protocol.Entry) bool {
	return e.Kind == protocol.EntrySkip || e.Kind == protocol.EntrySeal && s.cfg.Merged
}

// takeSkips notes the rounds that this member is to skip, and returns the other entries. A skip is absolute, so one
// skip to the furthest round is enough. While the log waits for the verdict of a seal, the skip waits too.
func (s *ISS) takeSkips(entries []protocol.Entry) []protocol.Entry {
	if !slices.ContainsFunc(entries, func(e protocol.Entry) bool { return e.Kind == protocol.EntrySkip }) {
		return entries
	}
	var rest []protocol.Entry
	for i := range entries {
		if e := &entries[i]; e.Kind != protocol.EntrySkip {
			rest = append(rest, *e)
		} else if s.own != nil && !s.closed() && !s.removed() {
			s.woven.skip = max(s.woven.skip, e.Round())
		}
	}
	return rest
}

// hasInnerSlot reports whether there is a free slot for an entry that the order may leave out. If only the last one of
// the segment is free, it gets an empty value, and the entry waits for the next epoch.
func (s *ISS) hasInnerSlot(b *broadcast) bool {
	switch {
	case !b.hasFreeSlot():
		return false
	case !s.cfg.Merged || b.seg.After(b.prop.End) < b.seg.Last || s.cfg.Mutant == MutantSkipInLastSlot:
		return true
	}
	b.propose(protocol.NewEmpty(s.cfg.Self))
	return false
}

// proposeSkip proposes the skip that waits.
func (s *ISS) proposeSkip(b *broadcast) {
	b.propose(protocol.NewSkip(s.woven.skip))
	s.woven.skip = 0
}

// retain keeps members that other instances have: they are sent how the epochs end, so that they can apply what the
// merged log has until they leave all instances.
func (s *ISS) retain(members []protocol.MemberID) {
	s.woven.retained = members
	s.updateMembers()
}

// follow changes to the membership of the first instance. A member that is not the one that proposes changes tells
// that one: it may have been left out there, and does not know it.
func (s *ISS) follow(in protocol.ProposeChange) {
	reason := protocol.ReasonNone
	switch {
	case s.closed() || s.sealProposed():
		reason = protocol.ReasonSealing
	case s.removed():
		reason = protocol.ReasonRemoved
	case s.leads() == 0:
		reason = protocol.ReasonNoLeader
	case s.leads() != s.cfg.Self:
		s.send(s.leads(), MsgPropose, Part{}).Entries = []protocol.Entry{in.TargetEntry()}
		return
	case s.changing():
		reason = protocol.ReasonChangePending
	default:
		_, reason = s.followed(&in)
	}
	if reason != protocol.ReasonNone {
		s.refuse(in.Context, reason)
		return
	}
	s.proposals.change = &in
}

// takeTargets follows the memberships that other members sent, and returns the other entries. Whether only names and
// addresses of a membership are newer cannot be seen, so these come from this member alone.
func (s *ISS) takeTargets(entries []protocol.Entry) []protocol.Entry {
	if !slices.ContainsFunc(entries, func(e protocol.Entry) bool { return e.Kind == protocol.EntryConfig }) {
		return entries
	}
	var rest []protocol.Entry
	for i := range entries {
		e := &entries[i]
		if e.Kind != protocol.EntryConfig {
			rest = append(rest, *e)
			continue
		}
		target, err := protocol.DecodeConfig(e.Payload)
		next, ok := s.conf.Follow(&target)
		if err == nil && ok && s.leads() == s.cfg.Self && (!next.Profile.Equal(&s.conf.Profile) ||
			next.Slots != s.conf.Slots || !slices.Equal(next.Removed, s.conf.Removed) ||
			!slices.Equal(next.Voters(), s.conf.Voters())) {
			s.follow(protocol.ProposeChange{ID: e.ID, Target: &target})
		}
	}
	return rest
}

// followed is the entry by which this instance comes nearer to a membership that the cluster has already, or the reason
// why not now. It waits for voters that are catching up, and for bodies.
func (s *ISS) followed(in *protocol.ProposeChange) (e protocol.Entry, reason protocol.Reason) {
	next, ok := s.conf.Follow(in.Target)
	if !ok || next.SameMembers(&s.conf) {
		return e, protocol.ReasonInvalidChange
	}
	if reason = s.tuning.Refuses(&s.cfg, &s.conf.Profile, &next.Profile); reason != protocol.ReasonNone {
		return e, reason
	}
	if next, reason = s.nearer(next); reason != protocol.ReasonNone {
		return e, reason
	}
	if (s.bodies.Any || s.bodiesAfter(s.log.Last())) && !slots.SameQuorums(s.quorums, &s.conf, &next) {
		if reason = s.bodies.Kept(s.quorums.Elects(quorum.Of(&next)), s.holdsAll); reason != protocol.ReasonNone {
			return e, reason
		}
	}
	return protocol.NewConfig(in.ID, next), protocol.ReasonNone
}

// nearer is the next membership on the way to one that the cluster has already. It adds or removes one voter at a time,
// because other leaders propose meanwhile, values with bodies too. It adds first, so that the way tolerates as many
// crashes as its ends. It removes first if those that answer could not decide otherwise. Whether the members at the end
// answer does not matter: the cluster decides with them in any case.
func (s *ISS) nearer(next protocol.Config) (protocol.Config, protocol.Reason) {
	if carries(s.quorums, &s.conf, &next) {
		if s.awaits(&next) {
			return next, protocol.ReasonUnsafeChange
		}
		return next, protocol.ReasonNone
	}
	for _, step := range steps(&s.conf, &next) {
		if step.Validate() != nil || slots.Fit(s.quorums, &step) != nil || !carries(s.quorums, &s.conf, &step) {
			continue
		}
		if s.awaits(&step) {
			return step, protocol.ReasonUnsafeChange
		}
		if slots.Quorate(s.quorums, &step, s.answers) {
			return step, protocol.ReasonNone
		}
	}
	return next, protocol.ReasonUnsafeChange
}

// steps are the memberships that are one voter nearer to the next one, those with another voter first.
func steps(now, next *protocol.Config) (all []protocol.Config) {
	for _, id := range next.Voters() {
		if !now.Voter(id) {
			all = append(all, between(now, next, id))
		}
	}
	for _, id := range now.Voters() {
		if !next.Voter(id) {
			all = append(all, between(now, next, id))
		}
	}
	return all
}

// between is the next membership, except that of all voters only one has moved: others that come are joining, and
// others that go are still there.
func between(now, next *protocol.Config, moved protocol.MemberID) protocol.Config {
	c := next.Clone()
	for i := range c.Members {
		if m := &c.Members[i]; !m.Learner && !now.Voter(m.ID) && m.ID != moved {
			m.Learner, m.Joining = true, true
		}
	}
	for i := range now.Members {
		if m := now.Members[i]; !m.Learner && c.Find(m.ID) == nil && m.ID != moved {
			c.Members = append(c.Members, m)
			c.Removed = slices.DeleteFunc(c.Removed, func(id protocol.MemberID) bool { return id == m.ID })
		}
	}
	slices.SortFunc(c.Members, func(a, b protocol.Member) int { return cmp.Compare(a.ID, b.ID) })
	return c
}

// awaits reports whether a voter of the next membership is catching up here, or may begin to: it is not known yet, or
// for less than an election timeout. One that is not known becomes a learner first.
func (s *ISS) awaits(next *protocol.Config) bool {
	for i := range next.Members {
		m := &next.Members[i]
		if m.Learner || s.conf.Voter(m.ID) {
			continue
		}
		o := s.other(m.ID)
		switch {
		case m.ID == s.cfg.Self:
		case s.conf.Find(m.ID) == nil || o == nil:
			m.Learner, m.Joining = true, true
		case s.active(o) && !s.caughtUp(m.ID), !s.active(o) && s.now < o.heard+s.cfg.ElectionTimeout:
			return true
		}
	}
	return false
}
