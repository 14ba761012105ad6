package wal

import "github.com/braidlog/braid/internal/mutant"

// Mutants describes each of them.
const (
	MutantBodiesLate  mutant.Name = "bodies-after-log"
	MutantAnswerEarly mutant.Name = "answer-before-sync"
	MutantCutFirst    mutant.Name = "cut-before-records"
	MutantMarkEarly   mutant.Name = "mark-before-sync"
)

// Mutants lists all mutants of this package.
var Mutants = [...]mutant.Info{
	{Name: MutantBodiesLate, Where: "Commits", Does: "entries are written before the bodies that they name are durable"},
	{Name: MutantAnswerEarly, Where: "Commits", Does: "records are told to be durable before they are synced"},
	{Name: MutantCutFirst, Where: "Commits", Does: "a log is cut before what was submitted before the cut is written"},
	{Name: MutantMarkEarly, Where: "Log", Does: "the mark says that a batch is durable before it is synced"},
}
