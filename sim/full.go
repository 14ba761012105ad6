package sim

import (
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Full disks: for a while no space can be allocated on one disk or on all, but what is freed. When
// a member has started, others have taken what it freed. Bytes in files that
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

// used is how many bytes of space the files take.
func (d *disk) used() (bytes int) {
	for _, n := range d.names { // any order: a sum
		bytes += n.space()
	}
	return bytes
}

func (n *inode) space() int { return max(n.held, len(n.data)) }

// grow reports whether a file may have so many bytes.
func (d *disk) grow(f *file, op string, bytes int) error {
	if more := bytes - f.n.space(); d.full && more > 0 && d.used()+more > d.capacity {
		return &os.PathError{Op: op, Path: f.name, Err: syscall.ENOSPC}
	}
	return nil
}

// ballast reports whether the disk has the space that a start on a full disk needs.
func (d *disk) ballast() bool {
	n := d.names[path.Join(dataDir, "ballast")]
	return n != nil && n.space() > 0
}

// began reports whether the disk has a log. The first segment needs space.
func (d *disk) began() bool {
	return slices.ContainsFunc(d.children(logDir), func(name string) bool { return strings.HasSuffix(name, ".wal") })
}

// keptBallast takes in why there is no space for the next start, if so. On a full disk others take the
// rest.
func (m *Member) keptBallast(err error) error {
	if errors.Is(err, errPower) {
		return err
	} else if err != nil {
		m.w.tracef("%s   has no space for its next start: %v", m.id, err)
	}
	if m.disk.full {
		m.w.events.FullStarts++
		m.disk.capacity = m.disk.used()
	}
	return nil
}

// fillDisks makes one disk full for a while, or sometimes all of them.
func (w *World) fillDisks(victim *Member) {
	full := []*Member{victim}
	if w.chance(0.3) {
		full = w.members
	}
	until := w.between(0, 15*w.set.Election)
	for _, m := range full {
		m.disk.full, m.disk.copies, m.disk.capacity = true, w.set.CopyOnWrite, m.disk.used()
		w.tracef("FAULT the disk of %s is full until %.6f", m.id, (w.now + until).Seconds())
	}
	w.after(until, func() {
		for _, m := range full {
			m.disk.full = false
		}
	})
}
