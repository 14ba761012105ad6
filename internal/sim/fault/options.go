package fault

import (
	"io"

	"github.com/braidlog/braid/protocol/setting"
)

// Options says which world to run.
type Options struct {
	Seed  uint64
	Nodes int // voters at the beginning, 1 … 9
	// Protocol is one of the registry's ("": raft). Placement is where it puts values ("": the
	// protocol's own).
	Protocol, Placement string
	// Order is how instances make one log ("": the protocol's own). Instances is how many there
	// are.
	Order     string
	Instances int
	// Own are the protocol's own settings.
	Own setting.Values
	// Mutant is a rule that is broken on purpose; "": none.
	Mutant string
	// Net says how long the way between members is, as the flag --net; "": the seed draws it.
	Net string
	// Without turns off kinds of faults (see FaultKinds), to find out which ones matter.
	Without []string
	// Trace, if set, receives the whole conversation.
	Trace io.Writer
	// Pointless, if set, is asked now and then whether the run still matters to anybody. If not, it is abandoned.
	Pointless func() bool
}
