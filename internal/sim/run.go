package sim

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/world"
)

// Result is the outcome of a run.
type Result struct {
	Seed       uint64
	Hash       uint64 // equal for equal runs
	Steps      int
	Messages   int
	Operations int           // that clients began
	Acked      int           // writes that were acknowledged
	Virtual    time.Duration // simulated time
	Events     count.Counts  // what happened, and how often
	// Violation is nil if everything was as it must be.
	Violation *world.Violation
	// abandoned: the run ended early, because it did not matter any more.
	abandoned bool
}

// linkFaults turns off what links do to single messages. It is a kind of fault for Options.Without.
const linkFaults = "links"

// Run runs one simulated cluster: first with faults, then without them. Then it judges the end.
func Run(o Options) (res Result) {
	w := open(o)
	defer func() {
		p := recover()
		_, pointless := p.(world.Abandoned)
		if p != nil && !pointless {
			w.Violate(0, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
		res = resultOf(w)
		res.abandoned = pointless
	}()
	w.Pointless = o.pointless
	beginRun(w)
	w.Run(w.set.Chaos)
	secondPhase(w)
	return res
}

// open makes the world that the options describe.
func open(o Options) *World {
	rng := runChance.Of(o.Seed).Rand
	set := drawSettings(&o, rng)
	for _, name := range o.Without {
		if name == linkFaults {
			set.perfectLinks()
		}
		delete(set.Faults, faultNamed(name))
	}
	var t *world.Trace
	if o.Trace != nil {
		t = world.NewTrace(o.Trace)
		t.Line("seed %d: %s", o.Seed, &set)
	}
	return newWorld(set, rng, t)
}

// beginRun starts members, clients and faults.
func beginRun(w *World) {
	beginBorn(w)
	beginNamesakes(w)
	for _, m := range w.Members {
		m.SetRate(wrongRate(w))
		m.Offset = time.Duration(w.Pick(1 << 40))
		w.startLater(m, w.Between(0, w.set.Election))
	}
	w.clients.Open()
	w.openFaults()
	beginApart(w)
}

func resultOf(w *World) Result {
	r := Result{Seed: w.set.Seed, Hash: w.Hash, Steps: w.Steps, Messages: w.Messages, Operations: len(w.History.Ops),
		Acked: w.History.Acked, Virtual: w.Now(), Events: w.Events, Violation: w.Broken}
	if w.Out != nil {
		if w.Broken != nil {
			w.Out.Line("VIOLATION %v", w.Broken)
		}
		if err := w.Out.Flush(); err != nil && w.Broken == nil {
			r.Violation = &world.Violation{Seed: w.set.Seed, Err: err}
		}
	}
	return r
}
