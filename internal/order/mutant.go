package order

// Mutant names a deliberately unsafe variant of one rule of this package, for tests only: the
// simulator must catch each of them. A name that is not known here breaks nothing.
type Mutant string

// The mutants; Mutants says what each does.
const (
	MutantImpatient     Mutant = "weave-impatient"
	MutantReshapeAtOnce Mutant = "weave-reshape-at-once"
)

// MutantInfo describes a mutant: Where is what holds the field.
type MutantInfo struct {
	Name        Mutant
	Where, Does string
}

// Mutants lists all of them.
var Mutants = [...]MutantInfo{
	{MutantImpatient, "Niagara", "a slot that an instance has not filled is passed over when the next instance has filled its own"},
	{MutantReshapeAtOnce, "Niagara", "other instances are in force at once, not when the round is over"},
}
