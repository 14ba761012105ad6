package sim

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/node"
)

// faultAway: a member is away until a leader has cut entries that it needs.
var faultAway = &Fault{Name: "away", Thinned: true}

func init() {
	faultAway.Strike = (*World).leaveAway
	faultAway.Heal = func(m *node.Member) { m.Away = false }
}

// leaveAway takes a member away until a leader has cut its log beyond the end of the member's, or
// until a time limit. The member is down, or cut off.
func (w *World) leaveAway(m *node.Member) {
	if w.anyAway() {
		return
	}
	m.Away = true
	if w.Chance(0.5) {
		w.Tracef("FAULT %s goes away", m.ID)
		m.Crash()
	} else {
		w.Tracef("FAULT %s is cut off", m.ID)
	}
	w.heal()
	w.stayAway(m, w.Now()+40*w.set.Election)
}

// cutAway takes a member away that runs on.
func (w *World) cutAway(m *node.Member) {
	w.Tracef("FAULT %s is cut off", m.ID)
	m.Away = true
	w.heal()
	w.stayAway(m, w.Now()+40*w.set.Election)
}

func (w *World) stayAway(m *node.Member, most time.Duration) {
	w.After(w.set.Election, func() {
		past := w.cutPast(m)
		switch {
		case !m.Away:
		case !past && w.Now() < most && !w.Calm:
			w.stayAway(m, most)
		default:
			if past {
				w.Count(backAfterCut)
			}
			w.comeBack(m)
		}
	})
}

// comeBack ends the time in which a member is away.
func (w *World) comeBack(m *node.Member) {
	w.Tracef("FAULT %s comes back", m.ID)
	m.Away = false
	w.heal()
	w.startMember(m)
}

// cutPast reports whether the leader of some instance has cut entries that the member does not have.
func (w *World) cutPast(m *node.Member) bool {
	for _, s := range m.InForce {
		if l := w.LeaderOf(s.Instance); l != nil && l != m && l.Of(s.Instance).Witness.Core.Status().First > s.Last()+1 {
			return true
		}
	}
	return false
}

func (w *World) anyAway() bool {
	return slices.ContainsFunc(w.Members, func(m *node.Member) bool { return m.Away })
}
