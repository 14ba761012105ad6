package slotpaxos_test

import (
	"testing"

	"github.com/braidlog/braid/internal/protocol/slotpaxos"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
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
		return slotpaxos.New(c, rec)
	}
}

// options describe the protocol to the suite.
var options = conformance.Options{Derive: slotpaxos.Derive, Accepted: true}

// tiny are limits that keep queues full and memory short.
func tiny(c *protocol.Settings) {
	c.MaxFrameBytes, c.MaxUncommittedBytes, c.CacheBytes = 300, 3000, 500
}

func TestConformance(t *testing.T) {
	for name, change := range map[string]func(*protocol.Settings){"default": nil, "tiny": tiny} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options
			o.Seeds = testsize.Pick[uint64](testsize.Seeds, 4, 10, 40)
			conformance.Run(t, slotpaxos.Codec, factory(change), o)
		})
	}
}

// The suite's network checks which members hold bodies, including those of cells.
func TestConformanceWithBodies(t *testing.T) {
	for name, change := range map[string]func(*protocol.Settings){"default": nil, "tiny": tiny} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Run(t, slotpaxos.Codec, factory(change), conformance.Options{
				Bodies: 500, Derive: slotpaxos.Derive, Seeds: testsize.Pick[uint64](testsize.Seeds, 4, 10, 40),
			})
		})
	}
}
