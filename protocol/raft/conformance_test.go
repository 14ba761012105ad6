package raft_test

import (
	"errors"
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

// rs5 is RS-Raft for five members.
func rs5(c *raft.Config) {
	c.Placement, c.MaxK, c.ReadQuorum, c.WriteQuorum = raft.PlacementRS, 3, 4, 4
}

// Five members code with every k there is; RS-Raft knows no other number.
func TestFiveWithBodies(t *testing.T) {
	five := conformance.Options{Bodies: 500, Members: 5}
	four := five
	four.ReadQuorum, four.WriteQuorum = 4, 4
	for name, s := range map[string]struct {
		change  func(*raft.Config)
		options conformance.Options
	}{"code": {coded(0), five}, "code 3": {coded(3), five}, "rs": {rs5, four}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(25) {
				if what := conformance.HuntWith(factory(s.change), s.options, seed, nil); what != "" {
					t.Errorf("seed %d: %s", seed, what)
				}
			}
		})
	}
}

func TestConfigOfPlacements(t *testing.T) {
	base := raft.Config{Self: 1, Instance: 1, Heartbeat: 1, ElectionTimeout: 10}
	var voters protocol.Config
	for id := range protocol.MemberID(5) {
		voters.Members = append(voters.Members, protocol.Member{ID: id + 1})
	}
	voters.Number()
	for _, c := range []struct {
		change func(*raft.Config)
		ok     bool
	}{
		{coded(0), true},
		{coded(3), true},
		{func(c *raft.Config) { c.Placement, c.ExtraWhole = raft.PlacementCode, 2 }, true},
		{rs5, true},
		{coded(-1), false},
		{coded(300), false},
		{func(c *raft.Config) { c.MaxK = 2 }, false},
		{func(c *raft.Config) { c.ExtraWhole = 1 }, false},
		{func(c *raft.Config) { c.Placement = "confirm" }, false},
		{func(c *raft.Config) { coded(2)(c); c.ReadQuorum = 3 }, false},
		{func(c *raft.Config) { rs5(c); c.MaxK = 0 }, false},
		{func(c *raft.Config) { rs5(c); c.MaxK = 4 }, false},
		{func(c *raft.Config) { rs5(c); c.WriteQuorum = 6 }, false},
		{func(c *raft.Config) { rs5(c); c.ReadQuorum, c.WriteQuorum, c.MaxK = 2, 5, 2 }, false},
	} {
		config := base
		c.change(&config)
		_, err := raft.New(config, protocol.Recovered{Base: protocol.Base{Config: voters}})
		var refused *raft.ConfigError
		if c.ok != (err == nil) || !c.ok && !errors.As(err, &refused) {
			t.Errorf("%+v: %v", config, err)
		}
	}
}

// One of several instances: ranked elections, skips, and what other instances do to it.
func TestConformanceWoven(t *testing.T) {
	ranked := func(l protocol.Leaders, more func(*raft.Config)) func(*raft.Config) {
		return func(c *raft.Config) {
			c.Leaders = l
			if more != nil {
				more(c)
			}
		}
	}
	for name, change := range map[string]func(*raft.Config){
		"any":      nil,
		"together": ranked(protocol.LeadersTogether, nil),
		"spread":   ranked(protocol.LeadersSpread, coded(0)),
		"tiny":     ranked(protocol.LeadersSpread, tiny),
		"lease": ranked(protocol.LeadersTogether, func(c *raft.Config) {
			c.LeaseReads, c.MaxClockDrift = true, 10*conformance.Pace
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.RunWith(t, factory(change), conformance.Options{Woven: true, Bodies: 300, Leases: name == "lease"})
		})
	}
}
