package protocol

// Mutant names a deliberately unsafe variant of one rule of a protocol. Tests must catch each of
// them. Production leaves it empty.
type Mutant string

// MutantInfo describes a mutant.
type MutantInfo struct {
	Name Mutant
	Does string
}
