package replica

import (
	"cmp"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// Latency is a distribution of times.
type Latency struct {
	// Counts[i] counts the times up to LatencyBound(i) and above the bound before. The last element counts longer ones.
	Counts [latencyBounds + 1]uint64
	Sum    time.Duration
}

const (
	leastLatency  = 100 * time.Microsecond
	latencyBounds = 20
)

// LatencyBound is the upper bound of an element of Latency.Counts but the last: 100 µs, and twice as much for each next
// one.
func LatencyBound(i int) time.Duration { return leastLatency << i }

// latency counts times. It is safe for concurrent use.
type latency struct {
	counts [latencyBounds + 1]atomic.Uint64
	sum    atomic.Int64
}

func (l *latency) observe(took time.Duration) {
	took = max(took, 0)
	i := bits.Len64(uint64(max(took-1, 0) / leastLatency))
	l.counts[min(i, latencyBounds)].Add(1)
	l.sum.Add(int64(took))
}

func (l *latency) stats() (s Latency) {
	for i := range l.counts {
		s.Counts[i] = l.counts[i].Load()
	}
	s.Sum = time.Duration(l.sum.Load())
	return s
}

// StageStats is how long this member's proposals and reads were in each of their stages: proposals by batches, reads by
// groups that were answered together, Append by writes to the log.
type StageStats struct {
	// Queue: until the batch was given to the core. Append: until the log had what a core wanted on disk. Replicate:
	// from Queue until the batch was committed. Order: until the state machine began with it. Apply: until it returned.
	Queue, Append, Replicate, Order, Apply Latency
	// ReadQueue: until the core was asked. ReadConfirm: until all read indexes were known. ReadWait: until these were
	// applied.
	ReadQueue, ReadConfirm, ReadWait Latency
}

type stages struct {
	queue, append, replicate, order, apply latency
	readQueue, readConfirm, readWait       latency
}

func (s *stages) stats() StageStats {
	return StageStats{
		Queue: s.queue.stats(), Append: s.append.stats(), Replicate: s.replicate.stats(), Order: s.order.stats(),
		Apply: s.apply.stats(), ReadQueue: s.readQueue.stats(), ReadConfirm: s.readConfirm.stats(),
		ReadWait: s.readWait.stats(),
	}
}

// appending is a write to the log.
type appending struct {
	l    *eventLoop
	seq  uint64
	at   time.Duration
	none bool         // it has no records
	done atomic.Int64 // when it was durable; 0: it is not
}

// appendings are the last ones of an event loop, ascending by at.
type appendings struct {
	list    []*appending
	dropped time.Duration // at of the last one that is not in the list any more
}

// appendingsKept is how many are kept, at least.
const appendingsKept = 256

func (s *appendings) add(a *appending) {
	if len(s.list) == 2*appendingsKept {
		s.dropped = s.list[appendingsKept-1].at
		s.list = slices.Delete(s.list, 0, appendingsKept)
	}
	s.list = append(s.list, a)
}

// durable is when what the core wanted to write at some time was durable; 0: it is not, or that is not known.
func (s *appendings) durable(at time.Duration) time.Duration {
	i, _ := slices.BinarySearchFunc(s.list, at, func(a *appending, at time.Duration) int { return cmp.Compare(a.at, at) })
	if at <= s.dropped || i == len(s.list) {
		return 0
	}
	return time.Duration(s.list[i].done.Load())
}

func (l *eventLoop) submit(records []wal.Record, seq uint64) {
	a := &appending{l: l, seq: seq, at: l.r.now(), none: len(records) == 0}
	l.appendings.add(a)
	l.r.writer.Submit(records, a.wrote)
}

// wrote is called by the log's goroutine.
func (a *appending) wrote(err error) {
	if err == nil && !a.none {
		now := a.l.r.now()
		a.done.Store(int64(now))
		a.l.r.stages.append.observe(now - a.at)
	}
	a.l.wrote(a.seq, err)
}

// noteCommitted notes when batches of this member were committed.
func (l *eventLoop) noteCommitted(own []*intake.Batch) {
	if len(own) == 0 {
		return
	}
	now, s := l.r.now(), &l.r.stages
	for _, b := range own {
		b.Passed.Committed, b.Passed.Appended = now, 0
		if b.ProposedTo == l.r.opt.Self {
			b.Passed.Appended = l.appendings.durable(b.ProposedAt)
		}
		s.queue.observe(b.ProposedAt - b.Born)
		s.replicate.observe(now - b.ProposedAt)
	}
}

// begins notes when the state machine is given the first commands of a batch, and ends when it has returned.
func (r *Replica) begins(b *intake.Batch) {
	if b.Passed.Ordered == 0 {
		b.Passed.Ordered = r.now()
		r.stages.order.observe(b.Passed.Ordered - b.Passed.Committed)
	}
}

func (r *Replica) ends(b *intake.Batch) {
	if b.Passed.Applied == 0 {
		b.Passed.Applied = r.now()
		r.stages.apply.observe(b.Passed.Applied - b.Passed.Ordered)
	}
}

// served notes when a group of reads has its answer.
func (r *Replica) served(g *intake.ReadGroup, now time.Duration) {
	p := &g.Passed
	p.Served = now
	r.stages.readQueue.observe(p.Asked - p.Begun)
	r.stages.readConfirm.observe(p.Confirmed - p.Asked)
	r.stages.readWait.observe(p.Served - p.Confirmed)
}

// tell tells a caller that has a result when the stages were passed. Without one, others may still note them.
func (r *Replica) tell(w *waiter) {
	switch w.result.(type) {
	case failure, *intake.Accepted:
		return
	}
	since := func(at time.Duration) time.Duration { return max(at-w.began, 0) }
	if w.stages != nil {
		b := w.ticket.Batch.Holder()
		p := &b.Passed
		*w.stages = protocol.Stages{Proposed: since(b.ProposedAt), Appended: since(p.Appended),
			Committed: since(p.Committed), Ordered: since(p.Ordered), Applied: since(p.Applied)}
	}
	if w.readStages != nil {
		p := &w.group.Passed
		*w.readStages = protocol.ReadStages{Asked: since(p.Asked), Confirmed: since(p.Confirmed), Served: since(p.Served)}
	}
}
