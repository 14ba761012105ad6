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

// A cluster may begin with a state that was restored from a snapshot (docs/internals/identity.md). All founders must have it,
// and members that join later get it from others: no command led to it. An operator may start a founder without it.
// Then no member links to that founder until the operator gives it a new disk, with the state.

// birthsInRun draws what concerns the state with which the cluster begins.
var birthsInRun = draw.New("births in a run")

// birthState names the state with which a cluster begins that is restored.
const birthState = "backup"

// drawBirths draws whether the cluster begins with a state, and whether a founder is started without it. Only a state
// machine that keeps its own state can begin with one. Where fewer than a majority may decide, that founder might.
func (s *Settings) drawBirths(d draw.Chance) {
	restored, odd := d.Yes(0.35), d.Yes(0.5)
	if !restored || !s.Durable || s.Bodies.Share > 0 || s.Keyed || s.ByKey() || s.Flexible() {
		return
	}
	s.Birth, s.OddFounder = birthState, odd && s.Nodes >= 3
}

// BeginBorn gives the founders the state with which the cluster begins.
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

// newborn is the state with which the cluster begins; nil: it begins empty.
func newborn(w *World) *machine.State {
	if w.Set.Birth == "" {
		return nil
	}
	return machine.Born(w.Set.Birth)
}

// Rectify gives a founder that began without the state a new disk, as an operator does who notices it. It does
// nothing if the founder was removed meanwhile.
func Rectify(w *World, m *node.Member) {
	if !m.Odd || m.Gone || m.Retiring || m.Strangers > 0 || slices.ContainsFunc(w.Court.All, func(c *judge.Instance) bool { return c.Left[m.ID] }) {
		return
	}
	m.Crash()
	m.Odd, m.Disk, m.Saved, m.Lives = false, device.NewDisk(), newborn(w), 0
	w.Tracef("FAULT %s begins again, with the state that was restored", m.ID)
	w.StartLater(m, w.Between(0, w.Set.Election))
}

// rebornState is the state machine of a member that lost its disk: a founder is sometimes restored once more.
func rebornState(w *World, m *node.Member) *machine.State {
	if w.Set.Birth == "" || m.Join || w.From(birthsInRun).Yes(0.5) {
		return nil
	}
	return newborn(w)
}

// keepState reports whether changes leave two members that have the state, as an operator makes sure of.
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
