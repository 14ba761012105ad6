package epaxos_test

import (
	"cmp"
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/epaxos"
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
		return epaxos.New(c, rec)
	}
}

// options describe the protocol to the suite.
var options = conformance.Options{Derive: epaxos.Derive, Keyed: 4, Torn: true, Fixed: true, Seeds: 8}

// tiny are limits that keep queues full and memory short.
func tiny(c *protocol.Settings) {
	c.MaxFrameBytes, c.MaxUncommittedBytes, c.CacheBytes = 300, 3000, 500
}

func TestConformance(t *testing.T) {
	for name, change := range map[string]func(*protocol.Settings){"default": nil, "tiny": tiny} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options
			o.Seeds = testsize.Pick[uint64](testsize.Seeds, 1, 2, options.Seeds)
			conformance.Run(t, epaxos.Codec, factory(change), o)
		})
	}
}

var (
	huntFrom = flag.Uint64("hunt.from", 60, "first seed of TestHunt")
	huntTo   = flag.Uint64("hunt.to", 0,
		"seed after the last one of TestHunt; 0: as many as the size of the run asks for")
	huntTrace = flag.Bool("hunt.trace", false, "print the conversation of TestHunt")
)

// TestHunt runs seeds beyond those of the suite.
func TestHunt(t *testing.T) {
	var trace func(string)
	if *huntTrace {
		trace = func(line string) { t.Log(line) }
	}
	to := cmp.Or(*huntTo, *huntFrom+testsize.Pick[uint64](testsize.Seeds, 1, 1, 3))
	for seed := *huntFrom; seed < to; seed++ {
		for name, change := range map[string]func(*protocol.Settings){"default": nil, "tiny": tiny} {
			if what := conformance.HuntWith(epaxos.Codec, factory(change), options, seed, trace); what != "" {
				t.Errorf("%s, seed %d: %s", name, seed, what)
			}
		}
	}
}

// TestMutantsAreSeen: the suite's random clusters find these. The simulator finds others, clusters of parts find
// those of the rules, and durable_test.go and disk_test.go the rest.
func TestMutantsAreSeen(t *testing.T) {
	testsize.Long(t)
	for m, begin := range map[protocol.Mutant]uint64{epaxos.MutantReadAlone: 0, epaxos.MutantGiveEarly: 20} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			start := factory(func(c *protocol.Settings) { c.Mutant = m })
			for seed := begin; seed < begin+40; seed++ {
				if what := conformance.HuntWith(epaxos.Codec, start, options, seed, nil); what != "" {
					t.Logf("seed %d: %s", seed, what)
					return
				}
			}
			require.Fail(t, "nobody noticed")
		})
	}
}
