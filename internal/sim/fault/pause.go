package fault

import (
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
)

var (
	faultPause = &Fault{Name: "pause", Usual: true, Thinned: true,
		Does: "a process pauses, as for garbage collection"}
	// fromFreeze is the source of faultFreeze and faultGarble.
	fromFreeze  = draw.New("freeze")
	faultFreeze = &Fault{Name: "freeze", Thinned: true, Source: fromFreeze,
		Does: "a process pauses in the middle of a turn of its event loop"}
)

func init() {
	faultPause.Strike = func(w *World, m *node.Member) {
		m.Paused = w.Now() + stillFor(w, 3*w.Set.Election)
		w.Tracef("FAULT %s pauses until %.6f", m.ID, m.Paused.Seconds())
	}
	faultPause.Heal = func(m *node.Member) { m.Paused = min(m.Paused, m.Env.Now()) }
	faultFreeze.Draw = (*Settings).drawFreezes
	faultFreeze.Strike = freezeSome
}

// freezeSome freezes a member in a turn, often a leader.
func freezeSome(w *World, m *node.Member) {
	d := stillFor(w, 4*w.Set.Election)
	if l := w.SomeLeader(); l != nil && w.Chance(0.5) {
		m = l
	}
	w.Tracef("FAULT %s freezes in a turn until %.6f", m.ID, (w.Now() + d).Seconds())
	m.Freeze(d)
}

// drawFreezes draws whether processes freeze inside turns. Some of these runs have no other fault: leaders have
// leases, and clients ask leaders that are frozen.
func (s *Settings) drawFreezes(d draw.Chance) {
	if !d.Yes(0.3) {
		return
	}
	s.Faults[faultFreeze] = s.Election * time.Duration(2+d.Below(20))
	if d.Yes(0.3) {
		s.Faults = rates{faultFreeze: s.Election * time.Duration(3+d.Below(4))}
		s.Clients, s.Keys, s.Operations, s.Reads, s.Think, s.Patience = 6, 1, 300, 0.5, s.Heartbeat, s.Election
		s.Core.LeaseReads = true
		s.setDrift(min(s.Drift, s.mostDrift()))
	}
}

// stillFor draws the duration of a pause: up to most, or up to two and a half election timeouts.
func stillFor(w *World, most time.Duration) time.Duration {
	if w.Chance(w.Set.Meet.Long) {
		return w.election()
	}
	return w.Between(0, most)
}

// election draws a time of about an election.
func (w *World) election() time.Duration {
	e := w.Set.Election
	return e + time.Duration(w.Rand.Float64()*1.5*float64(e))
}
