package fault

import (
	"slices"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// faultDamage needs bodies: see drawBodies.
var faultDamage = &Fault{Name: "damage", Thinned: true, Does: "bytes of a body are damaged on a disk"}

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

// damageable lists the bodies on a member's disk that the other members can reconstruct. It lists only bodies that
// the member knows to be committed: a member must keep a body that it acknowledged before that.
func damageable(w *World, m *node.Member, s *node.MemberInstance) []uint64 {
	return slices.DeleteFunc(s.Judges.Bodies.Live(), func(i uint64) bool {
		return i > uint64(s.Noted) || s.Judges.Bodies.Holds(m.Judged(), i) == check.NoBody || !stillWhole(w, s.Judges, i, m)
	})
}

// spoilBody flips a bit of one of these bodies, and reports whether it did.
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

// stillWhole reports whether a body can be reconstructed without one member, even after the others have trimmed their
// whole copies to rows. Members that are voters in no configuration do not count: no member fetches bodies from a
// member whose addition is never decided.
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

// wholeAfterRemovals reports the same for runs in which more members may be removed. Two conditions must hold. No
// member has a damaged form of the body yet, because members count forms that they do not know to be damaged. And in
// every configuration, including those about to be proposed, there are at least two other voters, and these hold
// enough rows.
func wholeAfterRemovals(w *World, c *judge.Instance, index uint64, without *node.Member) bool {
	if damagedOf(w, c, index) {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(c.Ledger.Configurations(), w.proposed(c)), func(v *check.Voters) bool {
		left := slices.DeleteFunc(slices.Clone(v.Incoming), func(id uint64) bool { return id == uint64(without.ID) })
		return len(left) < 2 || !c.Bodies.RecoverableFromRows(index, left)
	})
}

// leastDamaged is the minimal number of voters while bodies are damaged. With fewer, no voter may fail, and members
// could rely on a damaged copy before the damage is detected.
const leastDamaged = 3

// tooFew reports whether changes leave fewer voters than that. A member that replaces a voter has to join first,
// while that voter leaves at once.
func tooFew(c *protocol.Config, changes []protocol.Change) bool {
	next, reason := c.Changed(c.Joins(changes))
	voters := len(next.Voters())
	return reason == protocol.ReasonNone && voters < leastDamaged && voters < len(c.Voters())
}

// damaged reports whether some member's disk has a damaged form of a live body.
func damaged(w *World) bool {
	return slices.ContainsFunc(w.Court.All, func(c *judge.Instance) bool {
		return slices.ContainsFunc(c.Bodies.Live(), func(index uint64) bool { return damagedOf(w, c, index) })
	})
}

// damagedOf reports the same of one body.
func damagedOf(w *World, c *judge.Instance, index uint64) bool {
	return slices.ContainsFunc(w.Members, func(m *node.Member) bool { return c.Bodies.Damaged(uint64(m.ID), index) })
}

// Recoverable reports whether these members hold enough to reconstruct every live body.
func Recoverable(w *World, members []*node.Member) bool {
	ids := numbers(members)
	for _, c := range w.Court.All {
		if slices.ContainsFunc(c.Bodies.Live(), func(i uint64) bool { return !c.Bodies.Recoverable(i, ids) }) {
			return false
		}
	}
	return true
}

// Except returns all members but one. It leaves out members that never start again, and those that do not run on
// their own disk.
func (w *World) Except(one *node.Member) []*node.Member {
	return slices.DeleteFunc(slices.Clone(w.Members), func(m *node.Member) bool {
		return m.Gone || m.Strange() || m == one
	})
}

func numbers(members []*node.Member) []uint64 {
	ids := make([]uint64, len(members))
	for i, m := range members {
		ids[i] = uint64(m.ID)
	}
	return ids
}
