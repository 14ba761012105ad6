package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol/raft"
)

// staged are mutants for which a certain order of events is needed, and the scenarios that play it.
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
	string(member.MutantRestoreRow):       {5, coded(2), damagedWhole},
}

// hints are the seeds at which the search from seed 1 on found a mutant (braid sim --mutants). The test
// begins there: after a change of the simulator they are seeds like any other.
var hints = map[string]uint64{
	"read-without-own-term": 13, "read-without-confirm": 89, "no-prev-check": 51, "truncate-always": 5,
	"single-quorum-joint": 165, "commit-unverified": 76, "vote-ignores-log": 1, "snapshot-ignores-commit": 78, "take-malformed": 6,
	"code-free-downgrade": 18, "code-f-answers": 9, "code-no-restripe": 15, "forward-at-once": 14, "stalled-disk-leads": 8,
	"promote-at-once": 15, "forget-sessions": 21, "weave-one-session": 74, "weave-depart-any": 15, "weave-reshape-at-once": 11,
	"old-clock": 81, "identity-unchecked": 25, "identity-in-memory": 9, "life-unchecked": 9, "code-trim-uncounted": 33, "code-sweep-referenced": 1,
}

// elusive are the mutants that a script finds and chance does not, within [HuntLimit] seeds.
var elusive = map[string]bool{
	string(raft.MutantCommitOldTerm): true, string(raft.MutantLeaseIgnoresDrift): true, string(raft.MutantCodeOldTermAnswers): true,
	string(raft.MutantForgetAcknowledged): true, string(raft.MutantCodeWaitForAll): true, string(raft.MutantHeedLateAnswers): true,
	string(member.MutantKeepNothing): true, string(member.MutantRestoreRow): true,
}

// TestMutantsAreFound proves that the simulator is worth something: every known-unsafe variant of
// the code that ships is found by random search.
func TestMutantsAreFound(t *testing.T) {
	for _, h := range Hunts() {
		t.Run(h.Name, func(t *testing.T) {
			if elusive[h.Name] {
				require.Contains(t, staged, h.Name)
				return
			}
			from, tried := max(1, hints[h.Name]), 0
			for _, c := range []Campaign{h.Campaign(from, h.Limit), h.Campaign(1, from-1)} {
				if c.First > c.Last {
					continue
				}
				sum, err := c.Run(nil)
				require.NoError(t, err)
				tried += sum.Runs
				if len(sum.Failed) > 0 {
					t.Logf("found after %d seeds: %.200s", tried, sum.Failed[0].Error)
					return
				}
			}
			t.Fatalf("not found by %d seeds", tried)
		})
	}
}

// TestMutantsAreCaughtByScript: these need a certain order of events, and this is it.
func TestMutantsAreCaughtByScript(t *testing.T) {
	for mutant, p := range staged {
		t.Run(mutant, func(t *testing.T) {
			s := newStage(t, p.nodes, mutant, p.tweak)
			p.play(s)
			v := s.end()
			require.NotNil(t, v, "not caught")
			t.Logf("caught: %.200s", v.Error())
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
