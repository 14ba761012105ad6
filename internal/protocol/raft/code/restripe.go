package code

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/members"
	"github.com/braidlog/braid/internal/protocol/raft/raftlog"
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
// The bodies of a retired instance have no other owner. The first instance's core does, once its member
// has applied the EntryReshape that retired it (see protocol.Bodies). Before that, a member that is missing such a body
// does not know of it, and says that it is missing nothing. So a member counts as a holder only by what it said when it
// had applied the last EntryReshape in the leader's log, and the leader changes no voters before it has applied that
// itself.

// Restripe is a leader's view of a change that needs whole copies.
type Restripe struct {
	// Left is how many more members must hold bodies whole; 0 if no change waits for that.
	Left int
	// until is how long members keep whole copies for a change that may be asked for again.
	until time.Duration
}

// Rest has members keep the whole copies that there are for a while.
func (v *View) Rest() { v.Restripe.until = v.Now + restripeTimeouts*v.Settings.ElectionTimeout }

// restripeTimeouts is for how many election timeouts whole copies are kept for a change that no one
// asks for any more, while new bodies could be cut into more rows without them.
const restripeTimeouts = 60

// ShapedAt reports whether a member that has applied an instance's log so far knows of all bodies for which the
// instance accounts. The first one accounts for those of instances that are retired, others for their own bodies alone.
func ShapedAt(log *raftlog.Log, applied protocol.Index) bool {
	return log.Follows || applied >= log.Shaped()
}

// accounts reports whether what a member says of its bodies covers those of retired instances.
func (v *View) accounts(p *tracker.Progress) bool {
	return ShapedAt(v.Log, p.Bodies.Applied) || v.Settings.Mutant == MutantCountBehind
}

// holdsParts reports whether a member certainly has at least its row of every live body.
func (v *View) holdsParts(id protocol.MemberID) bool {
	if id == v.Settings.Self {
		return !v.Bodies.Missing && v.Disk.Settled() >= v.Commit
	}
	p := v.Peer(id)
	return p != nil && p.HeardWithin(v.Now, v.Settings.ElectionTimeout) && !p.Bodies.Lacking && p.Match >= v.Commit &&
		v.accounts(p)
}

// holdsWhole reports whether a member certainly holds every live body whole that is cut into more
// than k rows, and continues doing so. What it said under the configuration active covers them all:
// bodies that came later are cut into no more than that.
func (v *View) holdsWhole(id protocol.MemberID, k uint8) bool {
	m := v.Members.Config.Find(id)
	if m == nil || m.WholeAbove == 0 || m.WholeAbove > k {
		return false
	}
	if id == v.Settings.Self {
		return v.obeyed() == v.Members.Config.Restripes && v.Bodies.partial <= k
	}
	p := v.Peer(id)
	return p != nil && p.Bodies.Restripes == v.Members.Config.Restripes && p.Bodies.Partial <= k && v.accounts(p)
}

// obeyed names the configuration whose whole copies this member holds, also after a crash: its disk has
// that configuration. Otherwise it could start again without it, and cut them to rows. 0: none.
func (v *View) obeyed() uint32 {
	if v.Disk.Durable < v.Members.At {
		return 0
	}
	return v.Bodies.restripes
}

// rowsDo is the largest k of bodies that are durable by rows alone with the voters of a
// configuration, as far as is known what they hold; less than 1: not even whole bodies are.
func (v *View) rowsDo(c *protocol.Config) int {
	voters, holders := c.Voters(), 0
	for _, id := range voters {
		if v.holdsParts(id) {
			holders++
		}
	}
	n := len(voters)
	q := quorum.Size(n)
	return min(q, holders-(n-q))
}

// Keep makes sure that all live bodies stay durable under the next configuration, to
// which it adds what members hold whole. It returns why that is not so yet, and a configuration that
// is to be appended before, nil if none is.
func Keep(v *View, c Placement, next *protocol.Config, changes []protocol.Change) (*protocol.Config, protocol.Reason) {
	if members.SameVoters(next, v.Members.Config) {
		members.Inherit(v.Members.Config, next)
		return nil, protocol.ReasonNone
	}
	if !ShapedAt(v.Log, v.Applied) && v.Settings.Mutant != MutantLeaderBehind {
		return nil, protocol.ReasonChangePending
	}
	for i := range changes {
		if p := v.Peer(changes[i].Member.ID); changes[i].Kind == protocol.AddVoter && p != nil && p.Bodies.Lacking &&
			v.MaxK() > 0 {
			return nil, protocol.ReasonBodies // a learner is to have made its rows first
		}
	}
	most, rows := int(v.MaxK()), v.rowsDo(next)
	switch {
	case most == 0, v.Settings.Mutant == MutantNoRestripe:
	case rows < 1:
		return nil, protocol.ReasonBodies
	case most > rows:
		return v.restriped(c, next, uint8(rows))
	}
	next.HoldWhole(0, func(protocol.MemberID) bool { return false })
	v.Restripe.Left = 0
	return nil, protocol.ReasonNone
}

// restriped reports whether enough voters of the next configuration hold whole what is cut
// into more than k rows. First they are asked to, by a
// configuration.
func (v *View) restriped(c Placement, next *protocol.Config, k uint8) (first *protocol.Config, reason protocol.Reason) {
	v.Rest()
	stays := func(id protocol.MemberID) bool { return next.Find(id) != nil }
	n, holders, asked := 0, 0, true
	for _, id := range next.Voters() {
		n++
		if m := v.Members.Config.Find(id); m != nil && (m.WholeAbove == 0 || m.WholeAbove > k) {
			asked = false
		}
		if v.holdsWhole(id, k) {
			holders++
		}
	}
	need := n - quorum.Size(n) + 1
	v.Restripe.Left = max(0, need-holders)
	switch {
	case holders >= need:
		next.HoldWhole(k, stays)
		return nil, protocol.ReasonNone
	case asked:
		return nil, protocol.ReasonRestriping
	case len(v.Coded.Indexes) > 0:
		c.Uncode(v)
		return nil, protocol.ReasonChangePending
	}
	whole := v.Members.Config.Clone()
	whole.Number()
	whole.HoldWhole(k, stays)
	return &whole, protocol.ReasonRestriping
}

// relax lets members hold rows again where that lets new bodies be cut into more of them, and rows
// are enough for those that there are. No one gives up a copy because of it unless it has made sure
// that enough others hold something, see body.HolderCount. The configuration that does so is to be appended; nil: none.
func (c *code) relax(v *View) *protocol.Config {
	bound := int(v.Members.Config.MaxRows())
	if bound == 0 || bound >= c.limit(v) || v.Now < v.Restripe.until ||
		v.Handing || v.Commit < v.First || v.Members.At > v.Commit || v.Members.Config.Joint() ||
		!ShapedAt(v.Log, v.Applied) {
		return nil
	}
	rows := v.rowsDo(v.Members.Config)
	next := v.Members.Config.Clone()
	switch {
	case rows >= int(v.MaxK()):
		next.HoldWhole(0, func(protocol.MemberID) bool { return false })
	case rows > bound:
		next.HoldWhole(uint8(rows), func(protocol.MemberID) bool { return true })
	default:
		return nil
	}
	if len(v.Coded.Indexes) > 0 {
		c.Uncode(v)
		return nil
	}
	v.Restripe.Left = 0
	return &next
}
