package sim

import (
	"path"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/protocol"
)

// Bytes of a log or of a snapshot are damaged, and the member reacts. A member promises to tolerate
// two kinds of damage. One is damage to log entries that the newest snapshot stands for. The other
// is damage to the newest snapshot, as long as the log goes back to the snapshot before it. Only
// these happen here.

// faultRot: bytes of a log or a snapshot are damaged on a disk.
var faultRot = &Fault{Name: "rot", Thinned: true}

func init() {
	faultRot.Draw = (*Settings).drawRot
	faultRot.Strike = func(w *World, m *Member) { m.whenWritten(8, func() { w.rot(m) }) }
}

var recordsDamaged = count.New("records_and_snapshots_damaged", "records and snapshots damaged")

func (s *Settings) drawRot(d draw.Chance) {
	if d.Yes(0.3) {
		s.Faults[faultRot] = s.Election * time.Duration(1+d.Below(6))
	}
}

func (w *World) rot(m *Member) {
	if m.snaps == nil || m.sick() { // a checkpoint stands for nothing then
		return
	}
	if w.Chance(0.3) {
		w.rotSnapshot(m)
	} else {
		w.rotLog(m)
	}
}

// rotLog damages the record of an entry that the newest snapshot stands for.
func (w *World) rotLog(m *Member) {
	s := m.inForce[w.Among(len(m.inForce))]
	first := s.inst.Core().Status().First
	last := min(m.snapped.Point(s.instance).Index, m.applied(s.instance))
	if last < first {
		return
	}
	index := first + protocol.Index(w.Pick(int(last-first)+1))
	record, err := m.log.ReadEntry(uint32(s.instance), uint64(index))
	if err != nil || len(record) == 0 || m.writer.busy() { // the records next to it must be on the disk too
		return
	}
	at, bit := w.Pick(len(record)), byte(1)<<w.Pick(8)
	for _, image := range m.disk.Images() {
		if !image.Decay(logDir, record, at, bit) || !m.opens(image, nil, true) {
			return
		}
	}
	if !m.disk.Decay(logDir, record, at, bit) {
		return
	}
	w.Count(recordsDamaged)
	w.Tracef("FAULT the record of entry %d%s goes bad on the disk of %s", index, w.named(s.instance), m.id)
}

// rotSnapshot damages the newest snapshot, if the log goes back to the one before it.
func (w *World) rotSnapshot(m *Member) {
	all, err := m.snaps.Positions()
	if err != nil || len(all) < 2 || m.work.Saving() {
		return
	}
	// A snapshot that is not installed yet is needed undamaged: nothing else stands for it here.
	last, err := m.snaps.Open(all[len(all)-1])
	if err != nil || m.applier.Ahead(&last.Header.Meta) || m.queue.Installing() {
		return
	}
	older, err := m.snaps.Open(all[len(all)-2])
	if err != nil || m.snaps.Whole(all[len(all)-2]) != nil {
		return
	}
	names := slices.DeleteFunc(m.disk.Names(snapDir), func(name string) bool { return path.Ext(name) != ".snap" })
	newest := path.Join(snapDir, names[len(names)-1])
	for _, image := range m.disk.Images() {
		if !m.disk.Synced(newest) || !image.Has(newest) || !m.opens(image, &older.Header.Meta, false) {
			return
		}
	}
	for _, k := range m.inForce {
		if base := older.Header.Base(k.instance).Index; m.writer.busy() || k.inst.Core().Status().First > base+1 || k.asked > base {
			return // the log is cut further than the disk shows, or soon will be
		}
	}
	m.disk.Flip(newest, w.Pick(m.disk.Size(newest)), 1<<w.Pick(8))
	w.Count(recordsDamaged)
	w.Tracef("FAULT %s goes bad on the disk of %s", newest, m.id)
}
