package wal

// Mutant names a test-only variant of this package with one rule broken. The simulator must catch each of them. A name
// that this package does not know breaks nothing.
type Mutant string

// Mutants describes each of them.
const (
	MutantBodiesLate  Mutant = "bodies-after-log"
	MutantAnswerEarly Mutant = "answer-before-sync"
	MutantCutFirst    Mutant = "cut-before-records"
	MutantMarkEarly   Mutant = "mark-before-sync"
)

// MutantInfo describes a mutant. Where is the type that has the field Mutant.
type MutantInfo struct {
	Name        Mutant
	Where, Does string
}

// Mutants lists all mutants of this package.
var Mutants = [...]MutantInfo{
	{MutantBodiesLate, "Commits", "entries are written before the bodies that they name are durable"},
	{MutantAnswerEarly, "Commits", "records are told to be durable before they are synced"},
	{MutantCutFirst, "Commits", "a log is cut before what was submitted before the cut is written"},
	{MutantMarkEarly, "Log", "the mark says that a batch is durable before it is synced"},
}
