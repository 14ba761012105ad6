package raft

// Mutant names a deliberately unsafe variant of one rule. Tests must catch each of them.
// Production leaves it empty.
type Mutant string

// The mutants.
const (
	MutantCommitOldTerm         Mutant = "commit-old-term"
	MutantForgetVote            Mutant = "forget-vote"
	MutantAckBeforeFsync        Mutant = "ack-before-fsync"
	MutantReadWithoutOwnTerm    Mutant = "read-without-own-term"
	MutantReadWithoutConfirm    Mutant = "read-without-confirm"
	MutantNoPrevCheck           Mutant = "no-prev-check"
	MutantTruncateAlways        Mutant = "truncate-always"
	MutantSingleQuorumJoint     Mutant = "single-quorum-joint"
	MutantCommitUnverified      Mutant = "commit-unverified"
	MutantLeaseIgnoresDrift     Mutant = "lease-ignores-drift"
	MutantVoteIgnoresLog        Mutant = "vote-ignores-log"
	MutantSnapshotIgnoresCommit Mutant = "snapshot-ignores-commit"
	MutantTakeMalformed         Mutant = "take-malformed"
	MutantCodePaperPrefix       Mutant = "code-paper-prefix"
	MutantCodeFreeDowngrade     Mutant = "code-free-downgrade"
	MutantCodeFAnswers          Mutant = "code-f-answers"
	MutantCodeNaiveMix          Mutant = "code-naive-mix"
	MutantCodeOldTermAnswers    Mutant = "code-old-term-answers"
	MutantCodeNoRestripe        Mutant = "code-no-restripe"
	MutantCodeWaitForAll        Mutant = "code-wait-for-all"
	MutantHeedLateAnswers       Mutant = "heed-late-answers"
	MutantForgetAcknowledged    Mutant = "forget-acknowledged"
	MutantForwardAtOnce         Mutant = "forward-at-once"
	MutantStalledDiskLeads      Mutant = "stalled-disk-leads"
	MutantPromoteAtOnce         Mutant = "promote-at-once"
	MutantCountStateless        Mutant = "weave-count-stateless"
)

// MutantInfo describes a mutant.
type MutantInfo struct {
	Name Mutant
	Does string
}

// Mutants lists all of them.
var Mutants = [...]MutantInfo{
	{MutantCommitOldTerm, "a leader commits an earlier term's entry by counting its holders (Raft §5.4.2, figure 8)"},
	{MutantForgetVote, "a vote is not made durable: after a restart a member may vote twice in a term"},
	{MutantAckBeforeFsync, "a follower acknowledges entries before its disk holds them"},
	{MutantReadWithoutOwnTerm, "a leader gives read points before an entry of its own term is committed"},
	{MutantReadWithoutConfirm, "a leader gives read points without asking a quorum whether it still leads"},
	{MutantNoPrevCheck, "a follower appends without checking the entry before (log matching)"},
	{MutantTruncateAlways, "a follower cuts its log at every append, also where the entries match"},
	{MutantSingleQuorumJoint, "while joint, only the incoming voters decide"},
	{MutantCommitUnverified, "a follower takes over the leader's commit index beyond what it knows to match"},
	{MutantLeaseIgnoresDrift, "a leader trusts its lease for a whole election timeout and once more, whatever clocks do"},
	{MutantVoteIgnoresLog, "a member votes for candidates whose log is behind its own"},
	{MutantSnapshotIgnoresCommit, "a member installs snapshots that are behind what it committed"},
	{MutantTakeMalformed, "a leader appends what it is asked to without looking whether all members can apply it"},
	{MutantCodePaperPrefix, "an entry that is durable is committed although a coded one before it is not (docs/craft.md, G1)"},
	{MutantCodeFreeDowngrade, "a member replaces a whole body by a row of it (G3)"},
	{MutantCodeFAnswers, "a new leader gives entries up when F members hold too little of them, itself included"},
	{MutantCodeNaiveMix, "a coded entry is committed by any majority that holds anything of it"},
	{MutantCodeOldTermAnswers, "a member tells a new leader what it holds without entering its term (G2)"},
	{MutantForgetAcknowledged, "a member goes on that holds less than it acknowledged in the term (docs/identity.md)"},
	{MutantCodeNoRestripe, "members change whatever becomes of the bodies that are alive (docs/craft.md, 2.7)"},
	{MutantCodeWaitForAll, "who answers and acknowledges counts as one that will soon have its row, however far it is behind"},
	{MutantHeedLateAnswers, "a leader takes answers to what it gave up for answers to what it sends now"},
	{MutantForwardAtOnce, "a follower forwards everything that waits in one message, however long it is"},
	{MutantStalledDiskLeads, "a leader stays, and a member stands for election, while its disk stands still"},
	{MutantCountStateless, "members change although those that remain have no logs of retired instances, and no state"},
	{MutantPromoteAtOnce, "a member that joins counts at once, whether it comes or not"},
}

func knownMutant(m Mutant) bool {
	for i := range Mutants {
		if Mutants[i].Name == m {
			return true
		}
	}
	return m == ""
}
