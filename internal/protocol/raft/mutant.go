package raft

import (
	"slices"

	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/protocol/raft/code"
	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/internal/protocol/raft/members"
	"github.com/braidlog/braid/protocol"
)

// The mutants.
const (
	MutantCommitOldTerm         protocol.Mutant = "commit-old-term"
	MutantForgetVote            protocol.Mutant = "forget-vote"
	MutantAckBeforeFsync        protocol.Mutant = "ack-before-fsync"
	MutantReadWithoutOwnTerm    protocol.Mutant = "read-without-own-term"
	MutantReadWithoutConfirm    protocol.Mutant = "read-without-confirm"
	MutantNoPrevCheck           protocol.Mutant = "no-prev-check"
	MutantTruncateAlways        protocol.Mutant = "truncate-always"
	MutantCommitUnverified      protocol.Mutant = "commit-unverified"
	MutantLeaseIgnoresDrift     protocol.Mutant = "lease-ignores-drift"
	MutantPromiseOfTerm         protocol.Mutant = "promise-of-term"
	MutantVoteIgnoresLog        protocol.Mutant = "vote-ignores-log"
	MutantSnapshotIgnoresCommit protocol.Mutant = "snapshot-ignores-commit"
	MutantTakeMalformed         protocol.Mutant = "take-malformed"
	MutantCodeFreeDowngrade     protocol.Mutant = "code-free-downgrade"
	MutantCodeFAnswers          protocol.Mutant = "code-f-answers"
	MutantCodeOldTermAnswers    protocol.Mutant = "code-old-term-answers"
	MutantHeedLateAnswers       protocol.Mutant = "heed-late-answers"
	MutantForgetAcknowledged    protocol.Mutant = "forget-acknowledged"
	MutantForwardAtOnce         protocol.Mutant = "forward-at-once"
	MutantStalledDiskLeads      protocol.Mutant = "stalled-disk-leads"
	MutantPromoteAtOnce         protocol.Mutant = "promote-at-once"
	MutantCountStateless        protocol.Mutant = "weave-count-stateless"
	MutantSealKeepsReads        protocol.Mutant = "seal-keeps-reads"
	MutantAppendBehindSeal      protocol.Mutant = "append-behind-seal"
	MutantClosedTakesPart       protocol.Mutant = "closed-takes-part"
)

// Clusters in which several of them are found.
var (
	coded        = mutant.Cluster{Protocol: "craft", Nodes: 5}
	mergedBodies = mutant.Cluster{Protocol: "niagara", Placement: "code", Nodes: 4}
)

