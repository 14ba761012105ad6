package sim

import (
	"slices"
	"time"
)

// faultAway: a member is away until a leader has cut entries that it needs.
var faultAway = &Fault{Name: "away", Thinned: true}

func init() {
	faultAway.Strike = (*World).leaveAway
	faultAway.Heal = func(m *Member) { m.away = false }
}

// leaveAway takes a member away until a leader has cut its log beyond the end of the member's, or
// until a time limit. The member is down, or cut off.
func (w *World) leaveAway(m *Member) {
	if w.anyAway() {
		return
	}
	m.away = true
	if w.Chance(0.5) {
		w.Tracef("FAULT %s goes away", m.id)
		m.crash()
	} else {
		w.Tracef("FAULT %s is cut off", m.id)
	}
	w.heal()
	w.stayAway(m, w.Now()+40*w.set.Election)
}

// cutAway takes a member away that runs on.
func (w *World) cutAway(m *Member) {
	w.Tracef("FAULT %s is cut off", m.id)
	m.away = true
	w.heal()
	w.stayAway(m, w.Now()+40*w.set.Election)
}

func (w *World) stayAway(m *Member, most time.Duration) {
	w.After(w.set.Election, func() {
		past := w.cutPast(m)
		switch {
		case !m.away:
		case !past && w.Now() < most && !w.calm:
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
func (w *World) comeBack(m *Member) {
	w.Tracef("FAULT %s comes back", m.id)
	m.away = false
	w.heal()
	w.startMember(m)
}

// cutPast reports whether the leader of some instance has cut entries that the member does not have.
func (w *World) cutPast(m *Member) bool {
	for _, s := range m.inForce {
		if l := w.leaderOf(s.instance); l != nil && l != m && l.of(s.instance).witness.Core.Status().First > s.last()+1 {
			return true
		}
	}
	return false
}

func (w *World) anyAway() bool {
	return slices.ContainsFunc(w.members, func(m *Member) bool { return m.away })
}
