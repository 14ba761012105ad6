package raft

import (
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// disk is what is known about this member's own disk.
type disk struct {
	// seq numbers the steps that wrote or released something; done is the highest number
	// reported durable. done ≤ seq.
	seq, done uint64
	// touched: the step under way has its number. wrote: it wrote something.
	touched, wrote bool
	// pending are writes not reported durable, ascending in seq. Their last never points at an
	// entry that was replaced later: truncation lowers it.
	pending []write
	// durable: the disk holds the log as it is in memory up to here; ≤ last.
	durable protocol.Index
	// rewrites are bodies that are replaced, ascending in seq, and not reported durable.
	rewrites []rewrite
	// state is the seq of the last write of a term or vote.
	state uint64
	// commit is the commit index written last, and noted when a tick did so.
	commit protocol.Index
	noted  time.Duration
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

func (d *disk) begin() { d.touched, d.wrote = false, false }

// touch gives the step under way its number.
func (d *disk) touch() uint64 {
	if !d.touched {
		d.touched = true
		d.seq++
	}
	return d.seq
}

func (d *disk) end(last protocol.Index, now time.Duration) {
	if d.wrote {
		d.pending = append(d.pending, write{d.seq, last, now})
	}
}

// cut says that entries from i on are replaced.
func (d *disk) cut(i protocol.Index) {
	d.durable = min(d.durable, i-1)
	for k := range d.pending {
		d.pending[k].last = min(d.pending[k].last, i-1)
	}
	d.rewrites = slices.DeleteFunc(d.rewrites, func(w rewrite) bool { return w.index >= i })
}

// rewrite notes that the step under way replaces what is held of an entry's body.
func (d *disk) rewrite(e *protocol.Entry) {
	d.rewrites = append(d.rewrites, rewrite{d.touch(), e.Index, e.Form})
}

// holds returns in what form the disk certainly holds an entry's body.
func (d *disk) holds(e *protocol.Entry) protocol.Form {
	if e.Index > d.durable {
		return protocol.FormNone
	}
	for _, w := range d.rewrites {
		if w.index == e.Index {
			return w.form
		}
	}
	return e.Form
}

// settled is the index up to which the disk holds what memory holds.
func (d *disk) settled() protocol.Index {
	to := d.durable
	for _, w := range d.rewrites {
		to = min(to, w.index-1)
	}
	return to
}

// completed notes a completion, which may come late or twice, and reports whether more
// is durable than before.
func (d *disk) completed(seq uint64) bool {
	if seq <= d.done || seq > d.seq {
		return false
	}
	d.done = seq
	n := 0
	for n < len(d.pending) && d.pending[n].seq <= seq {
		d.durable = max(d.durable, d.pending[n].last)
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

// stateDurable reports whether term and vote are on disk.
func (d *disk) stateDurable() bool { return d.done >= d.state }

// stalled reports whether a write has been under way for longer than limit.
func (d *disk) stalled(now, limit time.Duration) bool {
	return len(d.pending) > 0 && now-d.pending[0].at > limit
}
