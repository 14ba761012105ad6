package fault

import (
	"path"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Damage to bytes of a log or of a snapshot. A member promises to tolerate two kinds of it. One is damage to log
// entries that the newest snapshot covers. The other is damage to the newest snapshot, as long as the log reaches
// back to the snapshot before it. Only these happen here.

var faultRot = &Fault{Name: "rot", Thinned: true, Does: "bytes of a log or a snapshot are damaged on a disk"}

func init() {
	faultRot.Draw = (*Settings).drawRot
	faultRot.Strike = func(w *World, m *node.Member) { m.WhenWritten(8, func() { rotFile(w, m) }) }
}

// RecordsDamaged counts damaged records and snapshots.
var RecordsDamaged = count.New("records_and_snapshots_damaged", "records and snapshots damaged")

func (s *Settings) drawRot(d draw.Chance) {
	if d.Yes(0.3) {
		s.Faults[faultRot] = s.Election * time.Duration(1+d.Below(6))
	}
}

func rotFile(w *World, m *node.Member) {
	if m.Snaps == nil || m.Sick() { // a checkpoint covers nothing then
		return
	}
	if w.Chance(0.3) {
		RotSnapshot(w, m)
	} else {
		rotLog(w, m)
	}
}

// rotLog damages the record of an entry that the newest snapshot covers.
func rotLog(w *World, m *node.Member) {
	s := m.InForce[w.Among(len(m.InForce))]
	first := s.Inst.Core().Status().First
	last := min(m.Snapped.Point(s.Instance).Index, m.Applied(s.Instance))
	if last < first {
		return
	}
	index := first + protocol.Index(w.Pick(int(last-first)+1))
	record, err := m.Log.ReadEntry(uint32(s.Instance), uint64(index))
	if err != nil || len(record) == 0 || m.Writer.Busy() { // the records next to it must be on the disk too
		return
	}
	at, bit := w.Pick(len(record)), byte(1)<<w.Pick(8)
	for _, image := range m.Disk.Images() {
		if !image.Decay(node.LogDir, record, at, bit) || !m.Opens(image, nil, true) {
			return
		}
	}
	if !m.Disk.Decay(node.LogDir, record, at, bit) {
		return
	}
	w.Count(RecordsDamaged)
	w.Tracef("FAULT the record of entry %d%s goes bad on the disk of %s", index, w.Named(s.Instance), m.ID)
}

// RotSnapshot damages the newest snapshot, if the log reaches back to the one before it.
func RotSnapshot(w *World, m *node.Member) {
	all, err := m.Snaps.Positions()
	if err != nil || len(all) < 2 || m.Work.Saving() {
		return
	}
	// A snapshot that is not installed yet must stay undamaged: nothing else covers its entries here.
	last, err := m.Snaps.Open(all[len(all)-1])
	if err != nil || m.Applier.Ahead(&last.Header.Meta) || m.Queue.Installing() {
		return
	}
	older, err := m.Snaps.Open(all[len(all)-2])
	if err != nil || m.Snaps.Whole(all[len(all)-2]) != nil {
		return
	}
	names := slices.DeleteFunc(m.Disk.Names(node.SnapDir), func(name string) bool { return path.Ext(name) != ".snap" })
	newest := path.Join(node.SnapDir, names[len(names)-1])
	for _, image := range m.Disk.Images() {
		if !m.Disk.Synced(newest) || !image.Has(newest) || !m.Opens(image, &older.Header.Meta, false) {
			return
		}
	}
	// Behind the older snapshot, instances begin again that are retired now. A start has given up their logs if the
	// newest snapshot knows that.
	for _, id := range older.Header.Cursor.Instances() {
		if m.Log.Floor(uint32(id)) > uint64(older.Header.Base(id).Index) {
			return
		}
	}
	for _, k := range slices.Concat(m.InForce, m.Retired) {
		if older.Header.Cursor.Retired(k.Instance) {
			continue
		}
		if base := older.Header.Base(k.Instance).Index; m.Writer.Busy() ||
			k.Inst.Core().Status().First > base+1 || k.Asked > base {
			return // the log is compacted further than the disk shows, or soon will be
		}
	}
	m.Disk.Flip(newest, w.Pick(m.Disk.Size(newest)), 1<<w.Pick(8))
	w.Count(RecordsDamaged)
	w.Tracef("FAULT %s goes bad on the disk of %s", newest, m.ID)
}
