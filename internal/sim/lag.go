package sim

import "github.com/braidlog/braid/internal/sim/node"

// faultLag: a member applies nothing for a while.
var faultLag = &Fault{Name: "lag", Thinned: true}

func init() {
	faultLag.Strike = (*World).lag
	faultLag.Heal = func(m *node.Member) { m.Lagging = 0 }
}

// lag lets a member apply nothing for a while.
func (w *World) lag(m *node.Member) {
	m.Lagging = w.Now() + w.still(6*w.set.Election)
	w.Tracef("FAULT %s applies nothing until %.6f", m.ID, m.Lagging.Seconds())
}