// Mutants lists all of them.
var Mutants = [...]protocol.MutantInfo{
	{Name: MutantCommitOldTerm, Does: "a leader commits an earlier term's entry by counting its holders (Raft " +
		"§5.4.2, figure 8)"},
	{Name: MutantForgetVote, Does: "a vote is not made durable: after a restart a member may vote twice in a term"},
	{Name: MutantAckBeforeFsync, Does: "a follower acknowledges entries before its disk holds them"},
	{Name: MutantReadWithoutOwnTerm, Does: "a leader gives read points before an entry of its own term is committed"},
	{Name: MutantReadWithoutConfirm, Does: "a leader gives read points without asking a quorum whether it still leads"},
	{Name: MutantNoPrevCheck, Does: "a follower appends without checking the entry before (log matching)"},
	{Name: MutantTruncateAlways, Does: "a follower cuts its log at every append, also where the entries match"},
	{Name: members.MutantSingleQuorumJoint, Does: "while joint, only the incoming voters decide"},
	{Name: MutantCommitUnverified, Does: "a follower takes over the leader's commit index beyond what it knows to match"},
	{Name: MutantLeaseIgnoresDrift, Does: "a leader trusts its lease for a whole election timeout and once more, " +
		"whatever clocks do", In: mutant.Cluster{Nodes: 5}},
	{Name: members.MutantPromiseDecided, Does: "a voter promises what the last profile says that it knows to be decided"},
	{Name: members.MutantLeaseByMajority, Does: "a lease of another length counts for all members once a majority has " +
		"acknowledged its profile"},
	{Name: members.MutantLeaseAtOnce, Does: "a longer lease, and one that was switched on, counts at once"},
	{Name: members.MutantLaggardCounts, Does: "a member counts for a lease although it has none of the leader's " +
		"configurations"},
	{Name: MutantPromiseOfTerm, Does: "a member that entered a higher term without a vote forgets what it promised to " +
		"the leader of the term before", In: mutant.Cluster{Nodes: 5}},
	{Name: MutantVoteIgnoresLog, Does: "a member votes for candidates whose log is behind its own"},
	{Name: MutantSnapshotIgnoresCommit, Does: "a member installs snapshots that are behind what it committed"},
	{Name: MutantTakeMalformed, Does: "a leader appends what it is asked to without looking whether all " +
		"members can apply it"},
	{Name: code.MutantPaperPrefix, Does: "an entry that is durable is committed although a coded one before it is not " +
		"(docs/internals/craft.md, G1)", In: coded},
	{Name: MutantCodeFreeDowngrade, Does: "a member replaces a whole body by a row of it (G3)", In: coded},
	{Name: MutantCodeFAnswers, Does: "a new leader gives entries up when F members hold too little of them, itself " +
		"included", In: coded},
	{Name: code.MutantNaiveMix, Does: "a coded entry is committed by any majority that holds anything of it", In: coded},
	{Name: MutantCodeOldTermAnswers, Does: "a member tells a new leader what it holds without entering its term (G2)",
		In: coded},
	{Name: MutantForgetAcknowledged, Does: "a member that holds less than it acknowledged in the term continues " +
		"(docs/internals/identity.md)"},
	{Name: code.MutantNoRestripe,
		Does: "members change whatever becomes of the bodies that are alive (docs/internals/craft.md, 2.7)", In: coded},
	{Name: code.MutantWaitForAll, Does: "who answers and acknowledges counts as one that will soon have its row, " +
		"however far it is behind", In: coded},
	{Name: MutantHeedLateAnswers, Does: "a leader takes answers to what it gave up for answers to what it sends now"},
	{Name: MutantForwardAtOnce, Does: "a follower forwards everything that waits in one message, however long it is"},
	{Name: MutantStalledDiskLeads, Does: "a leader stays, and a member stands for election, while its disk stands still"},
	{Name: MutantCountStateless, Does: "members change although those that remain have no logs of retired instances, " +
		"and no state", In: mutant.Cluster{Protocol: "niagara", Nodes: 1}},
	{Name: code.MutantCountBehind, Does: "who does not know yet that instances are retired counts as one that holds " +
		"their bodies", In: mergedBodies},
	{Name: code.MutantLeaderBehind, Does: "a leader changes members before it knows of the bodies of instances that are " +
		"retired", In: mergedBodies},
	{Name: MutantPromoteAtOnce, Does: "a member that joins counts at once, whether it comes or not",
		In: mutant.Cluster{Nodes: 1}},
}

// staged are mutants that random runs hardly find: unit tests of package members, the model in package tunemodel and
// testdata/seal.txt have their rules. promise-newest needs a voter with a shorter profile of an earlier leader in its
// log, undecided, that acknowledges a later leader up to the place before it and votes before the later leader's
// entries replace it. With shorten-late a leader is seldom asked for reads by its lease: it steps down after the
// shorter timeout (Configs.Strict).
var staged = [...]protocol.MutantInfo{
	{Name: members.MutantShortenLate, Does: "a leader shortens its lease when the profile is decided, voters their " +
		"promise when they have it"},
	{Name: members.MutantPromiseNewest, Does: "a voter promises what the newest profile in its log says, decided or not"},
	{Name: MutantSealKeepsReads, Does: "a leader answers reads after it committed a seal"},
	{Name: MutantAppendBehindSeal, Does: "a leader appends proposals behind a seal without a verdict"},
	{Name: MutantClosedTakesPart, Does: "a member votes and acknowledges after the seal counted"},
}

func knownMutant(m protocol.Mutant) bool {
	for _, list := range [][]protocol.MutantInfo{Mutants[:], lane.Mutants[:], staged[:]} {
		if slices.ContainsFunc(list, func(i protocol.MutantInfo) bool { return i.Name == m }) {
			return true
		}
	}
	return m == ""
}
