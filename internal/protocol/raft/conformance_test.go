package raft_test

import (
	"errors"
	"testing"

	"github.com/braidlog/braid/internal/erasure"
	"github.com/braidlog/braid/internal/protocol/raft"
	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/conformance"
	"github.com/braidlog/braid/protocol/setting"
)

func factory(change func(*protocol.Settings)) conformance.Factory {
	return func(self protocol.Session, rec protocol.Recovered) (protocol.Core, error) {
		c := protocol.Settings{
			Self: self.Member, Session: self, Instance: 1,
			Heartbeat: 10 * conformance.Pace, ElectionTimeout: 100 * conformance.Pace,
		}
		if change != nil {
			change(&c)
		}
		rec.Follows = c.Instance != protocol.FirstInstance
		return raft.New(c, rec)
	}
}

// profileOf has the settings of a cluster that profiles of its log have too.
func profileOf(change func(*protocol.Settings)) setting.Values {
	var c protocol.Settings
	if change != nil {
		change(&c)
	}
	v := common.LeaseReads.Set(common.Leaders.Set(setting.Values{}, c.Leaders), c.LeaseReads)
	return common.CodeK.Set(common.Placement.Set(v, c.Placement), c.MaxK)
}

func TestConformance(t *testing.T) {
	for name, change := range map[string]func(*protocol.Settings){
		"default": nil,
		// Tiny limits: full queues and dropped payloads all the time.
		"tiny": func(c *protocol.Settings) {
			c.MaxFrameBytes, c.MaxInflightBytes, c.MaxUncommittedBytes, c.CacheBytes = 300, 700, 3000, 500
		},
		"no batching": func(c *protocol.Settings) { c.MaxFrameEntries = 1 },
		"one by one":  func(c *protocol.Settings) { c.NoPipeline, c.NoParallelAppend = true, true },
		"lease":       func(c *protocol.Settings) { c.LeaseReads, c.MaxClockDrift = true, 10*conformance.Pace },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Run(t, message.Codec, factory(change),
				conformance.Options{Seeds: testsize.Pick[uint64](testsize.Seeds, 4, 10, 40), Profile: profileOf(change)})
		})
	}
}

// coded is placement code with limits that make whole copies and full frames common.
func coded(k int) func(*protocol.Settings) {
	return func(c *protocol.Settings) { c.Placement, c.MaxK = protocol.PlacementCode, k }
}

// Placements with bodies; the net watches over who holds them.
func TestConformanceWithBodies(t *testing.T) {
	for name, change := range map[string]func(*protocol.Settings){
		"copy":   nil,
		"code":   coded(0),
		"code 3": coded(3),
		"code tiny": func(c *protocol.Settings) {
			tiny(c)
			coded(3)(c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Run(t, message.Codec, factory(change),
				conformance.Options{Seeds: testsize.Pick[uint64](testsize.Seeds, 4, 10, 40), Bodies: 500,
					Profile: profileOf(change)})
		})
	}
}

// rs5 is RS-Raft for five members.
func rs5(c *protocol.Settings) {
	c.Placement, c.MaxK, c.ReadQuorum, c.WriteQuorum = protocol.PlacementRS, 3, 4, 4
}

// Five members code with every k there is; RS-Raft knows no other number.
func TestFiveWithBodies(t *testing.T) {
	five := conformance.Options{Bodies: 500, Members: 5}
	four := five
	four.ReadQuorum, four.WriteQuorum = 4, 4
	for name, s := range map[string]struct {
		change  func(*protocol.Settings)
		options conformance.Options
	}{"code": {coded(0), five}, "code 3": {coded(3), five}, "rs": {rs5, four}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(25) {
				if what := conformance.HuntWith(message.Codec, factory(s.change), s.options, seed, nil); what != "" {
					t.Errorf("seed %d: %s", seed, what)
				}
			}
		})
	}
}

