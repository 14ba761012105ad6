package fault

import (
	"slices"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// faultDamage: bytes of a body are damaged on a disk. It needs bodies: see drawBodies.
var faultDamage = &Fault{Name: "damage", Thinned: true}

func init() {
	faultDamage.Strike = func(w *World, m *node.Member) { m.WhenWritten(64, func() { damageBodies(w, m) }) }
}

var bodiesDamaged = count.New("bodies_damaged", "bodies damaged")

// damageBodies flips a bit of a body on a member's disk.
func damageBodies(w *World, m *node.Member) {
	s := m.InForce[w.Among(len(m.InForce))]
	if live := damageable(w, m, s); len(live) > 0 {
		spoilBody(w, m, s, live[w.Pick(len(live))])
	}
}

// damageable lists the bodies on a member's disk that the other members can make whole. It only
// takes bodies that the member knows to be committed: what the member acknowledged before that, it
// must keep.
func damageable(w *World, m *node.Member, s *node.MemberInstance) []uint64 {
	return slices.DeleteFunc(s.Judges.Bodies.Live(), func(i uint64) bool {
		return i > uint64(s.Noted) || s.Judges.Bodies.Holds(m.Judged(), i) == check.NoBody || !stillWhole(w, s.Judges, i, m)
	})
}

// spoilBody flips a bit of one of these bodies, and reports whether it could.
func spoilBody(w *World, m *node.Member, s *node.MemberInstance, index uint64) bool {
	b, err := m.Body.Store.Read(uint32(s.Instance), index)
	if err != nil || len(b.Bytes) < 12 || m.Writer.Busy() || m.Twice(&b) || !m.Disk.Spoil(node.BodyDir, b.Bytes, w.Rand) {
		return false
	}
	w.Count(bodiesDamaged)
	w.Tracef("FAULT %s of body %d goes bad on the disk of %s", protocol.Form(b.Form), index, m.ID)
	s.Judges.Bodies.Damage(m.Judged(), index)
	return true
}

// stillWhole reports whether a body can be made whole without one member, even after the others
// have trimmed their whole copies to rows. Members that vote nowhere do not count: no member asks one
// for bodies if its membership is never decided.
func stillWhole(w *World, c *judge.Instance, index uint64, without *node.Member) bool {
	if w.Set.Resize && !wholeAfterRemovals(w, c, index, without) {
		return false
	}
	configs := c.Ledger.Configurations()
	left := slices.DeleteFunc(numbers(w.Except(without)), func(id uint64) bool {
		return !slices.ContainsFunc(configs, func(v *check.Voters) bool { return slices.Contains(v.Incoming, id) })
	})
	return c.Bodies.RecoverableFromRows(index, left)
}

// wholeAfterRemovals reports the same where more members may leave. Two things must hold. No member has
// a damaged form of the body yet, because members count forms that they do not know to be damaged.
// And in every configuration, also one that is about to be proposed, the other voters, at least two,
// hold enough rows.
func wholeAfterRemovals(w *World, c *judge.Instance, index uint64, without *node.Member) bool {
	if damagedOf(w, c, index) {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(c.Ledger.Configurations(), w.proposed(c)), func(v *check.Voters) bool {
		left := slices.DeleteFunc(slices.Clone(v.Incoming), func(id uint64) bool { return id == uint64(without.ID) })
		return len(left) < 2 || !c.Bodies.RecoverableFromRows(index, left)
	})
}

// leastDamaged is how many voters a cluster keeps while bodies are damaged. With fewer, none may fail, and
// members could count on a copy that is damaged, and not found to be so yet.
const leastDamaged = 3

// tooFew reports whether changes leave fewer voters than that. A member that takes the place of a voter joins
// first, while that voter leaves at once.
func tooFew(c *protocol.Config, changes []protocol.Change) bool {
	next, reason := c.Changed(c.Joins(changes))
	voters := len(next.Voters())
	return reason == protocol.ReasonNone && voters < leastDamaged && voters < len(c.Voters())
}

// damaged reports whether what some member's disk holds of a live body is damaged.
func damaged(w *World) bool {
	return slices.ContainsFunc(w.Court.All, func(c *judge.Instance) bool {
		return slices.ContainsFunc(c.Bodies.Live(), func(index uint64) bool { return damagedOf(w, c, index) })
	})
}

// damagedOf reports the same of one body.
func damagedOf(w *World, c *judge.Instance, index uint64) bool {
	return slices.ContainsFunc(w.Members, func(m *node.Member) bool { return c.Bodies.Damaged(uint64(m.ID), index) })
}

// Recoverable reports whether those members hold enough to make every live body whole.
func Recoverable(w *World, members []*node.Member) bool {
	ids := numbers(members)
	for _, c := range w.Court.All {
		if slices.ContainsFunc(c.Bodies.Live(), func(i uint64) bool { return !c.Bodies.Recoverable(i, ids) }) {
			return false
		}
	}
	return true
}

// Except is all members but one, without those that will not start again or that run on another
// disk than their own.
func (w *World) Except(one *node.Member) []*node.Member {
	return slices.DeleteFunc(slices.Clone(w.Members), func(m *node.Member) bool { return m.Gone || m.Strange() || m == one })
}

func numbers(members []*node.Member) []uint64 {
	ids := make([]uint64, len(members))
	for i, m := range members {
		ids[i] = uint64(m.ID)
	}
	return ids
}
