package fit

import (
	"time"

	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
)

// Fitter decides, with patience, which change to make. The zero value is ready. It is a pure rule; not safe for
// concurrent use.
type Fitter struct {
	Patience Patience
	// Weigh, if set, may replace what the model says of each candidate, the active one first, before the best one is
	// chosen: Throughput and Excluded. The simulator sets it, to try changes that no load asks for.
	Weigh func(v *View, costs []Cost)
	// Mutant is a rule to break on purpose.
	Mutant mutant.Name
}

// Patience are the times of a fitter. Those that are 0 have their defaults.
type Patience struct {
	Lasts  time.Duration // for how long a gain lasts without a break before the change is made; 10 s
	Waits  time.Duration // after a change: until it is measured, and another one may be made; 30 s
	Avoids time.Duration // for how long what was taken back is not tried again, the first time; 10 min
}

// Step takes in what is known now. It is called once a second on the member that leads the global log; a member that
// begins to lead begins with a new Fitter.
func (f *Fitter) Step(v *View) Decision { return Decision{} }

// Stands reports whether a wish may still be carried out under the active profile: only under the one on which it was
// computed, so that no other change is undone unseen.
func (f *Fitter) Stands(w *Wish, active *protocol.Profile) bool {
	return w.Version == active.Version || f.Mutant == MutantAnyVersion
}
