package sim

import (
	"slices"
	"strings"
	"time"
)

// Full disks: for a while no space can be allocated on one disk or on all. Bytes in files that
// exist can still be overwritten. On a file system that copies what it writes, the log and the
// bodies cannot be overwritten either. No member stops because of it, and nothing is lost.

// fullStream is for the settings of full disks.
const fullStream = stream + 6

// drawFull chooses whether disks get full. Then segments are mostly small, so that new ones are
// needed soon.
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

// began reports whether the disk has a log. The first segment needs space.
func (d *disk) began() bool {
	return slices.ContainsFunc(d.children(logDir), func(name string) bool { return strings.HasSuffix(name, ".wal") })
}

// fillDisks makes one disk full for a while, or sometimes all of them.
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
