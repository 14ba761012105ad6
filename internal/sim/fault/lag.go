package fault

import "github.com/braidlog/braid/internal/sim/node"

var faultLag = &Fault{Name: "lag", Thinned: true, Does: "a member applies nothing for a while"}

func init() {
	faultLag.Strike = lagBehind
	faultLag.Heal = func(m *node.Member) { m.Lagging = 0 }
}

// lagBehind lets a member apply nothing for a while.
func lagBehind(w *World, m *node.Member) {
	m.Lagging = w.Now() + stillFor(w, 6*w.Set.Election)
	w.Tracef("FAULT %s applies nothing until %.6f", m.ID, m.Lagging.Seconds())
}
