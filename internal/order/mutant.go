package order

import "github.com/braidlog/braid/internal/mutant"

// The mutants; Mutants describes them.
const (
	MutantImpatient     mutant.Name = "weave-impatient"
	MutantReshapeAtOnce mutant.Name = "weave-reshape-at-once"
	MutantGrowLate      mutant.Name = "weave-grow-late"
	MutantNumberAgain   mutant.Name = "seal-number-again"
	MutantSealPassed    mutant.Name = "seal-passed-early"
)

// The cluster in which several of them are found.
var inNiagara = mutant.Cluster{Protocol: "niagara"}

// Mutants lists all of them.
var Mutants = [...]mutant.Info{
	{Name: MutantImpatient, Where: "Niagara",
		Does: "a slot that an instance has not filled is passed over when the next instance has filled its own",
		In:   inNiagara},
	{Name: MutantReshapeAtOnce, Where: "Niagara", Does: "other instances are in force at once, not when the round is over",
		In: inNiagara},
	{Name: MutantGrowLate, Where: "Niagara",
		Does: "entries that were committed with the change have their places before a log of one instance gets others",
		In:   mutant.Cluster{Instances: 1}},
	{Name: MutantNumberAgain, Where: "Niagara",
		Does: "instances behind a seal have the numbers of those that ended, if these began behind a seal too"},
	{Name: MutantSealPassed, Where: "Niagara", Does: "a seal is passed before everything up to its place is there",
		In: mutant.Cluster{Protocol: "iss"}},
}
