package fault

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

// PerfectLinks turns off the loss, duplication and corruption of messages, and breaks of streams.
func (s *Settings) PerfectLinks() { s.Drop, s.Duplicate, s.Corrupt, s.StreamBreaks = 0, 0, 0, 0 }
