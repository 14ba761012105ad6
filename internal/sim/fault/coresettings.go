package fault

import (
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

func (s *Settings) drawRaft(d draw.Chance) {
	s.Core = protocol.Settings{
		Instance: node.FirstInstance, Heartbeat: s.Heartbeat, ElectionTimeout: s.Election,
		MaxFrameBytes:       d.Limit(1, 2000, 1<<20),
		MaxFrameEntries:     d.Limit(0, 1, 3),
		PipelineDepth:       d.Limit(0, 1, 3),
		MaxInflightBytes:    d.Limit(1, 5000, 32<<20),
		MaxUncommittedBytes: d.Limit(1, 8, 1<<10) * s.Clients * (s.Padding + 500), // one batch at least
		CacheBytes:          d.Limit(1, 2000, 64<<20),
		NoParallelAppend:    d.Yes(0.2),
		NoPipeline:          d.Yes(0.2),
		LeaseReads:          d.Yes(0.3),
	}
	s.drawClocks(d)
	s.Core.Mutant = s.ProtocolMutant()
}

// drawChurn sometimes makes leaders change faster than they can replicate.
func (s *Settings) drawChurn(d draw.Chance) {
	if !d.Yes(0.1) {
		return
	}
	s.Faults[faultCrash] = s.Election * time.Duration(1+d.Below(3))
	s.Faults[faultIsolate] = s.Election * time.Duration(1+d.Below(3))
	s.DelayMax = s.DelayMin + 2*s.Heartbeat
	s.Core.MaxFrameEntries, s.Core.NoPipeline = 1, true
	s.Think = s.Heartbeat
	s.Chaos *= 2
}
