package sim

import (
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/node"
)

// demand is a property that the second phase must reach in bounded time, or that must hold at its end.
type demand struct {
	what string
	// of waits until the property holds, and records a violation if it does not. alive are the members that are up.
	of func(w *fault.World, alive []*node.Member)
}

// demands are checked one after the other, until one is violated.
var demands = []demand{
	{"damaged states are replaced", demandRepairs},
	{"each member completes a write and a read", func(w *fault.World, alive []*node.Member) { demandProgress(w, alive, true) }},
	{"instances are merged without delay", demandMerging},
	{"members that restart complete reads", demandRestarts},
	{"removed members stop", demandDepartures},
	{"members apply the last writes", demandSameState},
	{"one client alone is served without delay", demandPace},
	{"many clients are served without delay", demandBusyPace},
	{"drained members lead nothing", demandDrained},
	{"files of released bodies are deleted", awaitTidy},
	{"members apply what clients gave up", demandSameState}, // it may have been accepted meanwhile
	{"all have the same state, and no acknowledged write is lost", demandVerdict},
}

// secondPhase is the second phase. Faults end, enough members are up, and then there must be progress. At the end
// everything is judged.
func secondPhase(w *fault.World) {
	if w.Broken != nil {
		return
	}
	alive := calmDown(w)
	for _, d := range demands {
		if w.Broken != nil {
			return
		}
		w.Tracef("DEMAND %s", d.what)
		d.of(w, alive)
	}
}
