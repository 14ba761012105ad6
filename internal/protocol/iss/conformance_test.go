package iss_test

import (
	"testing"

	"github.com/braidlog/braid/internal/protocol/iss"
	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
	"github.com/braidlog/braid/protocol/setting"
)

// short are epochs that end soon.
var short = epochs.Settings{MinSlots: 4, MaxSlots: 16, Policy: epochs.Combined, Ban: 2, MaxBan: 8}

func factory(change func(*protocol.Settings)) conformance.Factory { return with(short, change) }

func with(set epochs.Settings, change func(*protocol.Settings)) conformance.Factory {
	return func(self protocol.Session, rec protocol.Recovered) (protocol.Core, error) {
		c := protocol.Settings{
			Self: self.Member, Session: self, Instance: 1,
			Heartbeat: 10 * conformance.Pace, ElectionTimeout: 100 * conformance.Pace,
		}
		if change != nil {
			change(&c)
		}
		return iss.New(c, set, rec)
	}
}

func deriveShort(c protocol.Config) protocol.Derived { return epochs.New(short, c) }

// settings are the limits under which the suite runs: the usual ones, small ones that keep queues full and memory
// short, and ones without the optimizations.
var settings = map[string]func(*protocol.Settings){
	"default": nil,
	"tiny":    tiny,
	"plain":   func(c *protocol.Settings) { c.NoParallelAppend, c.NoPipeline, c.MaxFrameEntries = true, true, 1 },
}

// withRelays adds relays in the suites with bodies, which cover everything that the others do.
func withRelays(c *protocol.Settings) {
	tiny(c)
	c.Own = relay.Groups.Set(c.Own, 1)
}

func tiny(c *protocol.Settings) {
	c.MaxFrameBytes, c.MaxUncommittedBytes, c.CacheBytes, c.MaxInflightBytes = 300, 3000, 500, 1000
}

func TestConformance(t *testing.T) {
	for name, change := range settings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Run(t, iss.Codec, factory(change),
				conformance.Options{Seeds: testsize.Pick[uint64](testsize.Seeds, 4, 10, 40), Skips: true, Derive: deriveShort})
		})
	}
}

// The suite's network checks which members hold bodies, including those of cells.
func TestConformanceWithBodies(t *testing.T) {
	for name, change := range settings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Run(t, iss.Codec, factory(change),
				conformance.Options{Seeds: testsize.Pick[uint64](testsize.Seeds, 4, 10, 40), Bodies: 500, OneVoter: true,
					Skips: true, Derive: deriveShort})
		})
	}
}

func TestConformanceWithRelays(t *testing.T) {
	t.Parallel()
	conformance.Run(t, iss.Codec, factory(withRelays),
		conformance.Options{Seeds: testsize.Pick[uint64](testsize.Seeds, 4, 10, 40), Bodies: 500, OneVoter: true, Skips: true,
			Derive: deriveShort, Profile: setting.MustParse("relays=1")})
}
