package scale

import (
	"time"

	"github.com/braidlog/braid/internal/member/damage"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
)

// disk is a member's log writer. [wal.Commits] decides which records one sync covers. The log is in memory, so that
// its steps take only the billed time. An idle log is not sealed.
type disk struct {
	m      *node
	thread *thread
	log    *wal.Log
	steps  *wal.Commits

	records int   // waiting
	syncing bool  // the disk is busy, or will be at the end of the turn
	bytes   int64 // in the current sync
}

func newDisk(m *node) (*disk, error) {
	log, err := wal.Open(wal.Options{FS: memory{vfs.NewMem()}, Dir: "log", Identity: []byte("scale"), SegmentBytes: damage.SegmentBytes(snapshotBytes)})
	if err != nil {
		return nil, err
	}
	d := &disk{m: m, log: log, steps: wal.NewCommits(log, nil, atOnce)}
	d.thread = m.cpu.thread("disk", d.work, d.finish)
	return d, nil
}

// atOnce is a wal.Background.
func atOnce(do func()) (wait func()) {
	do()
	return func() {}
}

// submit queues the log work of a turn of an instance.
func (d *disk) submit(l *loop, work *logWork) {
	if work.cut > 0 {
		d.steps.Compact(uint32(l.instance), uint64(work.cut))
	} else {
		seq := work.seq
		d.steps.Submit(work.records, func(err error) { l.wrote(seq, err) })
		d.records += len(work.records)
	}
	if !d.syncing {
		d.thread.wake()
	}
}

// work runs the steps before a sync.
func (d *disk) work() (cost spend) {
	c := &d.m.w.costs
	for !d.syncing && d.steps.Gather() {
		if jobs, _ := d.steps.Queued(); jobs == 0 && d.records > 0 { // they are in the sync now
			d.bytes = d.steps.Stats().PendingBytes
			cost.on(c.Record, d.records, int(d.bytes))
			d.records = 0
		}
		if d.syncing = d.steps.Syncs(); d.syncing {
			cost.on(c.Sync, 0, 0)
			return cost
		}
		d.steps.Step()
	}
	return cost
}

// finish waits for the disk. The CPU's part is over.
func (d *disk) finish() {
	if !d.syncing {
		return
	}
	w := d.m.w
	steps := w.costs.Disk
	if w.cfg.Shared && w.cfg.Nodes > 1 {
		steps = w.costs.DiskShared
	}
	took := draw(w.rng, steps) - w.cfg.Costs.Sync.Once + w.costs.DiskByte*float64(d.bytes)
	w.after(time.Duration(max(0, took)), d.synced)
}

// synced continues after the sync, and notifies the waiting instances.
func (d *disk) synced() {
	w := d.m.w
	w.tally.syncs += w.one()
	d.steps.Step()
	for d.steps.Busy() && !d.steps.Syncs() {
		d.steps.Step()
	}
	d.syncing = false
	if jobs, _ := d.steps.Queued(); jobs > 0 || d.steps.Busy() {
		d.thread.wake()
	}
}
