package scale

import (
	"math"
	"slices"
	"time"
)

// load is the program on a member that takes commands. It is a thread that submits commands to the member when they
// are due, and counts the results.
type load struct {
	m      *node
	thread *thread
	// interval is the time between two commands, in nanoseconds; 0: only Inflight limits them.
	interval float64
	inflight int // maximal
	origin   time.Duration
	due      int64    // commands that were submitted or dropped
	under    int      // commands that are not applied on this member yet; ≤ inflight
	next     group    // submitted at the end of the turn
	answered []*offer // with commands that were applied since the last turn of the apply thread
}

// group has commands that were due at even intervals from first to last.
type group struct {
	n           int
	first, last time.Duration
}

// part returns a range of the commands of a group.
func (g group) part(from, to int) group {
	step := float64(g.last-g.first) / float64(max(1, g.n-1))
	at := func(i int) time.Duration { return g.first + time.Duration(float64(i)*step) }
	return group{to - from, at(from), at(to - 1)}
}

// offer is a group that was submitted to a member. Its commands count as applied in their order. If the real order is
// different, that exchanges latencies of commands in the same turn.
type offer struct {
	group
	applied, noted int // noted ≤ applied ≤ n
}

const (
	// loadTurn is the maximal number of commands that the load submits in one turn.
	loadTurn = 256
	// loadPause is the minimal sleep of the load if nothing is due.
	loadPause = 25 * time.Microsecond
)

// newLoad returns one of several loads. With a rate they take turns, each with a share of it.
func newLoad(m *node, cpu *machine, rate float64, inflight, turn, of int) *load {
	l := &load{m: m, inflight: (inflight + of - 1) / of, origin: m.w.now}
	if rate > 0 {
		l.interval = float64(time.Second) / rate * float64(of)
		l.origin += time.Duration(l.interval * float64(turn) / float64(of))
	}
	l.thread = cpu.thread("load", l.work, l.finish)
	return l
}

func (l *load) dueAt(i int64) time.Duration {
	return l.origin + time.Duration(float64(i)*l.interval)
}

// work takes the commands that are due now.
func (l *load) work() spend {
	now, room := l.m.w.now, int64(l.inflight-l.under)
	if l.interval == 0 {
		l.next = group{int(min(room, loadTurn)), now, now}
	} else {
		due := int64(math.Floor(float64(now-l.origin)/l.interval)) + 1 - l.due
		n := max(0, min(due, room, loadTurn))
		l.next = group{int(n), l.dueAt(l.due), l.dueAt(l.due + n - 1)}
		l.due += n
		if n == room {
			l.drop(due - n)
		}
	}
	l.under += l.next.n
	c, batches := l.m.w.costs.Submit, 0
	if l.m.w.keyed() {
		c = l.m.w.costs.Keyed
	}
	if most := l.m.w.cfg.MaxBatchCommands; most > 0 {
		batches = (l.next.n + most - 1) / most
	}
	return spend(c.Once*float64(batches) + c.Each*float64(l.next.n))
}

// drop drops commands that exceed the limit when they are due.
func (l *load) drop(n int64) {
	l.due += max(0, n)
	if l.m.w.counts() {
		l.m.w.tally.dropped += max(0, n)
	}
}

func (l *load) finish() {
	w := l.m.w
	l.offer(l.next)
	switch {
	case l.interval == 0:
		if l.under < l.inflight {
			l.thread.wake()
		}
	case l.dueAt(l.due) <= w.now:
		l.thread.wake()
	default:
		w.after(max(loadPause, l.dueAt(l.due)-w.now), l.thread.wake)
	}
}

// offer submits commands to the member.
func (l *load) offer(g group) {
	o := &offer{group: g}
	done := func(_ any, err error) {
		l.m.w.note(err)
		if o.applied == o.noted {
			l.answered = append(l.answered, o)
		}
		o.applied++
	}
	for range g.n {
		l.m.propose(l.m.w.command, done)
	}
}

// applied counts the results.
func (l *load) applied() {
	w := l.m.w
	before := l.under
	for _, o := range l.answered {
		g := o.part(o.noted, o.applied)
		o.noted = o.applied
		l.under -= g.n
		w.came += int64(g.n)
		if w.counts() {
			w.tally.commands += int64(g.n)
			w.tally.note(g, w.now)
		}
	}
	clear(l.answered)
	l.answered = l.answered[:0]
	// If the limit was reached, the load waits until an eighth of it is free.
	if few := l.inflight - max(1, l.inflight/8); l.interval == 0 && before > few && l.under <= few {
		l.thread.wake()
	}
}

// tally has the counters of the measured time.
type tally struct {
	commands, dropped               int64
	batches, skips, syncs, messages int64
	bytes                           int64 // of messages
	// latencies[i] counts latencies from 2^(i/16) nanoseconds up to the next bucket.
	latencies [latencyBuckets]int64
}

const (
	latencySteps   = 16 // in each doubling
	latencyBuckets = 40 * latencySteps
	noteParts      = 8
)

// note counts the latencies of a group with results at a given time.
func (t *tally) note(g group, at time.Duration) {
	parts := min(g.n, noteParts)
	for i := range parts {
		n := g.n*(i+1)/parts - g.n*i/parts
		due := g.first + (g.last-g.first)*time.Duration(2*i+1)/time.Duration(2*parts)
		bucket := int(latencySteps * math.Log2(max(1, float64(at-due))))
		t.latencies[min(bucket, latencyBuckets-1)] += int64(n)
	}
}

// quantile returns the latency that this share of the commands did not exceed; 0 without commands.
func (t *tally) quantile(q float64) time.Duration {
	left := int64(math.Ceil(q * float64(t.commands)))
	i := slices.IndexFunc(t.latencies[:], func(n int64) bool {
		left -= n
		return left <= 0
	})
	if t.commands == 0 || i < 0 {
		return 0
	}
	return time.Duration(math.Exp2((float64(i) + 0.5) / latencySteps))
}
