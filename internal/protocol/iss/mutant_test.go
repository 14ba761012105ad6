package iss_test

import (
	"cmp"
	"flag"
	"fmt"
	"testing"

	"github.com/braidlog/braid/internal/protocol/iss"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
)

var (
	huntFrom = flag.Uint64("hunt.from", 0, "first seed of TestHunt")
	huntTo   = flag.Uint64("hunt.to", 0,
		"seed after the last one of TestHunt; 0: as many as the size of the run asks for")
	huntTrace  = flag.Bool("hunt.trace", false, "print the conversation of TestHunt")
	huntMutant = flag.String("hunt.mutant", "", "the mutant that TestHunt runs")
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
				if what := huntWith(change, protocol.Mutant(*huntMutant), conformance.Options{Bodies: bodies}, seed,
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
			what := huntWith(change, protocol.Mutant(*huntMutant), conformance.Options{Seals: true}, seed, nil)
			if what != "" {
				t.Errorf("%s, seed %d: %s", name, seed, what)
			}
		}
	}
}

// huntWith runs a seed with a mutant; "": none.
func huntWith(change func(*protocol.Settings), m protocol.Mutant, o conformance.Options, seed uint64,
	trace func(string)) string {
	start := factory(func(c *protocol.Settings) {
		if change != nil {
			change(c)
		}
		c.Mutant = m
	})
	o.Skips, o.Derive, o.OneVoter = true, deriveShort, o.Bodies > 0
	return conformance.HuntWith(iss.Codec, start, o, seed, trace)
}
