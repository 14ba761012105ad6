package slots

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/protocol"
)

// Disk tracks a member's own disk.
type Disk struct {
	// Seq numbers the steps that wrote or released something, and Written those that wrote; Done is
	// the highest number reported durable. Written ≤ Seq, Done ≤ Seq.
	Seq, Written, Done uint64
	// touched: the current step has its number. wrote: it wrote something.
	touched, wrote bool
	pending        []write // not reported durable, ascending in seq
	// Durable is the durable state.
	Durable Extent
}

// Extent is how much of an instance a disk has: the log up to Last, and what was accepted under a ballot up to Reach.
type Extent struct {
	Last, Reach protocol.Index
	Under       Ballot
}

// write is the records of one step: once they are durable, the disk has that extent.
type write struct {
	seq    uint64
	extent Extent
	at     time.Duration
}

// Begin starts a step.
func (d *Disk) Begin() { d.touched, d.wrote = false, false }

// Touch gives the current step its number.
func (d *Disk) Touch() uint64 {
	if !d.touched {
		d.touched = true
		d.Seq++
	}
	return d.Seq
}

// Record adds a record to the writes of the current step.
func (d *Disk) Record(out *protocol.Effects, r protocol.Record) {
	out.Seq = d.Touch()
	d.wrote, d.Written = true, d.Seq
	out.Persist = append(out.Persist, r)
}

// Wrote reports whether the current step has written something.
func (d *Disk) Wrote() bool { return d.wrote }

// End ends a step: once everything written is durable, the disk has that extent.
func (d *Disk) End(extent Extent, now time.Duration) {
	if d.wrote {
		d.pending = append(d.pending, write{d.Seq, extent, now})
	}
}

// Install starts the log again. Earlier writes do not count for it.
func (d *Disk) Install() {
	d.Durable = Extent{}
	for i := range d.pending {
		d.pending[i].extent = Extent{}
	}
}

// Completed records a completion, which may arrive late or twice, and reports whether it is new.
func (d *Disk) Completed(seq uint64) bool {
	if seq <= d.Done || seq > d.Seq {
		return false
	}
	d.Done = seq
	n := 0
	for n < len(d.pending) && d.pending[n].seq <= seq {
		e := d.pending[n].extent
		e.Last = max(e.Last, d.Durable.Last)
		if e.Under == d.Durable.Under {
			e.Reach = max(e.Reach, d.Durable.Reach)
		}
		d.Durable = e
		n++
	}
	d.pending = d.pending[:copy(d.pending, d.pending[n:])]
	return true
}

// Stalled reports whether a write has been in progress for longer than limit.
func (d *Disk) Stalled(now, limit time.Duration) bool {
	return len(d.pending) > 0 && now-d.pending[0].at > limit
}

// Check verifies the invariants; last is the end of the log in memory.
func (d *Disk) Check(last protocol.Index) error {
	if d.Durable.Last > last || d.Done > d.Seq || d.Written > d.Seq {
		return fmt.Errorf("disk: durable %d of %d, done %d, written %d of %d", d.Durable.Last, last, d.Done, d.Written, d.Seq)
	}
	for i, w := range d.pending {
		if w.seq <= d.Done || w.seq > d.Seq || w.extent.Last > last || i > 0 && w.seq <= d.pending[i-1].seq {
			return fmt.Errorf("disk: pending %+v, done %d of %d", w, d.Done, d.Seq)
		}
	}
	return nil
}
