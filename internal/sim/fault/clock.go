package fault

import (
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
)

var faultClock = &Fault{Name: "clock", Usual: true, Thinned: true, Does: "a clock's rate changes"}

func init() {
	faultClock.Strike = func(w *World, m *node.Member) { m.SetRate(WrongRate(w)) }
	faultClock.Heal = func(m *node.Member) { m.SetRate(1) }
}

// drawClocks draws the maximal drift of clocks.
func (s *Settings) drawClocks(d draw.Chance) {
	if d.Yes(0.5) {
		s.setDrift(s.mostDrift() * d.Share())
	}
}

// mostDrift is the upper limit of the drift. Leases are safe only within bounds that all members know. Without leases
// clocks may drift more.
func (s *Settings) mostDrift() float64 {
	if s.Core.LeaseReads {
		return leaseDrift
	}
	return 0.6
}

// leaseDrift is the upper limit of the drift with leases.
const leaseDrift = 0.3

func (s *Settings) setDrift(drift float64) {
	s.Drift = drift
	if s.Core.LeaseReads {
		s.Core.MaxClockDrift = s.neededDrift()
	}
}

// neededDrift is the gain of the fastest clock while the slowest one counts an election timeout.
func (s *Settings) neededDrift() time.Duration {
	return time.Duration(float64(s.Election)*2*s.Drift/(1-s.Drift)) + 1
}

// WrongRate draws the rate of a clock.
func WrongRate(w *World) float64 {
	x := 2*w.Rand.Float64() - 1
	if w.Chance(w.Set.Meet.Edge) {
		if x = 1; w.Chance(0.5) {
			x = -1
		}
	}
	return 1 + w.Set.Drift*x
}

// clocksAgainst sometimes sets clocks to the maximal drift when a leader is cut off: the leader's clock is slow,
// those of the others are fast.
func clocksAgainst(w *World, leader *node.Member) {
	if w.Set.Drift == 0 || !w.Chance(w.Set.Meet.Against) {
		return
	}
	for _, m := range w.Members {
		m.SetRate(1 + w.Set.Drift)
	}
	leader.SetRate(1 - w.Set.Drift)
}
