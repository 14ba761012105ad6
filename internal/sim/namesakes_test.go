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

// TestAFailedHandshakeGivesALineage: a member that joins has a handshake with one that joined another cluster. That
// one stops in it, because its disk fails, so there is no link. The lineage of the other cluster stays nevertheless,
// before the member's own cluster has one. The judge has to know that the member belongs to the other cluster.
func TestAFailedHandshakeGivesALineage(t *testing.T) {
	const lineage = 7
	s := newStage(t, 3, "", nil)
	s.crash(1, 2, 3) // before there is a log
	four, five := s.Member(fault.AddMember(s.World).ID), s.Member(fault.AddMember(s.World).ID)
	s.start(four.ID)
	four.Misled, s.OtherLineage = true, lineage
	require.NoError(t, four.Handshakes.Relate(1, lineage, 0))
	four.Disk.FailSync = true
	s.start(five.ID)
	s.until("its disk fails in the handshake", func() bool { return !four.Up })
	require.Equal(t, uint64(lineage), five.Handshakes.Lineage())
	require.True(t, five.Misled)
	s.start(1, 2, 3)
	s.elect(1)
	s.wait(3)
	require.False(t, five.Misled, "the operator gives it an empty disk")
	s.passes()
}
