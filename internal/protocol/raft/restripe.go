package raft

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/members"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// After a change of the membership every live body can be recovered when any minority of the new members is lost
// (docs/internals/craft.md, 2.7). Rows are enough if enough of the new voters hold theirs. A body that was cut into too
// many rows for that must be held whole by a given number of voters that every majority has one
// (docs/internals/craft.md, 2.1). k never changes, so there is no other way to fewer members.
//
// Whole copies are made first. The leader appends a configuration with the same members that says
// what those who stay hold whole from now on (protocol.Member.WholeAbove). Their owners gather it
// in the background and report. Until enough have done so, the change is refused as one to be tried
// again. The configuration is in the log. So a member that has applied it never gives up such a
// copy and restores a damaged one whole, also after a crash, and the next leader continues from
// there. The change keeps in the next configuration what it needs.
//
// The bodies of a retired instance have no one else who cares for them. The first instance's core does, once its member
// has applied the EntryReshape that retired it (see protocol.Bodies). Before that, a member that is missing such a body
// does not know of it, and says that it is missing nothing. So a member counts as a holder only by what it said when it
// had applied the last EntryReshape in the leader's log, and the leader changes no voters before it has applied that
// itself.

// restripe is the leader's view of a change that needs whole copies.
type restripe struct {
	// left is how many more members must hold bodies whole; 0 if no change waits for that.
	left int
	// until is how long members keep whole copies for a change that may be asked for again.
	until time.Duration
}

// restripeTimeouts is for how many election timeouts whole copies are kept for a change that no one
// asks for any more, while new bodies could be cut into more rows without them.
const restripeTimeouts = 60

// shapedAt reports whether a member that has applied the first instance's log so far knows of all bodies of
// instances that are retired. Other instances' logs account for their own bodies alone.
func (r *Raft) shapedAt(applied protocol.Index) bool {
	return r.cfg.Instance != protocol.FirstInstance || applied >= r.log.Shaped
}

// accounts reports whether what a member says of its bodies covers those of retired instances.
func (r *Raft) accounts(p *tracker.Progress) bool {
	return r.shapedAt(p.Applied) || r.cfg.Mutant == MutantCountBehind
}

// holdsParts reports whether a member certainly has at least its row of every live body.
func (r *Raft) holdsParts(id protocol.MemberID) bool {
	if id == r.cfg.Self {
		return !r.bodies.missing && r.disk.Settled() >= r.commit
	}
	p := r.peer(id)
	return p != nil && r.active(p) && !p.Lacking && p.Match >= r.commit && r.accounts(p)
}

// holdsWhole reports whether a member certainly holds every live body whole that is cut into more
// than k rows, and continues doing so. What it said under the configuration active covers them all:
// bodies that came later are cut into no more than that.
func (r *Raft) holdsWhole(id protocol.MemberID, k uint8) bool {
	m := r.members.Config.Find(id)
	if m == nil || m.WholeAbove == 0 || m.WholeAbove > k {
		return false
	}
	if id == r.cfg.Self {
		return r.obeyed() == r.members.Config.Restripes && r.bodies.partial <= k
	}
	p := r.peer(id)
	return p != nil && p.Restripes == r.members.Config.Restripes && p.Partial <= k && r.accounts(p)
}

// obeyed names the configuration whose whole copies this member holds, also after a crash: its disk has
// that configuration. Otherwise it could start again without it, and cut them to rows. 0: none.
func (r *Raft) obeyed() uint32 {
	if r.disk.Durable < r.members.At {
		return 0
	}
	return r.bodies.restripes
}

// rowsDo is the largest k of bodies that are durable by rows alone with the voters of a
// configuration, as far as is known what they hold; less than 1: not even whole bodies are.
func (r *Raft) rowsDo(c *protocol.Config) int {
	voters, holders := c.Voters(), 0
	for _, id := range voters {
		if r.holdsParts(id) {
			holders++
		}
	}
	n := len(voters)
	q := quorum.Size(n)
	return min(q, holders-(n-q))
}

// keepsBodies makes sure that all live bodies stay durable under the next configuration, to
// which it adds what members hold whole. It returns why that is not so yet, and begins to do
// something about it.
func (r *Raft) keepsBodies(next *protocol.Config, changes []protocol.Change) protocol.Reason {
	if members.SameVoters(next, r.members.Config) {
		members.Inherit(r.members.Config, next)
		return protocol.ReasonNone
	}
	if !r.shapedAt(r.applied) && r.cfg.Mutant != MutantLeaderBehind {
		return protocol.ReasonChangePending
	}
	for i := range changes {
		if p := r.peer(changes[i].Member.ID); changes[i].Kind == protocol.AddVoter && p != nil && p.Lacking && r.maxK() > 0 {
			return protocol.ReasonBodies // a learner is to have made its rows first
		}
	}
	most, rows := int(r.maxK()), r.rowsDo(next)
	switch {
	case most == 0, r.cfg.Mutant == MutantCodeNoRestripe:
	case rows < 1:
		return protocol.ReasonBodies
	case most > rows:
		return r.restriped(next, uint8(rows))
	}
	next.HoldWhole(0, func(protocol.MemberID) bool { return false })
	r.lead.restripe.left = 0
	return protocol.ReasonNone
}

// restriped reports whether enough voters of the next configuration hold whole what is cut
// into more than k rows. First it has them asked to.
func (r *Raft) restriped(next *protocol.Config, k uint8) protocol.Reason {
	r.lead.restripe.until = r.now + restripeTimeouts*r.cfg.ElectionTimeout
	stays := func(id protocol.MemberID) bool { return next.Find(id) != nil }
	n, whole, asked := 0, 0, true
	for _, id := range next.Voters() {
		n++
		if m := r.members.Config.Find(id); m != nil && (m.WholeAbove == 0 || m.WholeAbove > k) {
			asked = false
		}
		if r.holdsWhole(id, k) {
			whole++
		}
	}
	need := n - quorum.Size(n) + 1
	r.lead.restripe.left = max(0, need-whole)
	switch {
	case whole >= need:
		next.HoldWhole(k, stays)
		return protocol.ReasonNone
	case asked:
		return protocol.ReasonRestriping
	case len(r.coded) > 0:
		r.place.uncode()
		return protocol.ReasonChangePending
	}
	c := r.members.Config.Clone()
	c.Number()
	c.HoldWhole(k, stays)
	r.appendConfig(c, protocol.ProposalID{})
	r.advance()
	r.replicateAll()
	return protocol.ReasonRestriping
}

// relax lets members hold rows again where that lets new bodies be cut into more of them, and rows
// are enough for those that there are. No one gives up a copy because of it unless it has made sure
// that enough others hold something, see body.HolderCount.
func (c *code) relax() {
	r := c.r
	bound := int(r.members.Config.MaxRows())
	if bound == 0 || bound >= c.limit() || r.now < r.lead.restripe.until ||
		r.lead.hand.to != 0 || r.commit < r.lead.first || r.members.At > r.commit || r.members.Config.Joint() || !r.shapedAt(r.applied) {
		return
	}
	rows := r.rowsDo(r.members.Config)
	next := r.members.Config.Clone()
	switch {
	case rows >= int(r.maxK()):
		next.HoldWhole(0, func(protocol.MemberID) bool { return false })
	case rows > bound:
		next.HoldWhole(uint8(rows), func(protocol.MemberID) bool { return true })
	default:
		return
	}
	if len(r.coded) > 0 {
		c.uncode()
		return
	}
	r.lead.restripe.left = 0
	r.appendConfig(next, protocol.ProposalID{})
	r.advance()
	r.replicateAll()
}
