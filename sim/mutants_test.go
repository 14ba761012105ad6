package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol/raft"
)

// staged are the mutants that chance finds too seldom, and the scenarios that find them.
// Their scenarios pass without the mutant: see scenario_test.go.
var staged = map[string]struct {
	nodes int
	tweak func(*Settings)
	play  func(*stage)
}{
	string(raft.MutantCommitOldTerm):      {5, nil, figure8},
	string(raft.MutantSingleQuorumJoint):  {3, nil, jointHalf},
	string(raft.MutantReadWithoutConfirm): {3, nil, oldLease},
	string(raft.MutantLeaseIgnoresDrift):  {3, leases(0.9), oldLease},
}

// searched bounds how many seeds of each size are tried for the other mutants.
const searched = 400

// TestMutantsAreCaught proves that the simulator is worth something: every known-unsafe
// variant of the protocol and of the replica is found out.
func TestMutantsAreCaught(t *testing.T) {
	for _, mutant := range Mutants() {
		t.Run(mutant, func(t *testing.T) {
			if p, ok := staged[mutant]; ok {
				s := newStage(t, p.nodes, mutant, p.tweak)
				p.play(s)
				v := s.end()
				require.NotNil(t, v, "not caught")
				t.Logf("caught: %.200s", v.Error())
				return
			}
			for seed := uint64(1); seed <= searched; seed++ {
				for _, nodes := range []int{3, 5} {
					if v := Run(Options{Seed: seed, Nodes: nodes, Mutant: mutant}).Violation; v != nil {
						t.Logf("caught with %d nodes: %.200s", nodes, v.Error())
						return
					}
				}
			}
			t.Fatalf("not caught by %d seeds", 2*searched)
		})
	}
}
