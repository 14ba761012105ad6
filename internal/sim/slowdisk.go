package sim

var (
	// faultSlowDisk: a disk becomes slow, or is slow no more.
	faultSlowDisk = &Fault{Name: "slow-disk", Usual: true, Thinned: true}
	// faultStallDisk: a disk stands still.
	faultStallDisk = &Fault{Name: "stalled-disk", Usual: true, Thinned: true}
	// faultDeadSync: a disk fails its syncs, until its member starts again.
	faultDeadSync = &Fault{Name: "failed-sync", Usual: true, Thinned: true}
)

func init() {
	faultSlowDisk.Strike = func(w *World, m *Member) {
		m.slow = !m.slow
		w.Tracef("FAULT the disk of %s is slow: %t", m.id, m.slow)
	}
	faultStallDisk.Strike = func(w *World, m *Member) {
		m.stalled = w.Now() + w.Between(0, 10*w.set.Election)
		w.Tracef("FAULT the disk of %s stands still until %.6f", m.id, m.stalled.Seconds())
	}
	faultStallDisk.Heal = func(m *Member) { m.stalled = 0 }
	faultDeadSync.Strike = func(w *World, m *Member) {
		m.disk.FailSync = true
		w.Tracef("FAULT the disk of %s fails its syncs", m.id)
	}
	faultDeadSync.Heal = func(m *Member) { m.disk.FailSync = false }
}
