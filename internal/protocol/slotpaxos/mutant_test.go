package slotpaxos_test

import (
	"cmp"
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/slotpaxos"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
)

var (
	huntFrom = flag.Uint64("hunt.from", 0, "first seed of TestHunt")
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
	to := cmp.Or(*huntTo, testsize.Pick[uint64](testsize.Seeds, 5, 15, 60))
	for seed := *huntFrom; seed < to; seed++ {
		for name, change := range map[string]func(*protocol.Settings){"default": nil, "tiny": tiny} {
			if what := conformance.HuntWith(slotpaxos.Codec, factory(change), options, seed, trace); what != "" {
				t.Errorf("%s, seed %d: %s", name, seed, what)
			}
		}
	}
}

// TestBodyMutantsAreSeen is TestMutantsAreSeen for bodies.
func TestBodyMutantsAreSeen(t *testing.T) {
	testsize.Long(t)
	for _, m := range []protocol.Mutant{slotpaxos.MutantNamedByBallot, slotpaxos.MutantChangeLosesBodies} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			start := factory(func(c *protocol.Settings) { tiny(c); c.Mutant = m })
			for seed := range uint64(400) {
				if what := conformance.HuntWith(slotpaxos.Codec, start, conformance.Options{Bodies: 500, Derive: slotpaxos.Derive},
					seed, nil); what != "" {
					t.Logf("seed %d: %s", seed, what)
					return
				}
			}
			require.Fail(t, "nobody noticed")
		})
	}
}

// TestMutantsAreSeen: the suite's random clusters find these. Some of the others have a script, and the simulator
// finds all.
func TestMutantsAreSeen(t *testing.T) {
	testsize.Long(t)
	for _, m := range []protocol.Mutant{
		slotpaxos.MutantPromiseForgets, slotpaxos.MutantAnswerEarly, slotpaxos.MutantOwnValue, slotpaxos.MutantReadAlone,
		slotpaxos.MutantAcceptedByOne,
	} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			start := factory(func(c *protocol.Settings) { c.Mutant = m })
			for seed := range uint64(400) {
				if what := conformance.HuntWith(slotpaxos.Codec, start, options, seed, nil); what != "" {
					t.Logf("seed %d: %s", seed, what)
					return
				}
			}
			require.Fail(t, "nobody noticed")
		})
	}
}
