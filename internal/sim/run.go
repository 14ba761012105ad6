package sim

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/fault"
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
	Events     count.Counts  // the number of events of each kind
	// Violation is nil if there was none.
	Violation *world.Violation
	// abandoned: the run ended early, because it did not matter any more.
	abandoned bool
}

// linkFaults are faults of links on single messages. It is a kind of fault for Options.Without.
const linkFaults = "links"

// Run runs one simulated cluster: first with faults, then without them. Then it judges the end.
func Run(o fault.Options) (res Result) {
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
	w.Pointless = o.Pointless
	beginRun(w)
	w.Run(w.Set.Chaos)
	secondPhase(w)
	return res
}

// open creates the world of the options.
func open(o fault.Options) *fault.World {
	rng := fault.RunChance.Of(o.Seed).Rand
	set := fault.DrawSettings(&o, rng)
	for _, name := range o.Without {
		if name == linkFaults {
			set.PerfectLinks()
		}
		delete(set.Faults, fault.Named(name))
	}
	var t *world.Trace
	if o.Trace != nil {
		t = world.NewTrace(o.Trace)
		t.Line("seed %d: %s", o.Seed, &set)
	}
	return fault.New(set, rng, t)
}

// beginRun starts members, clients and faults.
func beginRun(w *fault.World) {
	fault.BeginBorn(w)
	fault.BeginNamesakes(w)
	for _, m := range w.Members {
		m.SetRate(fault.WrongRate(w))
		m.Offset = time.Duration(w.Pick(1 << 40))
		w.StartLater(m, w.Between(0, w.Set.Election))
	}
	w.Clients.Open()
	w.OpenFaults()
	fault.BeginApart(w)
}

func resultOf(w *fault.World) Result {
	r := Result{Seed: w.Set.Seed, Hash: w.Hash, Steps: w.Steps, Messages: w.Messages, Operations: len(w.History.Ops),
		Acked: w.History.Acked, Virtual: w.Now(), Events: w.Events, Violation: w.Broken}
	if w.Out != nil {
		if w.Broken != nil {
			w.Out.Line("VIOLATION %v", w.Broken)
		}
		if err := w.Out.Flush(); err != nil && w.Broken == nil {
			r.Violation = &world.Violation{Seed: w.Set.Seed, Err: err}
		}
	}
	return r
}
