package sim

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/protocol/raft"
	"github.com/braidlog/braid/internal/protocol/raft/code"
	"github.com/braidlog/braid/internal/protocol/raft/members"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/testsize"
)

// staged are mutants that need a certain order of events, with the scenarios for it. The scenarios pass without the
// mutant: see scenario_test.go.
var staged = map[string]struct {
	nodes int
	tweak func(*fault.Settings)
	play  func(*script)
}{
	string(raft.MutantCommitOldTerm):        {5, nil, figure8},
	string(members.MutantSingleQuorumJoint): {3, nil, jointHalf},
	string(raft.MutantReadWithoutConfirm):   {3, nil, oldLease},
	string(raft.MutantLeaseIgnoresDrift):    {3, leases(0.9), oldLease},
	string(raft.MutantCodeOldTermAnswers):   {5, coded(3), oldTermAnswers},
	string(raft.MutantPromoteAtOnce):        {1, nil, neverComes},
	string(code.MutantWaitForAll):           {5, lateCoded, laggard},
	string(raft.MutantHeedLateAnswers):      {3, narrowFrames, lateAnswers},
	string(member.MutantKeepNothing):        {3, keepsLog, endlessSnapshots},
	string(raft.MutantForgetAcknowledged):   {3, nil, hotCopy},
	string(member.MutantRestoreRow):         {5, coded(2), damagedWhole},
	string(member.MutantNoGuests):           {3, nil, unknownLeader},
	string(raft.MutantCountStateless):       {1, woven, statelessVoter},
	string(code.MutantCountBehind):          {4, wovenBodies(2), behindInRetired},
	string(code.MutantLeaderBehind):         {4, wovenBodies(2), leaderBehindInRetired},
	string(member.MutantReshapeUnchecked):   {4, wovenBodies(3), repeatedReshape},
	string(member.MutantTrimByApplied):      {4, trimmed(3), forgetsWhole},
}

