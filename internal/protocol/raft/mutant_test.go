package raft_test

import (
	"cmp"
	"flag"
	"testing"

	"github.com/braidlog/braid/internal/protocol/raft"
	"github.com/braidlog/braid/internal/protocol/raft/code"
	"github.com/braidlog/braid/internal/protocol/raft/message"
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

func tiny(c *protocol.Settings) {
	c.MaxFrameBytes, c.MaxInflightBytes, c.MaxUncommittedBytes, c.CacheBytes = 300, 700, 3000, 500
}

func lease(c *protocol.Settings) { c.LeaseReads, c.MaxClockDrift = true, 10*conformance.Pace }

// TestHunt runs seeds beyond those of the suite, with several settings.
func TestHunt(t *testing.T) {
	var trace func(string)
	if *huntTrace {
		trace = func(line string) { t.Log(line) }
	}
	to := cmp.Or(*huntTo, testsize.Pick[uint64](testsize.Seeds, 4, 10, 40))
	for seed := *huntFrom; seed < to; seed++ {
		for name, change := range map[string]func(*protocol.Settings){"default": nil, "tiny": tiny, "lease": lease} {
			if what := conformance.Hunt(message.Codec, factory(change), seed, trace); what != "" {
				t.Errorf("%s, seed %d: %s", name, seed, what)
			}
		}
		for name, change := range map[string]func(*protocol.Settings){"copy": nil, "code": coded(0), "code 3": coded(3)} {
			o := conformance.Options{Bodies: 500, Members: int(seed%2) * 5}
			if what := conformance.HuntWith(message.Codec, factory(change), o, seed, trace); what != "" {
				t.Errorf("%s with bodies, seed %d: %s", name, seed, what)
			}
		}
	}
}

// TestSeals: under faults, seals that do not count stop nothing forever.
func TestSeals(t *testing.T) {
	for seed := *huntFrom; seed < cmp.Or(*huntTo, testsize.Pick[uint64](testsize.Seeds, 6, 12, 40)); seed++ {
		for name, change := range map[string]func(*protocol.Settings){"default": nil, "tiny": tiny, "lease": lease} {
			o := conformance.Options{Seals: true, Leases: name == "lease"}
			if what := conformance.HuntWith(message.Codec, factory(change), o, seed, nil); what != "" {
				t.Errorf("%s, seed %d: %s", name, seed, what)
			}
		}
	}
}

// TestMutantsAreSeen: the suite's random clusters notice these. The others need a script:
// testdata/mutants.txt, testdata/code_mutants.txt.
func TestMutantsAreSeen(t *testing.T) {
	testsize.Long(t)
	notice := func(m protocol.Mutant, change func(*protocol.Settings), o conformance.Options, seed uint64) {
		for s := seed; s < seed+400; s++ {
			if conformance.HuntWith(message.Codec, factory(func(c *protocol.Settings) {
				if change != nil {
					change(c)
				}
				c.Mutant = m
			}), o, s, nil) != "" {
				return
			}
		}
		t.Errorf("%s was not noticed", m)
	}
	for m, seed := range map[protocol.Mutant]uint64{
		raft.MutantAckBeforeFsync:        1027,
		raft.MutantReadWithoutOwnTerm:    1022,
		raft.MutantNoPrevCheck:           1051,
		raft.MutantCommitUnverified:      1002,
		raft.MutantVoteIgnoresLog:        1013,
		raft.MutantSnapshotIgnoresCommit: 1007,
	} {
		notice(m, nil, conformance.Options{}, seed)
	}
	for m, seed := range map[protocol.Mutant]uint64{
		code.MutantPaperPrefix:       0,
		raft.MutantCodeFreeDowngrade: 3,
		raft.MutantCodeFAnswers:      40,
		code.MutantNaiveMix:          0,
	} {
		notice(m, coded(3), conformance.Options{Bodies: 500, Members: 5}, seed)
	}
}
