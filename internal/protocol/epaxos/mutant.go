package epaxos

import (
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
)

// The mutants.
const (
	MutantOneBallot   protocol.Mutant = "epaxos-one-ballot"
	MutantMerge       protocol.Mutant = "epaxos-merge"
	MutantDropDeps    protocol.Mutant = "epaxos-drop-deps"
	MutantSmallFast   protocol.Mutant = "epaxos-small-fast-quorum"
	MutantUnchecked   protocol.Mutant = "epaxos-unchecked"
	MutantAnyProposer protocol.Mutant = "epaxos-any-proposer"
	MutantInexact     protocol.Mutant = "epaxos-inexact"
	MutantOnlyDecided protocol.Mutant = "epaxos-only-decided"
	MutantReadAlone   protocol.Mutant = "epaxos-read-alone"
	MutantAnswerEarly protocol.Mutant = "epaxos-answer-early"
	MutantTellEarly   protocol.Mutant = "epaxos-tell-early"
	MutantReuse       protocol.Mutant = "epaxos-reuse-number"
	MutantForgetUsed  protocol.Mutant = "epaxos-forget-reserved"
	MutantGiveEarly   protocol.Mutant = "epaxos-give-early"
	MutantTornClass   protocol.Mutant = "epaxos-torn-class"
	MutantTellAnybody protocol.Mutant = "epaxos-tell-anybody"
	MutantSayUnused   protocol.Mutant = "epaxos-say-unused"
	MutantMeetAlone   protocol.Mutant = "epaxos-meet-alone"
	MutantEagerNoop   protocol.Mutant = "epaxos-eager-noop"
	MutantForgetWide  protocol.Mutant = "epaxos-forget-wide"
)

// Mutants are those that the simulator finds. The first six break rules, and clusters of parts find them too.
var Mutants = [...]protocol.MutantInfo{
	{Name: MutantOneBallot, Does: "a promise says that what was accepted was so under the ballot promised last",
		In: mutant.Cluster{Seeds: 4000}},
	{Name: MutantMerge, Does: "a recovery unites the answers of members that preaccepted with other dependencies"},
	{Name: MutantDropDeps, Does: "a recovery proposes a command without its dependencies"},
	{Name: MutantSmallFast, Does: "a fast quorum has one member less"},
	{Name: MutantUnchecked, Does: "members that validate a command report no contradictions",
		In: mutant.Cluster{Nodes: 5}},
	{Name: MutantAnyProposer, Does: "a recovery takes no notice of the proposer's answer"},
	{Name: MutantReadAlone, Does: "a member serves reads without asking others"},
	{Name: MutantAnswerEarly, Does: "members answer before what they say is on the disk"},
	{Name: MutantTellEarly, Does: "a proposer tells a decision before it is on its disk"},
	{Name: MutantReuse, Does: "a proposer sends a command before its number is on the disk, or reserved there"},
	{Name: MutantForgetUsed, Does: "a later life does not begin behind the numbers that were reserved"},
	{Name: MutantGiveEarly, Does: "commands are handed over before the disk has their place"},
	{Name: MutantTellAnybody, Does: "a member executes what it is told, whatever it had when it asked",
		In: mutant.Cluster{Seeds: 8000}},
	{Name: MutantSayUnused, Does: "a member tells others of numbers that are not on its disk"},
	{Name: MutantMeetAlone, Does: "a member's snapshots stand anywhere in its log"},
	{Name: MutantEagerNoop, Does: "no-ops are executed though nothing depends on them"},
	{Name: MutantForgetWide, Does: "the counts of a wide entry are in the cell of the entry before it",
		In: mutant.Cluster{Nodes: 9}},
}

const ruleMutants = 6 // the first ones of Mutants

// PartMutants are those that the simulator does not find within some hundred seeds. Clusters of parts find the first
// two: a recovery that waits permanently for another one, or for nothing, needs more concurrent recoveries than a
// whole cluster has, whose members also restart with higher ballots. disk_test.go finds the third.
var PartMutants = [...]protocol.MutantInfo{
	{Name: MutantInexact, Does: "a recovery concludes nothing from proposers that did not answer"},
	{Name: MutantOnlyDecided, Does: "a recovery waits for nothing that contradicts and is not decided"},
	{Name: MutantTornClass, Does: "what a step wrote of a class counts though the step is not all on the disk"},
}
