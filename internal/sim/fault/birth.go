package fault

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// A cluster may begin with a state that was restored from a snapshot (docs/internals/identity.md). All founders must
// have it, and members that join later get it from others: no command in the log produces it. An operator may start a
// founder without it. Then no member accepts a link with that founder until the operator gives it a new disk with the
// state.

// birthsInRun is the source of chance for the initial state of the cluster.
var birthsInRun = draw.New("births in a run")

// birthState names the initial state of a restored cluster.
const birthState = "backup"

// drawBirths draws whether the cluster begins with a restored state, and whether a founder is started without it.
// Only a state machine that keeps its own state can begin with one. Flexible quorums are excluded: that founder could
// be a quorum.
func (s *Settings) drawBirths(d draw.Chance) {
	restored, odd := d.Yes(0.35), d.Yes(0.5)
	if !restored || !s.Durable || s.Bodies.Share > 0 || s.Keyed || s.ByKey() || s.Flexible() {
		return
	}
	s.Birth, s.OddFounder = birthState, odd && s.Nodes >= 3
}

// BeginBorn gives the initial state of the cluster to the founders.
func BeginBorn(w *World) {
	if w.Set.Birth == "" {
		return
	}
	for _, m := range w.Members {
		m.Saved = newborn(w)
	}
	if !w.Set.OddFounder {
		return
	}
	odd := w.Members[w.From(birthsInRun).Below(len(w.Members))]
	odd.Odd, odd.Saved = true, nil
	w.Tracef("FAULT %s begins without the state that was restored", odd.ID)
	w.After(w.Set.Election*time.Duration(1+w.From(birthsInRun).Below(10)), func() { Rectify(w, odd) })
}

// newborn returns the initial state of the cluster; nil: it begins empty.
func newborn(w *World) *machine.State {
	if w.Set.Birth == "" {
		return nil
	}
	return machine.Born(w.Set.Birth)
}

// Rectify gives a founder that began without the state a new disk, as an operator would. It does nothing if the
// founder was removed meanwhile.
func Rectify(w *World, m *node.Member) {
	if !m.Odd || m.Gone || m.Retiring || m.Strangers > 0 ||
		slices.ContainsFunc(w.Court.All, func(c *judge.Instance) bool { return c.Left[m.ID] }) {
		return
	}
	m.Crash()
	m.Odd, m.Disk, m.Saved, m.Lives = false, device.NewDisk(), newborn(w), 0
	w.Tracef("FAULT %s begins again, with the state that was restored", m.ID)
	w.StartLater(m, w.Between(0, w.Set.Election))
}

// rebornState returns the state machine of a member that lost its disk. A founder is sometimes restored again.
func rebornState(w *World, m *node.Member) *machine.State {
	if w.Set.Birth == "" || m.Join || w.From(birthsInRun).Yes(0.5) {
		return nil
	}
	return newborn(w)
}

// keepState reports whether two members with the state remain after changes. Operators ensure that.
func keepState(w *World, c *protocol.Config, changes []protocol.Change) bool {
	if w.Set.Birth == "" {
		return true
	}
	removes := func(id protocol.MemberID) bool {
		return slices.ContainsFunc(changes, func(ch protocol.Change) bool {
			return ch.Kind == protocol.RemoveMember && ch.Member.ID == id
		})
	}
	have, removed := 0, false
	for i := range c.Members {
		m := w.Member(c.Members[i].ID)
		if removes(m.ID) {
			removed = true
		} else if !m.Gone && !m.Strange() && !m.Stateless() && m.Saved.Damage == nil {
			have++
		}
	}
	return !removed || have >= 2
}
