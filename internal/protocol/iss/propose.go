package iss

import (
	"cmp"
	"slices"

	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// proposals are those that wait on this member.
type proposals struct {
	// queue are proposals that wait for free slots of this member's segment, of queued bytes. change is a membership
	// change that waits with them; nil: none.
	queue  []protocol.Entry
	queued int
	change *protocol.ProposeChange
	// asked is the context of the change that was proposed last.
	asked uint64
	// returned are entries that were proposed and not decided. They wait for the next epoch.
	returned []protocol.Entry
	// routed is where proposals are sent, since the epoch routedAt.
	routed   protocol.MemberID
	routedAt uint64
}

// route selects where this member's proposals are sent: into its own segment, or to the leader of its bucket. A
// leader that is not active is left out: with the policy simple it leads nevertheless.
func (s *ISS) route() {
	to := s.cfg.Self
	if s.own == nil {
		to = s.epoch.OwnerAmong(epochs.BucketOf(uint64(s.cfg.Self)),
			func(id protocol.MemberID) bool { return s.active(s.other(id)) })
	}
	if to != s.proposals.routed {
		s.proposals.routed, s.proposals.routedAt = to, s.epoch.Number
	}
}

// reroute selects another leader once the one that this member's proposals are sent to is not active. The end of the
// epoch may not come first: if no other command needs the slots of that leader, it is not suspected.
func (s *ISS) reroute() {
	if s.own == nil && s.epoch != nil && !s.active(s.other(s.proposals.routed)) {
		s.route()
	}
}

// onProposeInput accepts entries on the member where they were proposed. They are forwarded at once, or never.
func onProposeInput(s *ISS, entries []protocol.Entry) {
	if s.own == nil && s.epoch != nil && !s.removed() && !s.waits() {
		s.forward(entries)
		return
	}
	s.enqueue(entries, func(id protocol.ProposalID, reason protocol.Reason) {
		s.out.Reject = append(s.out.Reject, protocol.Rejection{ID: id, Reason: reason, Leader: s.leads()})
	})
}

func (s *ISS) forward(entries []protocol.Entry) {
	for len(entries) > 0 {
		n := protocol.Fitting(entries, s.cfg.MaxFrameBytes)
		s.send(s.proposals.routed, MsgPropose, Part{}).Entries = entries[:n:n]
		entries = entries[n:]
	}
}

func onPropose(s *ISS, m *protocol.Message) {
	s.enqueue(s.takeTargets(m.Entries), func(id protocol.ProposalID, reason protocol.Reason) {
		s.send(m.From, MsgProposeRefused, Part{ID: id, Reason: reason})
	})
}

func onProposeRefused(s *ISS, p *Part) {
	if p.ID != (protocol.ProposalID{}) && p.Reason != protocol.ReasonNone {
		s.out.Reject = append(s.out.Reject, protocol.Rejection{ID: p.ID, Reason: p.Reason, Leader: s.leads()})
	}
}

// enqueue accepts what fits and refuses the rest, by id. An accepted proposal may be lost if this member stops: its
// member proposes it again.
func (s *ISS) enqueue(entries []protocol.Entry, refuse func(protocol.ProposalID, protocol.Reason)) {
	for i := range entries {
		e := &entries[i]
		switch reason := s.refusal(e); {
		case reason == protocol.ReasonNone:
			s.proposals.queue = append(s.proposals.queue, *e)
			s.proposals.queued += e.Bytes()
		case e.ID != protocol.ProposalID{}:
			refuse(e.ID, reason)
		}
	}
}

// refusal is the reason for refusing a proposal; ReasonNone if it is accepted.
func (s *ISS) refusal(e *protocol.Entry) protocol.Reason {
	switch {
	case !e.Kind.Commands():
		return protocol.ReasonInvalidChange // the others are proposed otherwise
	case e.Bytes() > min(s.cfg.MaxUncommittedBytes, protocol.MaxEntryBytes),
		e.BodySize > 0 && (e.Form != protocol.FormWhole || !e.Resident()):
		return protocol.ReasonTooLarge
	case e.CheckProposal() != nil:
		return protocol.ReasonMalformed
	case s.removed():
		return protocol.ReasonRemoved
	case s.waits():
		return protocol.ReasonSealing
	case s.own == nil || s.incarnation == 0:
		return protocol.ReasonNoLeader
	case s.own.open+s.proposals.queued > 0 && s.own.open+s.proposals.queued+e.Bytes() > s.cfg.MaxUncommittedBytes:
		return protocol.ReasonOverloaded
	}
	return protocol.ReasonNone
}

// fill proposes what waits, as far as the segment has free slots. A membership change comes first. After one, each
// leader of the next epoch proposes an empty value at once, which shows that it has the change.
func (s *ISS) fill(b *broadcast) {
	if b.hasFreeSlot() && s.unsettled > 0 && s.unsettled < s.epoch.First && b.prop.End < b.seg.First {
		b.propose(protocol.NewEmpty(s.cfg.Self))
	}
	if s.proposals.change != nil && b.hasFreeSlot() {
		s.proposeConfig(b)
	}
	if s.seal.wanted != nil && s.hasInnerSlot(b) {
		s.proposeSeal(b)
	}
	if s.woven.skip > 0 && s.hasInnerSlot(b) {
		s.proposeSkip(b)
	}
	for len(s.proposals.queue) > 0 && b.hasFreeSlot() {
		e, rest := slots.Pop(s.proposals.queue)
		s.proposals.queue, s.proposals.queued = rest, s.proposals.queued-e.Bytes()
		b.propose(e)
	}
}

// returned takes back an entry of this member in whose slot another proposer had ⊥ decided. Commands are proposed
// again. A membership change is refused, and the operator's request goes to the member that leads now.
func (s *ISS) returned(e protocol.Entry) {
	switch {
	case e.Kind.Commands():
		s.proposals.returned = append(s.proposals.returned, e)
	case e.Kind == protocol.EntryConfig:
		s.refuse(s.proposals.asked, protocol.ReasonChangePending)
	}
}

// requeue puts the returned entries of an epoch in front of the queue.
func (p *proposals) requeue() {
	slices.SortFunc(p.returned, func(a, b protocol.Entry) int { return cmp.Compare(a.Index, b.Index) })
	for i := range p.returned {
		p.queued += p.returned[i].Bytes()
	}
	p.queue, p.returned = append(p.returned, p.queue...), nil
}

// forwardQueue forwards the queue if this member leads no segment of the epoch that has begun.
func (s *ISS) forwardQueue() {
	if s.own != nil || len(s.proposals.queue) == 0 {
		return
	}
	queue := s.proposals.queue
	s.proposals.queue, s.proposals.queued = nil, 0
	s.forward(queue)
}

// Membership. One member proposes changes: the one that is known as the leader. It proposes at most one in an
// epoch, and knows everything that was decided in earlier ones. So changes need not be folded (R2), and presume
// what is there (R3).

// proposeChange accepts a change. A new voter joins as a learner first: it votes when it has everything that was
// decided before (R4). A member that knows nothing could not even learn that it has to vote.
func (s *ISS) proposeChange(in protocol.ProposeChange) {
	if in.Target != nil {
		s.follow(in)
		return
	}
	in.Changes = s.conf.Joins(in.Changes)
	role := protocol.Follower
	if s.leads() == s.cfg.Self {
		role = protocol.Leader
	}
	reason := slots.RefuseChange(&s.conf, s.cfg.Self, role, s.leads(), &in)
	if s.closed() || reason == protocol.ReasonNone && s.sealProposed() {
		reason = protocol.ReasonSealing
	}
	if reason == protocol.ReasonNone && s.changing() {
		reason = protocol.ReasonChangePending
	}
	if reason == protocol.ReasonNone {
		_, reason = s.changed(in.Changes)
	}
	if reason != protocol.ReasonNone {
		s.refuse(in.Context, reason)
		return
	}
	s.proposals.change = &in
}

// changing reports whether an earlier change is in progress.
func (s *ISS) changing() bool {
	return s.proposals.change != nil || s.unsettled > 0 || s.undecidedConfig(s.log.Last()) != nil || s.own == nil ||
		!s.own.zero()
}

// undecidedConfig is the configuration that this member proposed and that is not in the log; nil if there is none.
// It may be decided already, after undecided slots of others: a change that is made now would not include it.
func (t *epochState) undecidedConfig(last protocol.Index) *protocol.Config {
	if t.own == nil {
		return nil
	}
	for i := t.own.seg.After(last); i <= t.own.seg.Last; i = t.own.seg.After(i) {
		e, ok := t.own.ownValues[i]
		if !ok {
			e = t.own.decided[i]
		}
		if e.Kind == protocol.EntryConfig {
			c, _ := protocol.DecodeConfig(e.Payload) // it was checked when it was accepted
			return &c
		}
	}
	return nil
}

// proposeConfig proposes the change that waits, if it is still valid.
func (s *ISS) proposeConfig(b *broadcast) {
	in := s.proposals.change
	s.proposals.change = nil
	e, reason := protocol.Entry{}, protocol.ReasonNone
	if in.Target == nil {
		_, reason = s.changed(in.Changes)
	}
	switch {
	case s.leads() != s.cfg.Self:
		reason = protocol.ReasonNoLeader
	case in.Target != nil:
		e, reason = s.followed(in)
	case reason == protocol.ReasonNone:
		e, reason = slots.NextConfig(&s.conf, in, s.quorums, s.knownOthers(), &s.bodies)
	}
	if reason != protocol.ReasonNone {
		s.refuse(in.Context, reason)
		return
	}
	s.proposals.asked = in.Context
	b.propose(e)
}

// proposing is the configuration that this member proposes or will propose; nil if there is none.
func (s *ISS) proposing() *protocol.Config {
	if in := s.proposals.change; in != nil {
		if c, reason := s.changed(in.Changes); reason == protocol.ReasonNone {
			return &c
		}
	}
	return s.undecidedConfig(s.log.Last())
}

// changed returns the configuration after the changes, or the reason for refusing them. Where there are bodies, one
// voter is added or removed at a time: other leaders continue to propose meanwhile. A body that a quorum of the
// former voters has is still with each quorum of the next ones then. In a grid it need not be, because voters change
// their columns, and neither where a voter changes its zone. So no member joins that could not become a voter. In a
// merged log other instances may have bodies, and have to follow.
func (s *ISS) changed(changes []protocol.Change) (protocol.Config, protocol.Reason) {
	next, reason := slots.Changed(&s.conf, changes, s.quorums, s.knownOthers())
	if reason == protocol.ReasonNone {
		reason = s.tuning.Refuses(&s.cfg, &s.conf.Profile, &next.Profile)
	}
	if reason == protocol.ReasonNone && (s.bodies.Any || s.bodiesAfter(s.log.Last()) || s.cfg.Merged) &&
		!(carries(s.quorums, &s.conf, &next) && admits(s.quorums, &s.conf, &next)) {
		reason = protocol.ReasonBodies
	}
	return next, reason
}

// admits reports whether a change leaves no joining member that can never become a voter where there are bodies. If
// there is one already, a change does not make it worse: it may remove that member.
func admits(quorums quorum.System, now, next *protocol.Config) bool {
	return quorums.Admits(next, true) || !quorums.Admits(now, true)
}

// carries reports whether every quorum of the next voters intersects each one of those that decide now.
func carries(quorums quorum.System, now, next *protocol.Config) bool {
	a, b := quorum.VotersOf(now), quorum.VotersOf(next)
	return quorums.Same(a, b) || differ(a.IDs, b.IDs) <= 1 && quorums.Carries(a, b)
}

// bodiesAfter reports whether this member has accepted bodies that are not in the log, which ends with last.
func (t *epochState) bodiesAfter(last protocol.Index) bool {
	for _, b := range t.parts {
		for i := b.seg.After(last); i <= b.acc.Top; i = b.seg.After(i) {
			if b.acc.Votes[i].Entry.BodySize > 0 {
				return true
			}
		}
	}
	return false
}

// differ is how many members are in one list and not in the other.
func differ(a, b []protocol.MemberID) (n int) {
	for _, id := range slices.Concat(a, b) {
		if slices.Contains(a, id) != slices.Contains(b, id) {
			n++
		}
	}
	return n
}

// knownOthers is what this member knows of the other members.
func (s *ISS) knownOthers() slots.Others {
	return slots.Others{Answers: s.answers, CaughtUp: s.caughtUp, Holds: s.holdsAll}
}

// answers reports whether a member is active, as far as this member knows.
func (s *ISS) answers(id protocol.MemberID) bool {
	o := s.other(id)
	return id == s.cfg.Self || o != nil && s.active(o)
}

// caughtUp reports whether a member is active and has everything that was decided a heartbeat ago, with its bodies.
func (s *ISS) caughtUp(id protocol.MemberID) bool {
	o := s.other(id)
	return o != nil && s.active(o) && !s.catchUp.streaming[id] && o.commit >= s.endAtHeartbeat && !o.lacking
}

// holdsAll reports whether a member is known to have the bodies of all decided entries.
func (s *ISS) holdsAll(id protocol.MemberID) bool {
	if id == s.cfg.Self {
		return !s.bodies.Missing && s.disk.Durable.Last >= s.log.Last()
	}
	o := s.other(id)
	return o != nil && o.logged >= s.log.Last() && !o.lacking
}

// promote makes a joining member a voter once it is caught up.
func (s *ISS) promote() {
	if s.leads() != s.cfg.Self || s.changing() || s.sealProposed() || s.woven.follows {
		return
	}
	if in, ok := slots.Joiner(&s.conf, s.caughtUp); ok {
		s.proposeChange(in)
	}
}

// transfer refuses to transfer leadership: the leader follows from the log.
func transfer(s *ISS, in protocol.Transfer) {
	if s.closed() {
		s.refuse(in.Context, protocol.ReasonSealing)
		return
	}
	if leads := s.leads(); leads == 0 || leads != s.cfg.Self || in.To != s.cfg.Self {
		s.refuse(in.Context, protocol.ReasonLeaderFollows)
	}
}
