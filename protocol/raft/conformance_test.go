package raft_test

import (
	"testing"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
	"github.com/braidlog/braid/protocol/raft"
)

func factory(change func(*raft.Config)) conformance.Factory {
	return func(self protocol.MemberID, rec protocol.Recovered) (protocol.Core, error) {
		c := raft.Config{
			Self: self, Instance: 1,
			Heartbeat: 10 * conformance.Pace, ElectionTimeout: 100 * conformance.Pace,
		}
		if change != nil {
			change(&c)
		}
		return raft.New(c, rec)
	}
}

func TestConformance(t *testing.T) {
	for name, change := range map[string]func(*raft.Config){
		"default": nil,
		// Tiny limits: full queues and dropped payloads all the time.
		"tiny": func(c *raft.Config) {
			c.MaxFrameBytes, c.MaxInflightBytes, c.MaxUncommittedBytes, c.CacheBytes = 300, 700, 3000, 500
		},
		"no batching": func(c *raft.Config) { c.MaxFrameEntries = 1 },
		"one by one":  func(c *raft.Config) { c.NoPipeline, c.NoParallelAppend = true, true },
		"lease":       func(c *raft.Config) { c.LeaseReads, c.MaxClockDrift = true, 10*conformance.Pace },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Run(t, factory(change))
		})
	}
}

// coded is placement code with limits that make whole copies and full frames common.
func coded(k int) func(*raft.Config) {
	return func(c *raft.Config) { c.Placement, c.MaxK = raft.PlacementCode, k }
}

// Placements with bodies; the net watches over who holds them.
func TestConformanceWithBodies(t *testing.T) {
	for name, change := range map[string]func(*raft.Config){
		"copy":   nil,
		"code":   coded(0),
		"code 3": coded(3),
		"code tiny": func(c *raft.Config) {
			tiny(c)
			coded(3)(c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.RunWith(t, factory(change), conformance.Options{Bodies: 500})
		})
	}
}
