package fault

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/node"
)

var faultAway = &Fault{Name: "away", Thinned: true,
	Does: "a member is away until a leader has compacted entries that it needs"}

func init() {
	faultAway.Strike = leaveAway
	faultAway.Heal = func(m *node.Member) { m.Away = false }
}

// leaveAway keeps a member away until a leader has compacted its log beyond the end of the member's, or until a time
// limit. The member is down, or cut off.
func leaveAway(w *World, m *node.Member) {
	if anyAway(w) {
		return
	}
	if w.Chance(0.5) {
		w.Tracef("FAULT %s goes away", m.ID)
		m.Crash()
		keepAway(w, m)
	} else {
		cutAway(w, m)
	}
}

// cutAway keeps a member away like leaveAway, but the member continues to run.
func cutAway(w *World, m *node.Member) {
	w.Tracef("FAULT %s is cut off", m.ID)
	keepAway(w, m)
}

func keepAway(w *World, m *node.Member) {
	m.Away = true
	HealLinks(w)
	stayAway(w, m, w.Now()+40*w.Set.Election)
}

func stayAway(w *World, m *node.Member, most time.Duration) {
	w.After(w.Set.Election, func() {
		past := cutPast(w, m)
		switch {
		case !m.Away:
		case !past && w.Now() < most && !w.Calm:
			stayAway(w, m, most)
		default:
			if past {
				w.Count(backAfterCut)
			}
			comeBack(w, m)
		}
	})
}

// comeBack ends the absence of a member.
func comeBack(w *World, m *node.Member) {
	w.Tracef("FAULT %s comes back", m.ID)
	m.Away = false
	HealLinks(w)
	w.StartMember(m)
}

// cutPast reports whether the leader of some instance has compacted entries that the member does not have.
func cutPast(w *World, m *node.Member) bool {
	for _, s := range m.InForce {
		if l := w.LeaderOf(s.Instance); l != nil && l != m && l.Of(s.Instance).Witness.Core.Status().First > s.Last()+1 {
			return true
		}
	}
	return false
}

func anyAway(w *World) bool {
	return slices.ContainsFunc(w.Members, func(m *node.Member) bool { return m.Away })
}
