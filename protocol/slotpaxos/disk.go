package slotpaxos

import (
	"time"

	"github.com/braidlog/braid/protocol"
)

// disk is what is known about this member's own disk.
type disk struct {
	// seq numbers the steps that wrote or released something, and written those that wrote; done is
	// the highest number reported durable. written ≤ seq, done ≤ seq.
	seq, written, done uint64
	// touched: the step under way has its number. wrote: it wrote something.
	touched, wrote bool
	pending        []write // not reported durable, ascending in seq
	// durable: the disk holds the log up to here.
	durable protocol.Index
	// state is the seq of the last write of a ballot that this member made.
	state uint64
	// commit is how many slots the disk is told to be settled, and noted when it was.
	commit protocol.Index
	noted  time.Duration
	// kept are messages of this member to itself that wait for writes, ascending in seq.
	kept []keptMessage
	// stale are the slots of cells that are on the disk although their entries are in the log.
	stale []protocol.Index
}

// write is one step's records: with them the disk holds the log up to last.
type write struct {
	seq  uint64
	last protocol.Index
	at   time.Duration
}

type keptMessage struct {
	seq uint64
	m   *protocol.Message
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

// install: the log begins anew. What was written before says nothing about it.
func (d *disk) install() {
	d.durable = 0
	for i := range d.pending {
		d.pending[i].last = 0
	}
}

// keep puts a message of this member to itself into its inbox as soon as all that was written so far
// is durable.
func (d *disk) keep(m *protocol.Message, inbox *[]*protocol.Message) {
	if d.done >= d.written {
		*inbox = append(*inbox, m)
		return
	}
	d.kept = append(d.kept, keptMessage{d.written, m})
}

// stateDurable reports whether this member's ballot is on disk.
func (d *disk) stateDurable() bool { return d.done >= d.state }

// stalled reports whether a write has been under way for longer than limit.
func (d *disk) stalled(now, limit time.Duration) bool {
	return len(d.pending) > 0 && now-d.pending[0].at > limit
}

func (s *Paxos) record(r protocol.Record) {
	d := &s.disk
	s.out.Seq = d.touch()
	d.wrote, d.written = true, d.seq
	s.out.Persist = append(s.out.Persist, r)
	for _, slot := range d.stale {
		s.out.Persist = append(s.out.Persist, protocol.Record{Kind: protocol.RecordDrop, Cell: protocol.Cell{Number: uint64(slot)}})
	}
	d.stale = nil
}

// writeState makes the ballot durable, and how many slots are decided.
func (s *Paxos) writeState() {
	s.disk.commit, s.disk.noted = s.settled(), s.now
	s.record(protocol.Record{Kind: protocol.RecordState, State: protocol.HardState{Term: protocol.Term(s.ballot), Commit: s.disk.commit}})
}

// persisted notes a completion, which may come late or twice.
func (s *Paxos) persisted(seq uint64) {
	d := &s.disk
	if seq <= d.done || seq > d.seq {
		return
	}
	d.done = seq
	for len(d.pending) > 0 && d.pending[0].seq <= seq {
		d.durable = max(d.durable, d.pending[0].last)
		d.pending = d.pending[1:]
	}
	for len(d.kept) > 0 && d.kept[0].seq <= seq {
		s.inbox = append(s.inbox, d.kept[0].m)
		d.kept = d.kept[1:]
	}
}
