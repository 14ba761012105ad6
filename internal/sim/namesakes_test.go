package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/sim/fault"
)

// TestAnotherClusterOfTheSameMembersIsFoundOut: each kind of such a cluster detects the mutant that does not compare
// the lineages of logs, in one of its first runs, and has no violation without that mutant.
func TestAnotherClusterOfTheSameMembersIsFoundOut(t *testing.T) {
	for kind, mutant := range map[fault.Namesakes]mutant.Name{
		fault.FoundedNamesakes: member.MutantAnyLineage, fault.RestoredNamesakes: member.MutantAnyBirth,
		fault.CopiedNamesakes: member.MutantAnyLineage, fault.MisledNamesakes: member.MutantAnyLineage,
	} {
		t.Run(fault.NamesakeNames[kind], func(t *testing.T) {
			t.Parallel()
			for seed, tries := uint64(1), 0; tries < 6; seed++ {
				require.Less(t, seed, uint64(3000), "no such run")
				o := fault.Options{Seed: seed, Nodes: 3}
				if s := open(o).Set; s.Namesakes != kind || s.OddFounder || s.Apart {
					continue
				}
				tries++
				res := Run(o)
				require.Nil(t, res.Violation)
				o.Mutant = string(mutant)
				if broken := Run(o).Violation; broken != nil {
					t.Logf("seed %d: %.150s", seed, broken)
					return
				}
			}
			t.Fatal("not found")
		})
	}
}
