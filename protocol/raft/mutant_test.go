package raft_test

import (
	"flag"
	"testing"

	"github.com/braidlog/braid/protocol/conformance"
	"github.com/braidlog/braid/protocol/raft"
)

var (
	huntFrom  = flag.Uint64("hunt.from", 0, "first seed of TestHunt")
	huntTo    = flag.Uint64("hunt.to", 40, "seed after the last one of TestHunt")
	huntTrace = flag.Bool("hunt.trace", false, "print the conversation of TestHunt")
)

func tiny(c *raft.Config) {
	c.MaxFrameBytes, c.MaxInflightBytes, c.MaxUncommittedBytes, c.CacheBytes = 300, 700, 3000, 500
}

func lease(c *raft.Config) { c.LeaseReads, c.MaxClockDrift = true, 10*conformance.Pace }

// TestHunt runs seeds beyond those of the suite, with three settings.
func TestHunt(t *testing.T) {
	var trace func(string)
	if *huntTrace {
		trace = func(line string) { t.Log(line) }
	}
	for seed := *huntFrom; seed < *huntTo; seed++ {
		for name, change := range map[string]func(*raft.Config){"default": nil, "tiny": tiny, "lease": lease} {
			if what := conformance.Hunt(factory(change), seed, trace); what != "" {
				t.Errorf("%s, seed %d: %s", name, seed, what)
			}
		}
	}
}

// TestMutantsAreSeen: the suite's random clusters notice these. The others need a script:
// testdata/mutants.txt.
func TestMutantsAreSeen(t *testing.T) {
	for m, seed := range map[raft.Mutant]uint64{
		raft.MutantAckBeforeFsync:        1027,
		raft.MutantReadWithoutOwnTerm:    1022,
		raft.MutantNoPrevCheck:           1051,
		raft.MutantCommitUnverified:      1002,
		raft.MutantVoteIgnoresLog:        1013,
		raft.MutantSnapshotIgnoresCommit: 1007,
	} {
		found := ""
		for s := seed; s < seed+400 && found == ""; s++ {
			found = conformance.Hunt(factory(func(c *raft.Config) { c.Mutant = m }), s, nil)
		}
		if found == "" {
			t.Errorf("%s was not noticed", m)
		}
	}
}
