package slotpaxos

import (
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
)

// The mutants.
const (
	MutantAcceptBelowPromise protocol.Mutant = "slot-accept-below-promise"
	MutantPromiseForgets     protocol.Mutant = "slot-promise-forgets"
	MutantAnswerEarly        protocol.Mutant = "slot-answer-early"
	MutantOwnValue           protocol.Mutant = "slot-own-value"
	MutantBallotReused       protocol.Mutant = "slot-ballot-reused"
	MutantReadAlone          protocol.Mutant = "slot-read-alone"
	MutantSettleAtOnce       protocol.Mutant = "slot-settle-at-once"
	MutantNamedByBallot      protocol.Mutant = "slot-named-by-ballot"
	MutantBodyAssumed        protocol.Mutant = "slot-body-assumed"
	MutantChangeLosesBodies  protocol.Mutant = "slot-change-loses-bodies"
	MutantAcceptedByOne      protocol.Mutant = "slot-accepted-by-one"
)

// Mutants lists all of them.
var Mutants = [...]protocol.MutantInfo{
	{Name: MutantAcceptBelowPromise, Does: "an acceptor accepts an entry under a ballot below the one that it promised",
		In: mutant.Cluster{Nodes: 4}},
	{Name: MutantPromiseForgets, Does: "a promise does not say what the acceptor has accepted in the slot"},
	{Name: MutantAnswerEarly, Does: "an acceptor answers before its cell is durable"},
	{Name: MutantOwnValue, Does: "a proposer proposes an entry of its own although promises report an accepted one"},
	{Name: MutantBallotReused, Does: "a member speaks under a ballot before that is durable, and may use it twice"},
	{Name: MutantReadAlone, Does: "a member gives read points without asking a quorum"},
	{Name: MutantAcceptedByOne, Does: "a command counts as accepted as soon as one acceptor holds it"},
	{Name: MutantSettleAtOnce, Does: "a configuration is handed over as committed before its own voters have it"},
	{Name: MutantNamedByBallot, Does: "an entry that is proposed again, and its body, are named after the new ballot"},
	{Name: MutantBodyAssumed,
		Does: "an acceptor takes the body of what it accepts to be the one that it holds of an earlier ballot",
		In:   mutant.Cluster{Nodes: 5}},
	{Name: MutantChangeLosesBodies, Does: "the membership changes although the new voters lack bodies",
		In: mutant.Cluster{Nodes: 1}},
}
