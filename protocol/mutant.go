package protocol

import "github.com/braidlog/braid/internal/mutant"

// Mutant names a deliberately unsafe variant of one rule of a protocol. Tests must find each of them. Production leaves
// it empty.
type Mutant = mutant.Name

// MutantInfo describes a mutant: Name, Does (its behaviour), and In, the cluster in which the simulator finds it if
// that is not the usual one.
type MutantInfo = mutant.Info
