package scale

import (
	"time"

	"github.com/braidlog/braid/wal"
)

// disk is a member's log writer, as wal.Writer. One sync covers what all instances submitted while
// the sync before it ran.
type disk struct {
	m       *node
	thread  *thread
	queue   []job
	batch   []job // being written
	bytes   int   // bytes of batch
	syncing bool
}

// job is the records of one turn of an instance.
type job struct {
	loop           *loop
	seq            uint64
	records, bytes int
}

// recordHead is the bytes of a record on disk besides its parts.
const recordHead = 32

func newJob(l *loop, seq uint64, records []wal.Record) job {
	j := job{loop: l, seq: seq, records: len(records)}
	for i := range records {
		j.bytes += recordHead + len(records[i].Parts[0]) + len(records[i].Parts[1])
	}
	return j
}

func newDisk(m *node) *disk {
	d := &disk{m: m}
	d.thread = m.cpu.thread("disk", d.work, d.finish)
	return d
}

func (d *disk) submit(jobs []job) {
	d.queue = append(d.queue, jobs...)
	if !d.syncing {
		d.thread.wake()
	}
}

func (d *disk) work() (cost spend) {
	if d.syncing || len(d.queue) == 0 {
		return 0
	}
	d.batch, d.queue = d.queue, d.batch[:0]
	d.syncing, d.bytes = true, 0
	records := 0
	for i := range d.batch {
		records += d.batch[i].records
		d.bytes += d.batch[i].bytes
	}
	cost.on(d.m.w.costs.Record, records, d.bytes)
	cost.on(d.m.w.costs.Sync, 0, 0)
	return cost
}

// finish waits for the disk. The processor's part is over.
func (d *disk) finish() {
	if len(d.batch) == 0 {
		return
	}
	w := d.m.w
	steps := w.costs.Disk
	if w.cfg.Shared && w.cfg.Nodes > 1 {
		steps = w.costs.DiskShared
	}
	took := draw(w.rng, steps) - w.cfg.Costs.Sync.Once + w.costs.DiskByte*float64(d.bytes)
	w.after(time.Duration(max(0, took)), d.done)
}

func (d *disk) done() {
	w := d.m.w
	w.tally.syncs += w.one()
	for i := range d.batch {
		j := &d.batch[i]
		j.loop.durable = max(j.loop.durable, j.seq)
		j.loop.thread.wake()
	}
	d.batch, d.syncing = d.batch[:0], false
	if len(d.queue) > 0 {
		d.thread.wake()
	}
}
