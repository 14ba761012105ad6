package fit

import "github.com/braidlog/braid/internal/mutant"

// The mutants; Mutants says what each does.
const (
	MutantAnyVersion mutant.Name = "fit-any-version"
	MutantForgets    mutant.Name = "fit-forgets"
	MutantHasty      mutant.Name = "fit-hasty"
	MutantAnyMember  mutant.Name = "fit-member-missing"
)

// Mutants lists all of them.
var Mutants = [...]mutant.Info{
	{Name: MutantAnyVersion, Where: "Fitter",
		Does: "a wish replaces whatever profile is active, not only the one on which it was computed"},
	{Name: MutantForgets, Where: "Fitter", Does: "a new leader forgets which changes were taken back"},
	{Name: MutantHasty, Where: "Fitter", Does: "there is no wait after a change"},
	{Name: MutantAnyMember, Where: "Fitter", Does: "changes are made while a member is missing"},
}
