package fault

import (
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
)

// Full disks: for a while one disk, or all disks, have no free space except what their members free. When a member
// has started, other processes have taken the space that it freed. Bytes in existing files can still be overwritten.
// On a copy-on-write file system, the log and the bodies cannot be overwritten either. No member stops because of a
// full disk, and nothing is lost.
//
// Or other processes leave about as much space as the member itself reports that it needs. Then members refuse writes
// of clients before the disk is full, as a server does.

var faultFull = &Fault{Name: "full-disk", Thinned: true, Does: "one disk is full, or all are"}

func init() {
	faultFull.Draw = (*Settings).drawFull
	faultFull.Strike = fillDisks
	faultFull.Heal = func(m *node.Member) { m.Disk.Full = false }
}

// drawFull draws whether disks get full. Then segments are mostly small, so that new ones are needed soon.
func (s *Settings) drawFull(d draw.Chance) {
	if !d.Yes(0.25) {
		return
	}
	s.Faults[faultFull] = s.Election * time.Duration(4+d.Below(20))
	if d.Yes(0.7) {
		s.SegmentBytes = 16 << 10
		s.Padding = max(s.Padding, d.Limit(500, 1500, 3000))
	}
	s.CopyOnWrite = d.Yes(0.4)
	if d.Yes(0.6) {
		s.Shortage = 0.3 + 0.7*d.Share()
		s.Faults[faultFull] = s.Election * time.Duration(2+d.Below(6))
		s.SegmentBytes, s.Padding, s.BatchCommands = 8<<10, 500+d.Below(1000), 1 // some writes fill a file
	}
}

// fillDisks makes one disk full for a while, or sometimes all of them.
func fillDisks(w *World, victim *node.Member) {
	full := []*node.Member{victim}
	if w.Chance(0.3) {
		full = w.Members
	}
	until, short := w.Between(0, 15*w.Set.Election), w.Set.Shortage > 0 && w.Chance(w.Set.Shortage)
	for _, m := range full {
		m.Disk.Full, m.Disk.Capacity, m.Disk.CopyOnWrite, m.Short = true, m.Disk.Used(), nil, node.Shortage{}
		if w.Set.CopyOnWrite && !short {
			m.Disk.CopyOnWrite = []string{node.LogDir, node.BodyDir}
		}
		if m.Up && short {
			m.Short.Of = m.Disk
			m.Disk.Capacity += int(m.Need()) + w.Pick(2)*w.Pick(int(w.Set.SegmentBytes))
		}
		w.Tracef("FAULT the disk of %s is full until %.6f", m.ID, (w.Now() + until).Seconds())
	}
	w.After(until, func() {
		for _, m := range full {
			m.Disk.Full = false
		}
	})
}
