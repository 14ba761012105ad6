package fault

import (
	"github.com/braidlog/braid/internal/sim/node"
)

// Ticked implements node.Observer: it checks the state of the member.
func (w *World) Ticked(m *node.Member) {
	m.CellBytes = max(m.CellBytes, m.Log.CellBytes())
	config := m.Applier.Config()
	if !config.Joint() && len(config.Removed) > 0 && m.Settled() {
		retire(w, config.Removed)
	}
	for _, s := range m.InForce {
		s.Judge()
	}
}
