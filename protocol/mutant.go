package protocol

import "github.com/braidlog/braid/protocol/setting"

// Mutant names a deliberately unsafe variant of one rule of a protocol. Tests must catch each of
// them. Production leaves it empty.
type Mutant string

// MutantInfo describes a mutant.
type MutantInfo struct {
	Name Mutant
	Does string
	// Nodes and Settings are those of clusters in which it is found, if not in the usual ones; 0: these.
	Nodes    int
	Settings setting.Values
}
