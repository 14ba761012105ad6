package sim

import (
	"slices"
	"strings"
	"time"
)

// Full disks: for a while no file can be given room, on one disk or on all, while what is in files
// that are there can be written again. Where the file system copies what it writes, that is not
// possible in the log and the bodies either. Nobody ends by it, and nothing is lost.

// fullStream is for the settings of full disks.
const fullStream = stream + 6

// drawFull chooses whether disks get full, with segments that are soon at their end.
func (s *Settings) drawFull(d chance) {
	if !d.yes(0.25) {
		return
	}
	s.Faults[faultFull] = s.Election * time.Duration(4+d.below(20))
	if d.yes(0.7) {
		s.SegmentBytes = 16 << 10
		s.Padding = max(s.Padding, d.limit(500, 1500, 3000))
	}
	s.CopyOnWrite = d.yes(0.4)
}

// began reports whether there ever was a log on the disk. The first one needs room.
func (d *disk) began() bool {
	return slices.ContainsFunc(d.children(logDir), func(name string) bool { return strings.HasSuffix(name, ".wal") })
}

// fillDisks makes a disk full, now and then all of them, for a while.
func (w *World) fillDisks(victim *Member) {
	full := []*Member{victim}
	if w.chance(0.3) {
		full = w.members
	}
	until := w.between(0, 15*w.set.Election)
	for _, m := range full {
		m.disk.full, m.disk.copies = true, w.set.CopyOnWrite
		w.tracef("FAULT the disk of %s is full until %.6f", m.id, (w.now + until).Seconds())
	}
	w.after(until, func() {
		for _, m := range full {
			m.disk.full = false
		}
	})
}
