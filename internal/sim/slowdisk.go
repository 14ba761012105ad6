package sim

func (w *World) hurtDisk(k faultKind, m *Member) {
	switch k {
	case faultSlowDisk:
		m.slow = !m.slow
		w.Tracef("FAULT the disk of %s is slow: %t", m.id, m.slow)
	case faultStallDisk:
		m.stalled = w.Now() + w.Between(0, 10*w.set.Election)
		w.Tracef("FAULT the disk of %s stands still until %.6f", m.id, m.stalled.Seconds())
	case faultDeadSync:
		m.disk.FailSync = true
		w.Tracef("FAULT the disk of %s fails its syncs", m.id)
	}
}
