package raft

import (
	"slices"

	"github.com/braidlog/braid/internal/protocol/raft/code"
	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/internal/protocol/raft/members"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// configChanged continues under another configuration.
func (r *Raft) configChanged() {
	r.tune()
	if r.role == protocol.Leader {
		r.lead.track(&r.members, r.cfg.Self, r.log.Last, r.now)
		r.confirmReads() // fewer may be needed now, who have all answered
	}
}

// tune continues under the settings of the active profile.
func (r *Raft) tune() {
	if r.tuned == r.members.Settings {
		return
	}
	r.tuned = r.members.Settings
	r.cfg = *r.tuned
	r.view.On = lane.On.In(r.cfg.Own)
	switch {
	case r.role == protocol.Leader:
		r.lead.beat = min(r.lead.beat, r.now+r.cfg.Heartbeat)
	case r.started:
		r.rest()
	}
}

// usable reports whether this program can have the profile of a configuration. If it cannot, this member stops.
func (r *Raft) usable(c *protocol.Config) bool {
	err := r.members.Usable(c)
	if err == nil {
		return true
	}
	r.out.Unusable, r.stopped = err, true
	return false
}

func (r *Raft) proposeChange(in protocol.ProposeChange) {
	switch {
	case r.members.Removed(r.cfg.Self, r.commit):
		r.out.Refuse(in.Context, protocol.ReasonRemoved, 0)
		return
	case r.closed():
		r.out.Refuse(in.Context, protocol.ReasonSealing, 0)
		return
	case r.role != protocol.Leader && r.leader == 0:
		r.out.Refuse(in.Context, protocol.ReasonNoLeader, 0)
		return
	case r.role != protocol.Leader && in.Target != nil:
		r.forward([]protocol.Entry{in.TargetEntry()})
		return
	case r.role != protocol.Leader:
		r.out.Refuse(in.Context, protocol.ReasonNotLeader, r.leader)
		return
	case r.ending():
		r.out.Refuse(in.Context, protocol.ReasonSealing, r.cfg.Self)
		return
	case r.lead.hand.to != 0:
		r.out.Refuse(in.Context, protocol.ReasonTransferring, r.cfg.Self)
		return
	case !r.lead.ready || r.commit < r.lead.first || r.members.At > r.commit || r.members.Config.Joint():
		// Before an entry of our term is committed, an earlier leader's change may be
		// undecided without our knowing.
		r.out.Refuse(in.Context, protocol.ReasonChangePending, r.cfg.Self)
		return
	}
	next, reason := members.Next(r.members.Config, &in, r.see().MaxK() > 0)
	if n := len(protocol.EncodeConfig(next)); reason == protocol.ReasonNone && n > protocol.MaxConfigBytes &&
		n > len(protocol.EncodeConfig(*r.members.Config)) {
		reason = protocol.ReasonTooLarge
	}
	if reason == protocol.ReasonNone && r.members.Usable(&next) != nil {
		reason = protocol.ReasonSettings
	}
	if reason == protocol.ReasonNone && r.cfg.Placement == protocol.PlacementRS &&
		(members.Joins(&next) || !members.SameVoters(&next, r.members.Config)) {
		reason = protocol.ReasonInvalidChange
	}
	if reason == protocol.ReasonNone && in.Target == nil && !r.keepsState(&next) {
		reason = protocol.ReasonChangePending
	}
	if reason == protocol.ReasonNone && !r.wise(&next, &in) {
		reason = protocol.ReasonUnsafeChange
	}
	if reason == protocol.ReasonNone {
		var first *protocol.Config
		if first, reason = code.Keep(r.see(), r.view.Place, &next, in.Changes); first != nil {
			r.appendConfig(*first, protocol.ProposalID{})
			r.advance()
			r.replicateAll()
		}
	}
	if reason == protocol.ReasonNone && len(r.bodies.Coded.Indexes) > 0 {
		// No configuration after a coded entry that is not committed: the next leader could find that it
		// never was, and would cut the log before it (docs/internals/craft.md, C8).
		r.view.Place.Uncode(r.see())
		reason = protocol.ReasonChangePending
	}
	if reason == protocol.ReasonNone {
		ready := false
		if ready, reason = r.lanes.BehindFence(r.seeLanes(), &in, &next); !ready && reason == protocol.ReasonNone {
			return // it waits
		}
	}
	if reason != protocol.ReasonNone {
		r.out.Refuse(in.Context, reason, r.cfg.Self)
		return
	}
	sameVoters := members.SameVoters(r.members.Config, &next)
	if !members.OneApart(r.members.Config.Voters(), next.Voters()) {
		next.Outgoing = r.members.Config.Voters()
	}
	r.appendConfig(next, in.ID)
	if sameVoters { // nothing is coded until it is committed, and no other change follows from it
		r.view.Place.Recode()
	}
	r.advance()
	r.replicateAll()
}

// onTarget changes to a configuration that another member sent, if it has other members or a newer profile. Whether
// only its addresses are newer cannot be seen. That member does not learn of a refusal.
func (r *Raft) onTarget(e *protocol.Entry) {
	target, err := protocol.DecodeConfig(e.Payload)
	if err != nil || r.role != protocol.Leader {
		return
	}
	next, ok := r.members.Config.Follow(&target)
	have := r.members.Config
	if ok && (!next.Profile.Equal(&have.Profile) || next.Slots != have.Slots ||
		!slices.Equal(next.Removed, have.Removed) || !members.SameVoters(&next, have)) {
		r.proposeChange(protocol.ProposeChange{ID: e.ID, Target: &target})
	}
}

// promote makes a joining member a voter once it answers and is caught up. Decisions count it from
// then on. The first instance decides that for all.
func (r *Raft) promote() {
	l := &r.lead
	if r.log.Follows || !l.ready || r.ending() || l.hand.to != 0 || r.commit < l.first ||
		r.members.At > r.commit || r.members.Config.Joint() {
		return
	}
	for i := range r.members.Config.Members {
		m := &r.members.Config.Members[i]
		p := r.lead.peer(m.ID)
		if !m.Joining || p == nil || p.Bodies.Lacking && r.see().MaxK() > 0 {
			continue // without its rows it would be refused; others need not wait for it
		}
		if r.active(p) && p.Phase == tracker.Stream && p.Match >= l.first && r.caughtUp(p) && code.ShapedAt(&r.log,
			p.Bodies.Applied) || r.cfg.Mutant == MutantPromoteAtOnce {
			r.proposeChange(
				protocol.ProposeChange{Changes: []protocol.Change{{Kind: protocol.AddVoter, Member: protocol.Member{ID: m.ID}}}})
			return
		}
	}
}

// wise reports whether to make a change now. A change that another instance has made already is
// made even if too few members are active: the cluster decides with the new voters in any case,
// and an instance that stayed behind would hold up all. It only waits for learners that are
// catching up, or may begin to.
func (r *Raft) wise(next *protocol.Config, in *protocol.ProposeChange) bool {
	if in.Target == nil {
		return r.safe(next, in.Changes)
	}
	for i := range in.Changes {
		p := r.lead.peer(in.Changes[i].Member.ID)
		if in.Changes[i].Kind != protocol.AddVoter || p == nil {
			continue
		}
		if r.active(p) && !r.caughtUp(p) || !r.active(p) && r.now < p.Since+r.cfg.ElectionTimeout {
			return false
		}
	}
	return true
}

// caughtUp reports whether a member has what was committed a heartbeat ago; a heartbeat before the fence
// of a change that is made behind one, because such a change does not come with the heartbeat.
func (r *Raft) caughtUp(p *tracker.Progress) bool {
	beaten := r.lead.beaten
	if at, ok := r.lanes.Beaten(); ok {
		beaten = at
	}
	return p.Phase != tracker.Snapshot && p.Match >= beaten
}

// safe reports whether the cluster could still decide after the change with the members that are
// available now, and whether learners that become voters are caught up: they have what was
// committed a heartbeat ago.
func (r *Raft) safe(next *protocol.Config, changes []protocol.Change) bool {
	shrinks := false
	for i := range changes {
		id := changes[i].Member.ID
		switch changes[i].Kind {
		case protocol.AddVoter:
			shrinks = true
			if p := r.lead.peer(id); r.members.Config.Find(id) != nil && p != nil && (!r.active(p) || !r.caughtUp(p)) &&
				r.cfg.Mutant != MutantPromoteAtOnce {
				return false
			}
		case protocol.RemoveMember:
			shrinks = true
		}
	}
	voters := next.Voters()
	if !shrinks || len(r.members.Voters.Incoming) == 1 && len(voters) == 2 {
		return true // a cluster of one can only grow by waiting for its second member
	}
	active := 0
	for _, id := range voters {
		if p := r.lead.peer(id); id == r.cfg.Self || p != nil && r.active(p) {
			active++
		}
	}
	return active >= quorum.Size(len(voters))
}

// keepsState reports whether enough of the next voters have the state, and every new one that was a learner. The first
// instance's log does not lead to the state on its own where the number of instances has changed: retired ones keep
// their logs for a while only, and only their members ever had these. So a member that has not applied the last such
// change counts as one that may have nothing, although it has the log. A voter that was not a member is not asked for
// anything.
func (r *Raft) keepsState(next *protocol.Config) bool {
	voters := next.Voters()
	if r.log.Follows || slices.Equal(r.members.Config.Voters(), voters) ||
		r.cfg.Mutant == MutantCountStateless {
		return true
	}
	have := 0
	for _, id := range voters {
		switch p := r.lead.peer(id); {
		case id == r.cfg.Self && code.ShapedAt(&r.log, r.applied),
			p != nil && code.ShapedAt(&r.log, p.Bodies.Applied):
			have++
		case p != nil && !r.members.Config.Voter(id):
			return false
		}
	}
	return have >= quorum.Size(len(voters)) || len(r.members.Voters.Incoming) == 1 && len(voters) == 2
}

// appendConfig appends a configuration, which is active at once.
func (r *Raft) appendConfig(c protocol.Config, id protocol.ProposalID) {
	e := protocol.NewConfig(id, c)
	r.appendOwn(&e, make([]byte, protocol.HeadSize))
	if err := r.members.Append(e.Index, c); err != nil {
		panic(err) // the profile is the active one, or usable as proposeChange saw
	}
	r.configChanged()
}

// settleConfig continues when the configuration active is committed: it leaves a joint one, and
// gives members that left a deadline. It takes the next step only when an entry of this term is
// committed. So there is one change at a time.
func (r *Raft) settleConfig() {
	if r.members.At > r.commit {
		return
	}
	r.lead.dismiss(&r.members, r.now+r.cfg.ElectionTimeout)
	if r.members.Config.Joint() && r.commit >= r.lead.first && !r.ending() {
		next := r.members.Config.Clone()
		next.Outgoing = nil
		var id protocol.ProposalID
		if r.members.At > r.log.Base {
			id = r.log.At(r.members.At).ID
		}
		r.appendConfig(next, id)
		r.advance()
	}
}

// resign ends the leadership of a member that is no longer a voter, once that is committed (Raft
// §4.2.2). The most advanced voter is told to stand at once.
func (r *Raft) resign() {
	if r.role != protocol.Leader || r.closed() || r.members.At > r.commit || r.members.Voters.Has(r.cfg.Self) {
		return
	}
	if p := r.lead.mostAdvanced(&r.members, r.now, r.cfg.ElectionTimeout); p != nil {
		r.send(message.With(protocol.Message{Type: message.TimeoutNow, To: p.ID}, message.Part{}))
	}
	r.follow(r.term, 0)
}
