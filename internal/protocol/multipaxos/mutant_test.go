package multipaxos_test

import (
	"cmp"
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/multipaxos"
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

// TestHunt runs seeds beyond those of the suite: those that flags name, or else a few.
func TestHunt(t *testing.T) {
	var trace func(string)
	if *huntTrace {
		trace = func(line string) { t.Log(line) }
	}
	for seed := *huntFrom; seed < cmp.Or(*huntTo, testsize.Pick[uint64](testsize.Seeds, 1, 3, 12)); seed++ {
		for name, change := range settings {
			for _, bodies := range []int{0, 500} {
				if trace != nil {
					trace(fmt.Sprintf("%s, bodies %d, seed %d", name, bodies, seed))
				}
				if what := conformance.HuntWith(multipaxos.Codec, factory(change), conformance.Options{Bodies: bodies}, seed,
					trace); what != "" {
					t.Errorf("%s, bodies %d, seed %d: %s", name, bodies, seed, what)
				}
			}
		}
	}
}

// TestSeals: under faults, seals that do not count stop nothing forever.
func TestSeals(t *testing.T) {
	for seed := *huntFrom; seed < cmp.Or(*huntTo, testsize.Pick[uint64](testsize.Seeds, 6, 12, 40)); seed++ {
		for name, change := range settings {
			o := conformance.Options{Seals: true}
			if what := conformance.HuntWith(multipaxos.Codec, factory(change), o, seed, nil); what != "" {
				t.Errorf("%s, seed %d: %s", name, seed, what)
			}
		}
	}
}

// TestMutantsAreSeen: the suite's random clusters notice these. The simulator finds all.
func TestMutantsAreSeen(t *testing.T) {
	testsize.Long(t)
	for _, m := range []protocol.Mutant{
		multipaxos.MutantAcceptedEarly, multipaxos.MutantPromiseForgets, multipaxos.MutantPromiseUndecided,
		multipaxos.MutantOwnValue, multipaxos.MutantCountOlderBallot, multipaxos.MutantLearnOlderBallot,
		multipaxos.MutantReadBelowFloor,
	} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			start := factory(func(c *protocol.Settings) { tiny(c); c.Mutant = m })
			for seed := range uint64(400) {
				if what := conformance.HuntWith(multipaxos.Codec, start, conformance.Options{Bodies: 500}, seed, nil); what != "" {
					t.Logf("seed %d: %s", seed, what)
					return
				}
			}
			require.Fail(t, "nobody noticed")
		})
	}
}
