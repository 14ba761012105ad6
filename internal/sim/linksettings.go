package sim

import (
	"github.com/braidlog/braid/internal/sim/draw"
)

func (s *Settings) drawLinks(d draw.Chance) {
	s.DelayMin = d.Duration(0, s.Heartbeat/4)
	s.DelayMax = s.DelayMin + d.Duration(0, s.Heartbeat)
	s.Drop = d.Rate(0.2)
	s.Duplicate = d.Rate(0.2)
	s.Corrupt = d.Rate(0.02)
	s.Reorder = d.Yes(0.5)
	s.StreamBreaks = d.Rate(0.8)
}

func (s *Settings) perfectLinks() { s.Drop, s.Duplicate, s.Corrupt, s.StreamBreaks = 0, 0, 0, 0 }

// timely makes everything fast enough for elections to succeed. Progress is promised only where
// messages and disks are faster than election timeouts.
func (s *nodeSettings) timely() {
	s.DelayMin, s.SyncMin = min(s.DelayMin, s.Election/20), min(s.SyncMin, s.Election/20)
	s.DelayMax, s.SyncMax = min(s.DelayMax, s.Election/8), min(s.SyncMax, s.Election/8)
	s.HopMax = min(s.HopMax, s.Election/50) // a vote or an entry takes many hops
	s.ApplyMax, s.StreamRate = 0, 0
}
