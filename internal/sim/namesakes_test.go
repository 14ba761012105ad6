package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
)

// TestAnotherClusterOfTheSameMembersIsFoundOut: each kind of such a cluster finds a member that does not compare where logs
// come from, in one of the first runs that have it, and nothing without that mutant.
func TestAnotherClusterOfTheSameMembersIsFoundOut(t *testing.T) {
	for kind, mutant := range map[namesakes]mutant.Name{
		foundedNamesakes: member.MutantAnyLineage, restoredNamesakes: member.MutantAnyBirth,
		copiedNamesakes: member.MutantAnyLineage, misledNamesakes: member.MutantAnyLineage,
	} {
		t.Run(namesakeNames[kind], func(t *testing.T) {
			t.Parallel()
			for seed, tries := uint64(1), 0; tries < 6; seed++ {
				require.Less(t, seed, uint64(3000), "no such run")
				o := Options{Seed: seed, Nodes: 3}
				if s := open(o).set; s.Namesakes != kind || s.OddFounder || s.Apart {
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
