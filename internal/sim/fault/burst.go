package fault

import "github.com/braidlog/braid/internal/sim/node"

var faultBurst = &Fault{Name: "burst", Usual: true, Thinned: true, Does: "many messages are lost for a while"}

func init() {
	faultBurst.Strike = func(w *World, _ *node.Member) {
		w.burst = w.Rand.Float64()
		w.Tracef("FAULT %.0f%% of all messages are lost", 100*w.burst)
		w.After(w.Between(0, 3*w.Set.Election), func() { w.burst = 0 })
	}
	faultBurst.End = func(w *World) { w.burst = 0 }
}
