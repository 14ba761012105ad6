package fault

import "github.com/braidlog/braid/internal/sim/node"

var (
	faultSlowDisk = &Fault{Name: "slow-disk", Usual: true, Thinned: true,
		Does: "a disk becomes slow, or fast again"}
	faultStallDisk = &Fault{Name: "stalled-disk", Usual: true, Thinned: true, Does: "a disk stalls"}
	faultDeadSync  = &Fault{Name: "failed-sync", Usual: true, Thinned: true,
		Does: "a disk fails its syncs, until its member starts again"}
)

func init() {
	faultSlowDisk.Strike = func(w *World, m *node.Member) {
		m.Slow = !m.Slow
		w.Tracef("FAULT the disk of %s is slow: %t", m.ID, m.Slow)
	}
	faultStallDisk.Strike = func(w *World, m *node.Member) {
		m.Stalled = w.Now() + w.Between(0, 10*w.Set.Election)
		w.Tracef("FAULT the disk of %s stands still until %.6f", m.ID, m.Stalled.Seconds())
	}
	faultStallDisk.Heal = func(m *node.Member) { m.Stalled = 0 }
	faultDeadSync.Strike = func(w *World, m *node.Member) {
		m.Disk.FailSync = true
		w.Tracef("FAULT the disk of %s fails its syncs", m.ID)
	}
	faultDeadSync.Heal = func(m *node.Member) { m.Disk.FailSync = false }
}
