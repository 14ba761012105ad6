package sim

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/member"
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
	string(raft.MutantCodeOldTermAnswers): {5, coded(3), oldTermAnswers},
	string(raft.MutantPromoteAtOnce):      {1, nil, neverComes},
	string(raft.MutantCodeWaitForAll):     {5, lateCoded, laggard},
	string(raft.MutantHeedLateAnswers):    {3, narrowFrames, lateAnswers},
	string(member.MutantKeepNothing):      {3, keepsLog, endlessSnapshots},
	string(raft.MutantForgetAcknowledged): {3, nil, hotCopy},
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
			proto := ProtocolRaft
			switch prefix, _, _ := strings.Cut(mutant, "-"); prefix {
			case "code":
				proto = ProtocolCRaft
			case "weave":
				proto = ProtocolNiagara
			}
			for seed := uint64(1); seed <= searched; seed++ {
				for _, nodes := range []int{3, 5} {
					if v := Run(Options{Seed: seed, Nodes: nodes, Protocol: proto, Mutant: mutant}).Violation; v != nil {
						t.Logf("caught with %d nodes: %.200s", nodes, v.Error())
						return
					}
				}
			}
			t.Fatalf("not caught by %d seeds", 2*searched)
		})
	}
}

// TestPaperPrefixIsCaughtByHand: chance finds it too; this is how (docs/craft.md, G1).
func TestPaperPrefixIsCaughtByHand(t *testing.T) {
	s := newStage(t, 5, string(raft.MutantCodePaperPrefix), coded(3))
	codedThenWhole(s)
	v := s.end()
	require.NotNil(t, v)
	require.ErrorContains(t, v, "C1")
}
