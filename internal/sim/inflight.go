package sim

import ()

// ticked implements observer: it judges what the member holds and does.
func (w *World) ticked(m *Member) {
	m.cellBytes = max(m.cellBytes, m.log.CellBytes())
	config := m.applier.Config()
	if !config.Joint() && len(config.Removed) > 0 && m.settled() {
		w.retire(config.Removed)
	}
	for _, s := range m.inForce {
		s.judge()
	}
}
