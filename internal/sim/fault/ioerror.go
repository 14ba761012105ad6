package fault

import (
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
)

// Disks that sometimes fail an operation: a read, a write, an open, a directory listing, a rename. The member
// continues, or it stops and starts again, perhaps on a disk that still fails. Nothing may be lost: data that cannot
// be read at the moment still exists.

var faultIO = &Fault{Name: "io-error", Thinned: true, Does: "a disk fails an operation"}

func init() {
	faultIO.Draw = (*Settings).drawIO
	faultIO.Strike = failOperation
	faultIO.Heal = func(m *node.Member) { m.Disk.FailAt = 0 }
}

var stoppedByIOErrors = count.New("members_stopped_by_io_errors", "stopped by I/O errors")

// drawIO draws whether disks fail operations.
func (s *Settings) drawIO(d draw.Chance) {
	if d.Yes(0.2) {
		s.Faults[faultIO] = s.Election * time.Duration(2+d.Below(12))
	}
}

// failOperation lets one of the next operations of a disk fail. Sometimes the member restarts first.
func failOperation(w *World, m *node.Member) {
	if w.Chance(0.4) {
		w.Tracef("FAULT %s loses power", m.ID)
		m.Crash()
		w.StartLater(m, w.Between(0, w.Set.Election))
	}
	m.Disk.FailAt = 1 + w.Pick([...]int{10, 60, 300}[w.Pick(3)])
	w.Tracef("FAULT the disk of %s fails its operation number %d", m.ID, m.Disk.FailAt)
}
