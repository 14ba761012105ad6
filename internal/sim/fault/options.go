package fault

import (
	"io"

	"github.com/braidlog/braid/protocol/setting"
)

// Options are the parameters of a run.
type Options struct {
	Seed  uint64
	Nodes int // voters at the beginning, 1 … 9
	// Protocol is one of the registry's ("": raft). Placement is its placement of values ("": the protocol's own).
	Protocol, Placement string
	// Order is the kind of order of the instances' entries ("": the protocol's own). Instances is the number of
	// instances.
	Order     string
	Instances int
	// Own are the protocol's own settings.
	Own setting.Values
	// Mutant is the rule to break on purpose; "": none.
	Mutant string
	// Net is the latency between members, as in the flag --net; "": the seed draws it.
	Net string
	// Without turns off kinds of faults (see Names), to find the relevant ones.
	Without []string
	// Trace, if set, receives the trace of the run.
	Trace io.Writer
	// Pointless, if set, is called from time to time. If it returns true, the result is no longer needed, and the run is
	// abandoned.
	Pointless func() bool
}
