package wal

// Mutant names a deliberately unsafe variant of one rule of this package, for tests alone: the
// simulator must catch each of them. A name that is not known here breaks nothing.
type Mutant string

// The mutants; Mutants says what each does.
const (
	MutantBodiesLate  Mutant = "bodies-after-log"
	MutantAnswerEarly Mutant = "answer-before-sync"
	MutantCutFirst    Mutant = "cut-before-records"
	MutantMarkEarly   Mutant = "mark-before-sync"
)

// MutantInfo describes a mutant: Where is what holds the field.
type MutantInfo struct {
	Name        Mutant
	Where, Does string
}

// Mutants lists all of them.
var Mutants = [...]MutantInfo{
	{MutantBodiesLate, "Commits", "entries are written before the bodies that they name are durable"},
	{MutantAnswerEarly, "Commits", "records are told to be durable before they are synced"},
	{MutantCutFirst, "Commits", "a log is cut before what was submitted before the cut is written"},
	{MutantMarkEarly, "Log", "the mark says that a batch is durable before it is synced"},
}
