package fault

import (
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
)

// faultClock: a clock's rate changes.
var faultClock = &Fault{Name: "clock", Usual: true, Thinned: true}

func init() {
	faultClock.Strike = func(w *World, m *node.Member) { m.SetRate(WrongRate(w)) }
	faultClock.Heal = func(m *node.Member) { m.SetRate(1) }
}

// drawClocks draws how wrong clocks may run.
func (s *Settings) drawClocks(d draw.Chance) {
	if d.Yes(0.5) {
		s.setDrift(s.mostDrift() * d.Share())
	}
}

// mostDrift is how wrong clocks may run at most. Leases are safe only within bounds that all
// members know. Without leases clocks may be more wrong.
func (s *Settings) mostDrift() float64 {
	if s.Core.LeaseReads {
		return 0.3
	}
	return 0.6
}

func (s *Settings) setDrift(drift float64) {
	s.Drift = drift
	if s.Core.LeaseReads {
		// While the slowest clock runs through an election timeout, the fastest runs further by
		// this much.
		s.Core.MaxClockDrift = time.Duration(float64(s.Election)*2*drift/(1-drift)) + 1
	}
}

// WrongRate draws how fast a clock runs.
func WrongRate(w *World) float64 {
	x := 2*w.Rand.Float64() - 1
	if w.Chance(w.Set.Meet.Edge) {
		if x = 1; w.Chance(0.5) {
			x = -1
		}
	}
	return 1 + w.Set.Drift*x
}

// clocksAgainst sometimes lets clocks run as wrong as the run allows against a leader that is cut
// off: for the others time passes fast, for the leader slowly.
func clocksAgainst(w *World, leader *node.Member) {
	if w.Set.Drift == 0 || !w.Chance(w.Set.Meet.Against) {
		return
	}
	for _, m := range w.Members {
		m.SetRate(1 + w.Set.Drift)
	}
	leader.SetRate(1 - w.Set.Drift)
}
