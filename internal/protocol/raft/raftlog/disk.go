package raftlog

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// Disk is what is known about this member's own disk.
type Disk struct {
	// Seq numbers the steps that wrote or released something; Done is the highest number
	// reported durable. Done ≤ Seq.
	Seq, Done uint64
	// touched: the step in progress has its number. Wrote: it wrote something.
	touched, Wrote bool
	// pending are writes not reported durable, ascending in seq. Their last never points at an
	// entry that was replaced later: truncation lowers it.
	pending []write
	// Durable: the disk holds the log as it is in memory up to here; ≤ last.
	Durable protocol.Index
	// rewrites are bodies that are replaced, ascending in seq, and not reported durable.
	rewrites []rewrite
	// State is the seq of the last write of a term or vote.
	State uint64
	// Commit is the commit index written last, and Noted when a tick did so.
	Commit protocol.Index
	Noted  time.Duration
}

// write is one step's records: with them the disk holds the log up to last.
type write struct {
	seq  uint64
	last protocol.Index
	at   time.Duration
}

// rewrite is a body that is being replaced. Until that is durable the disk holds form.
type rewrite struct {
	seq   uint64
	index protocol.Index
	form  protocol.Form
}

// Begin begins a step.
func (d *Disk) Begin() { d.touched, d.Wrote = false, false }

// Touch gives the step in progress its number.
func (d *Disk) Touch() uint64 {
	if !d.touched {
		d.touched = true
		d.Seq++
	}
	return d.Seq
}

// End ends a step at now: with what it wrote the disk holds the log up to last.
func (d *Disk) End(last protocol.Index, now time.Duration) {
	if d.Wrote {
		d.pending = append(d.pending, write{d.Seq, last, now})
	}
}

// Cut indicates that entries from i on are replaced.
func (d *Disk) Cut(i protocol.Index) {
	d.Durable = min(d.Durable, i-1)
	for k := range d.pending {
		d.pending[k].last = min(d.pending[k].last, i-1)
	}
	d.rewrites = slices.DeleteFunc(d.rewrites, func(w rewrite) bool { return w.index >= i })
}

// Rewrite notes that the step in progress replaces what is held of an entry's body.
func (d *Disk) Rewrite(e *protocol.Entry) {
	d.rewrites = append(d.rewrites, rewrite{d.Touch(), e.Index, e.Form})
}

// Holds returns in what form the disk certainly holds an entry's body.
func (d *Disk) Holds(e *protocol.Entry) protocol.Form {
	if e.Index > d.Durable {
		return protocol.FormNone
	}
	for _, w := range d.rewrites {
		if w.index == e.Index {
			return w.form
		}
	}
	return e.Form
}

// Settled is the index up to which the disk holds what memory holds.
func (d *Disk) Settled() protocol.Index {
	to := d.Durable
	for _, w := range d.rewrites {
		to = min(to, w.index-1)
	}
	return to
}

// Completed notes a completion, which may arrive late or twice, and reports whether more is durable
// than before.
func (d *Disk) Completed(seq uint64) bool {
	if seq <= d.Done || seq > d.Seq {
		return false
	}
	d.Done = seq
	n := 0
	for n < len(d.pending) && d.pending[n].seq <= seq {
		d.Durable = max(d.Durable, d.pending[n].last)
		n++
	}
	if n > 0 {
		d.pending = d.pending[:copy(d.pending, d.pending[n:])]
	}
	done := 0
	for done < len(d.rewrites) && d.rewrites[done].seq <= seq {
		done++
	}
	d.rewrites = slices.Delete(d.rewrites, 0, done)
	return n > 0
}

// StateDurable reports whether term and vote are on disk.
func (d *Disk) StateDurable() bool { return d.Done >= d.State }

// Stalled reports whether a write has been in progress for longer than limit.
func (d *Disk) Stalled(now, limit time.Duration) bool {
	return len(d.pending) > 0 && now-d.pending[0].at > limit
}

// Check verifies the invariants; last is the end of the log, and commit what is committed of it.
func (d *Disk) Check(last, commit protocol.Index) error {
	if d.Durable > last || d.Done > d.Seq || d.State > d.Seq || d.Commit > commit {
		return fmt.Errorf("disk: durable %d of %d, done %d, state %d of %d, commit %d", d.Durable, last, d.Done, d.State,
			d.Seq, d.Commit)
	}
	for i, w := range d.pending {
		if w.seq <= d.Done || w.seq > d.Seq || w.last > last || i > 0 && w.seq <= d.pending[i-1].seq {
			return fmt.Errorf("disk: pending %+v, done %d of %d, last %d", w, d.Done, d.Seq, last)
		}
	}
	for i, w := range d.rewrites {
		if w.seq <= d.Done || w.index > last || i > 0 && w.seq < d.rewrites[i-1].seq {
			return fmt.Errorf("disk: rewrites %+v, done %d, last %d", d.rewrites, d.Done, last)
		}
	}
	return nil
}