// hints are the seeds at which searches from seed 1 on detected mutants (braid sim --mutants). The test begins there.
// After a change of the simulator they are seeds like any others.
var hints = map[string]uint64{
	"commit-old-term": 119, "no-prev-check": 10, "single-quorum-joint": 105, "lease-ignores-drift": 208,
	"promise-of-term": 18, "snapshot-ignores-commit": 89, "take-malformed": 6, "code-free-downgrade": 52,
	"code-f-answers": 80, "code-old-term-answers": 107, "forget-acknowledged": 19, "code-no-restripe": 113,
	"code-wait-for-all": 114, "heed-late-answers": 249, "forward-at-once": 30, "stalled-disk-leads": 415,
	"weave-count-behind": 4, "weave-leader-behind": 36, "weave-reshape-unchecked": 16, "code-trim-by-applied": 308,
	"weave-count-stateless": 77, "promote-at-once": 248, "slot-accept-below-promise": 63, "slot-promise-forgets": 5,
	"slot-own-value": 5, "slot-accepted-by-one": 45, "slot-settle-at-once": 13, "slot-body-assumed": 131,
	"slot-change-loses-bodies": 649, "paxos-accept-below-promise": 73, "paxos-promise-early": 309,
	"paxos-promise-forgets": 15, "paxos-promise-leaves-out-decided": 106, "paxos-promise-first-part": 71,
	"paxos-own-value": 15, "paxos-any-found": 200, "paxos-learn-older-ballot": 8, "paxos-read-below-floor": 16,
	"paxos-change-early": 51, "paxos-settle-at-once": 30, "paxos-change-loses-bodies": 88, "paxos-commit-late": 30,
	"iss-log-unsent": 16, "iss-skip-elected": 114, "iss-skip-last": 595, "iss-last-slot-waits": 56,
	"iss-started-early": 14, "iss-promise-leaves-out-decided": 47, "iss-learn-older-ballot": 556,
	"iss-closed-epoch-forgotten-early": 84, "iss-settle-at-once": 129, "iss-votes-of-any-ballot": 80,
	"epaxos-one-ballot": 1927, "epaxos-unchecked": 1102, "epaxos-any-proposer": 204, "epaxos-answer-early": 69,
	"epaxos-tell-early": 67, "epaxos-eager-noop": 35, "epaxos-tell-anybody": 6406, "epaxos-meet-alone": 2,
	"lane-drop-early": 47, "lane-ack-early": 615, "lane-same-name": 205, "lane-accept-unsynced": 1217,
	"lane-old-generation": 744, "lane-fence-uncovered": 471, "lane-rows-majority": 623, "lane-cut-unseen": 364,
	"state-unchecked": 186, "operation-unconfirmed": 102, "weave-session-of-instance": 589, "weave-depart-any": 165,
	"keep-nothing": 94, "identity-in-memory": 204, "life-unchecked": 69, "old-clock": 27, "barrier-before-place": 109,
	"ends-earlier-incarnation-early": 3585, "wpaxos-promise-leaves-out-decided": 164, "wpaxos-promise-early": 54,
	"wpaxos-read-alone": 73, "wpaxos-read-below-floor": 33, "lineage-unchecked": 3, "birth-unchecked": 12,
	"birth-not-adopted": 24, "no-guests": 1141, "any-state": 599, "epaxos-say-unused": 300, "wpaxos-any-found": 144,
	"wpaxos-elect-too-few": 11, "lane-no-drain": 492, "weave-plan-early": 120, "weave-grow-late": 7,
	"weave-grow-unproven": 52, "format-raise-unproven": 11, "code-restore-row": 227, "read-without-confirm": 53,
	"turned-away": 100, "tune-lanes-open": 627, "tune-lease-by-majority": 29, "tune-lease-at-once": 29,
	"tune-laggard-counts": 264, "tune-promise-decided": 29, "iss-promise-forgets": 94, "seal-begin-unclosed": 2,
	"seal-ends-unnamed": 11, "seal-snapshot-by-index": 43, "seal-numbered-again": 32, "seal-forgets-sessions": 32,
	"seal-unanswered": 52, "fit-any-version": 268, "fit-forgets": 96, "fit-hasty": 45, "fit-member-missing": 26,
	"seal-number-again": 19, "seal-lanes-open": 59, "weave-read-short": 22, "drain-unheeded": 10,
	"drain-announced-once": 10, "drain-to-drained": 32, "read-without-own-term": 7, "commit-unverified": 27,
	"code-paper-prefix": 2, "code-naive-mix": 2, "lane-accept-alone": 27, "lane-no-promise": 2, "lane-no-fence": 2,
	"tune-lanes-unfenced": 32, "tune-lanes-numbers": 32, "lane-confirm-row": 3, "paxos-count-older-ballot": 10,
	"paxos-elect-too-few": 2, "paxos-lead-unasked": 2, "iss-zero-reused": 2, "epaxos-drop-deps": 14,
	"epaxos-reuse-number": 16, "epaxos-forget-reserved": 9, "epaxos-give-early": 16, "epaxos-forget-wide": 6,
	"weave-reshape-at-once": 8, "client-overtakes": 9, "group-as-one": 2, "weave-give-up-early": 7,
	"identity-unchecked": 25, "code-trim-uncounted": 23, "weave-forget-pending": 13, "given-unused": 10,
	"told-unused": 36, "needs-no-file": 177, "bodies-after-log": 3, "answer-before-sync": 3, "cut-before-records": 8,
	"mark-before-sync": 16, "vote-ignores-log": 8, "iss-skip-in-last-slot": 15,
}

// seldom is the first hint that makes a mutant a rare one. Only campaign mutants searches for rare mutants.
const seldom = 40

// TestMutantsAreFound shows that the simulator detects errors: random search detects every mutant. A usual run
// searches for every third one that is not rare, a short one for a few of them. With -v campaign mutants ends with the
// hints that its searches found.
func TestMutantsAreFound(t *testing.T) {
	t.Parallel()
	every := testsize.Pick(testsize.Mutants, 24, 3, 1)
	found := map[string]uint64{}
	for i, h := range Hunts() {
		if rare := hints[h.Name] > seldom; i%every > 0 || rare && !testsize.Runs(testsize.Mutants) {
			continue
		}
		t.Run(h.Name, func(t *testing.T) {
			from := max(1, hints[h.Name])
			f, err := h.search(from, h.Limit, nil)
			if err == nil && f.Seed == 0 {
				f, err = h.search(1, from-1, nil)
			}
			require.NoError(t, err)
			require.NotZero(t, f.Seed, "not found by %d seeds", h.Limit)
			t.Logf("found at seed %d: %.200s", f.Seed, f.Error)
			found[h.Name] = f.Seed
		})
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if testsize.Runs(testsize.Mutants) && found[name] > 1 {
			t.Logf("hint: %q: %d,", name, found[name])
		}
	}
}

// TestMutantsAreCaughtByScript: these mutants need a certain order of events, which the scripts produce.
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

// TestPaperPrefixIsCaughtByHand shows the effect of the mutant (docs/internals/craft.md, G1). Random search detects
// it too.
func TestPaperPrefixIsCaughtByHand(t *testing.T) {
	s := newStage(t, 5, string(code.MutantPaperPrefix), coded(3))
	codedThenWhole(s)
	v := s.end()
	require.NotNil(t, v)
	require.ErrorContains(t, v, "C1")
}
