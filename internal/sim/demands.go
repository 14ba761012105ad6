package sim

import (
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/node"
)

// demand is something that the second phase must bring about in bounded time, or that must hold at its end.
type demand struct {
	what string
	// of waits until it is so, and notes a violation if it is not. alive are the members that live.
	of func(w *fault.World, alive []*node.Member)
}

// demands are made one after the other, until one is violated.
var demands = []demand{
	{"damaged states are replaced", demandRepairs},
	{"each member completes a write and a read", func(w *fault.World, alive []*node.Member) { demandProgress(w, alive, true) }},
	{"instances are merged without delay", demandMerging},
	{"members that restart complete reads", demandRestarts},
	{"removed members stop", demandDepartures},
	{"members apply the last writes", demandSameState},
	{"one client alone is served without delay", demandPace},
	{"many clients are served without delay", demandBusyPace},
	{"files of released bodies are deleted", awaitTidy},
	{"members apply what clients gave up", demandSameState}, // it may have been accepted meanwhile
	{"all have the same state, and no acknowledged write is lost", demandVerdict},
}

// secondPhase is the second phase. Faults end, enough members live, and then there must be progress. At
// the end everything is judged.
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
