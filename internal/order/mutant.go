package order

import "github.com/braidlog/braid/internal/mutant"

// The mutants; Mutants describes them.
const (
	MutantImpatient     mutant.Name = "weave-impatient"
	MutantReshapeAtOnce mutant.Name = "weave-reshape-at-once"
	MutantGrowLate      mutant.Name = "weave-grow-late"
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
}
