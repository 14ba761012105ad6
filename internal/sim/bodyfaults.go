package sim

import (
	"slices"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/protocol"
)

// faultDamage: bytes of a body are damaged on a disk. It needs bodies: see drawBodies.
var faultDamage = &Fault{Name: "damage", Thinned: true}

func init() {
	faultDamage.Strike = func(w *World, m *Member) { m.whenWritten(64, func() { w.damage(m) }) }
}

var bodiesDamaged = count.New("bodies_damaged", "bodies damaged")

// damage flips a bit of a body on a member's disk.
func (w *World) damage(m *Member) {
	s := m.inForce[w.Among(len(m.inForce))]
	if live := w.damageable(m, s); len(live) > 0 {
		w.spoilBody(m, s, live[w.Pick(len(live))])
	}
}

// damageable lists the bodies on a member's disk that the other members can make whole. It only
// takes bodies that the member knows to be committed: what the member acknowledged before that, it
// must keep.
func (w *World) damageable(m *Member, s *memberInstance) []uint64 {
	return slices.DeleteFunc(s.judges.Bodies.Live(), func(i uint64) bool {
		return i > uint64(s.noted) || s.judges.Bodies.Holds(m.judged(), i) == check.NoBody || !w.stillWhole(s.judges, i, m)
	})
}

// spoilBody flips a bit of one of these bodies, and reports whether it could.
func (w *World) spoilBody(m *Member, s *memberInstance, index uint64) bool {
	b, err := m.body.store.Read(uint32(s.instance), index)
	if err != nil || len(b.Bytes) < 12 || m.writer.busy() || m.twice(&b) || !m.disk.Spoil(bodyDir, b.Bytes, w.Rand) {
		return false
	}
	w.Count(bodiesDamaged)
	w.Tracef("FAULT %s of body %d goes bad on the disk of %s", protocol.Form(b.Form), index, m.id)
	s.judges.Bodies.Damage(m.judged(), index)
	return true
}

// stillWhole reports whether a body can be made whole without one member, even after the others
// have trimmed their whole copies to rows. Members that vote nowhere do not count: no member asks one
// for bodies if its membership is never decided.
func (w *World) stillWhole(c *judge.Instance, index uint64, without *Member) bool {
	if w.set.Resize && !w.wholeAfterRemovals(c, index, without) {
		return false
	}
	configs := c.Ledger.Configurations()
	left := slices.DeleteFunc(numbers(w.except(without)), func(id uint64) bool {
		return !slices.ContainsFunc(configs, func(v *check.Voters) bool { return slices.Contains(v.Incoming, id) })
	})
	return c.Bodies.RecoverableFromRows(index, left)
}

// wholeAfterRemovals reports the same where more members may leave. Two things must hold. No member has
// a damaged form of the body yet, because members count forms that they do not know to be damaged.
// And in every configuration, also one that is about to be proposed, the other voters, at least two,
// hold enough rows.
func (w *World) wholeAfterRemovals(c *judge.Instance, index uint64, without *Member) bool {
	if w.damagedOf(c, index) {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(c.Ledger.Configurations(), w.proposed(c)), func(v *check.Voters) bool {
		left := slices.DeleteFunc(slices.Clone(v.Incoming), func(id uint64) bool { return id == uint64(without.id) })
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
func (w *World) damaged() bool {
	return slices.ContainsFunc(w.court.All, func(c *judge.Instance) bool {
		return slices.ContainsFunc(c.Bodies.Live(), func(index uint64) bool { return w.damagedOf(c, index) })
	})
}

// damagedOf reports the same of one body.
func (w *World) damagedOf(c *judge.Instance, index uint64) bool {
	return slices.ContainsFunc(w.members, func(m *Member) bool { return c.Bodies.Damaged(uint64(m.id), index) })
}

// recoverable reports whether those members hold enough to make every live body whole.
func (w *World) recoverable(members []*Member) bool {
	ids := numbers(members)
	for _, c := range w.court.All {
		if slices.ContainsFunc(c.Bodies.Live(), func(i uint64) bool { return !c.Bodies.Recoverable(i, ids) }) {
			return false
		}
	}
	return true
}

// except is all members but one, without those that will not start again or that run on another
// disk than their own.
func (w *World) except(one *Member) []*Member {
	return slices.DeleteFunc(slices.Clone(w.members), func(m *Member) bool { return m.gone || m.strange() || m == one })
}

func numbers(members []*Member) []uint64 {
	ids := make([]uint64, len(members))
	for i, m := range members {
		ids[i] = uint64(m.id)
	}
	return ids
}
