package multipaxos_test

import (
	"testing"

	"github.com/braidlog/braid/internal/protocol/multipaxos"
	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
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
		return multipaxos.New(c, rec)
	}
}

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
			conformance.Run(t, multipaxos.Codec, factory(change),
				conformance.Options{Seeds: testsize.Pick[uint64](testsize.Seeds, 4, 10, 40)})
		})
	}
}

// The suite's network checks which members hold bodies, including those of cells.
func TestConformanceWithBodies(t *testing.T) {
	for name, change := range settings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Run(t, multipaxos.Codec, factory(change),
				conformance.Options{Seeds: testsize.Pick[uint64](testsize.Seeds, 4, 10, 40), Bodies: 500})
		})
	}
}

func TestConformanceWithRelays(t *testing.T) {
	t.Parallel()
	conformance.Run(t, multipaxos.Codec, factory(withRelays),
		conformance.Options{Seeds: testsize.Pick[uint64](testsize.Seeds, 4, 10, 40), Bodies: 500,
			Profile: setting.MustParse("relays=1")})
}
