package sim

import (
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
)

// clientSettings are what clients do, and how long they wait.
type clientSettings struct {
	Clients, Keys int
	Operations    int // at most, over the run
	Think         time.Duration
	Reads         float64 // share of reads
	Patience      time.Duration
	Load          loadSettings
}

func (s *Settings) drawClients(d draw.Chance) {
	s.Clients = 1 + d.Below(6)
	s.Keys = 1 + d.Below(4)
	s.Operations = 20 + d.Below(280)
	s.Think = d.Duration(0, s.Chaos/20)
	s.Reads = d.Share()
	s.Padding = d.Limit(0, 100, 3000)
	s.Patience = s.Election * time.Duration(1+d.Below(6))
	s.GiveUp = s.Election * time.Duration(2+d.Below(10))
	s.Depth = d.Limit(0, 1, 4)
	s.BatchCommands = d.Limit(1, 3, 1000)
	s.BatchBytes = d.Limit(1, 500, 1<<20)
	if d.Yes(0.4) {
		s.ApplyMax = d.Duration(0, s.Election)
	}
}

// watchLeaders makes clients write at new leaders and read at those that may be leaders no more.
func (s *Settings) watchLeaders(d draw.Chance) {
	s.Clients, s.Keys, s.Operations, s.Reads = 6+d.Below(6), 1, 400, 0.3
	s.Think = max(s.Heartbeat, 2*s.Chaos*time.Duration(s.Clients)/time.Duration(s.Operations))
	s.Patience = s.Election
	s.Load.Pinned, s.Load.Chase, s.Load.Overwrite = 0.5, 0.5+0.5*d.Share(), 0.2
	s.Load.Crowd = 0.5 + 0.5*d.Share()
}
