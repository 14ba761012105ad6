package code

import "github.com/braidlog/braid/protocol"

// The mutants; raft.Mutants has their rows.
const (
	MutantPaperPrefix  protocol.Mutant = "code-paper-prefix"
	MutantNaiveMix     protocol.Mutant = "code-naive-mix"
	MutantNoRestripe   protocol.Mutant = "code-no-restripe"
	MutantWaitForAll   protocol.Mutant = "code-wait-for-all"
	MutantCountBehind  protocol.Mutant = "weave-count-behind"
	MutantLeaderBehind protocol.Mutant = "weave-leader-behind"
)