func TestConfigOfPlacements(t *testing.T) {
	base := protocol.Settings{Self: 1, Instance: 1, Heartbeat: 1, ElectionTimeout: 10}
	var voters protocol.Config
	for id := range protocol.MemberID(5) {
		voters.Members = append(voters.Members, protocol.Member{ID: id + 1})
	}
	voters.Number()
	for _, c := range []struct {
		change func(*protocol.Settings)
		ok     bool
	}{
		{coded(0), true},
		{coded(3), true},
		{func(c *protocol.Settings) { c.Placement, c.ExtraWhole = protocol.PlacementCode, 2 }, true},
		{rs5, true},
		{coded(-1), false},
		{coded(300), false},
		{func(c *protocol.Settings) { c.MaxK = 2 }, false},
		{func(c *protocol.Settings) { c.ExtraWhole = 1 }, false},
		{func(c *protocol.Settings) { c.Placement = "confirm" }, false},
		{func(c *protocol.Settings) { coded(2)(c); c.ReadQuorum = 3 }, false},
		{func(c *protocol.Settings) { rs5(c); c.MaxK = 0 }, false},
		{func(c *protocol.Settings) { rs5(c); c.MaxK = 4 }, false},
		{func(c *protocol.Settings) { rs5(c); c.WriteQuorum = 6 }, false},
		{func(c *protocol.Settings) { rs5(c); c.ReadQuorum, c.WriteQuorum, c.MaxK = 2, 5, 2 }, false},
	} {
		config := base
		c.change(&config)
		_, err := raft.New(config, protocol.Recovered{Base: protocol.Base{Config: voters}})
		var refused *protocol.SettingsError
		if c.ok != (err == nil) || !c.ok && !errors.As(err, &refused) {
			t.Errorf("%+v: %v", config, err)
		}
	}
}

// One of several instances: ranked elections, skips, and what other instances do to it.
func TestConformanceWoven(t *testing.T) {
	ranked := func(l protocol.Leaders, more func(*protocol.Settings)) func(*protocol.Settings) {
		return func(c *protocol.Settings) {
			c.Leaders = l
			if more != nil {
				more(c)
			}
		}
	}
	for name, change := range map[string]func(*protocol.Settings){
		"any":      nil,
		"together": ranked(protocol.LeadersTogether, nil),
		"spread":   ranked(protocol.LeadersSpread, coded(0)),
		"tiny":     ranked(protocol.LeadersSpread, tiny),
		"lease": ranked(protocol.LeadersTogether, func(c *protocol.Settings) {
			c.LeaseReads, c.MaxClockDrift = true, 10*conformance.Pace
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Run(t, message.Codec, factory(change),
				conformance.Options{Seeds: testsize.Pick[uint64](testsize.Seeds, 4, 10, 40), Merged: true, Bodies: 300,
					Leases: name == "lease", Profile: profileOf(change)})
		})
	}
}

// withLanes is a cluster in which members have lanes.
func withLanes(change func(*protocol.Settings)) conformance.Factory {
	return factory(func(c *protocol.Settings) {
		if c.Own = lane.On.Set(c.Own, true); change != nil {
			change(c)
		}
	})
}

// Every second proposal is blind, and takes the lane of the member that it is made to.
func TestConformanceWithLanes(t *testing.T) {
	for name, change := range map[string]func(*protocol.Settings){"default": nil, "tiny": tiny} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Run(t, message.Codec, withLanes(change),
				conformance.Options{Seeds: testsize.Pick[uint64](testsize.Seeds, 4, 10, 40), Derive: lane.Derive, Accepted: true,
					Profile: lane.On.Set(profileOf(change), true)})
		})
	}
}

// So does what has a body, of which the others are sent rows.
func TestConformanceWithBodiesInLanes(t *testing.T) {
	for name, c := range map[string]struct {
		members int
		change  func(*protocol.Settings)
	}{
		"copy":   {0, nil},
		"code":   {5, coded(0)},
		"code 3": {5, coded(3)},
		"code tiny": {0, func(c *protocol.Settings) {
			tiny(c)
			coded(3)(c)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := conformance.Options{
				Derive: lane.Derive, Accepted: true, Bodies: 500, Members: c.members, Rows: erasure.Cut,
				Seeds: testsize.Pick[uint64](testsize.Seeds, 4, 10, 40), Profile: lane.On.Set(profileOf(c.change), true),
			}
			conformance.Run(t, message.Codec, withLanes(c.change), o)
		})
	}
}
