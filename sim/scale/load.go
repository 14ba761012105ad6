package scale

import (
	"math"
	"slices"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
)

// load is the program on a member that takes commands. It is a thread that gives commands to the
// member when they are due, and counts the results.
type load struct {
	m      *node
	thread *thread
	// interval is the time between two commands, in nanoseconds; 0: as many commands as Inflight
	// allows.
	interval float64
	inflight int // at most
	origin   time.Duration
	due      int64 // commands that were given to the member or dropped
	under    int   // commands that are not applied here yet; ≤ inflight
	next     group // given to the member at the end of the turn
}

// group is commands that were due at even intervals from first to last.
type group struct {
	n           int
	first, last time.Duration
}

const (
	// loadTurn is how many commands the load gives to the member in one turn, at most.
	loadTurn = 256
	// loadPause is how long the load sleeps at least if nothing is due.
	loadPause = 25 * time.Microsecond
)

func newLoad(m *node, cpu *machine, rate float64, inflight int) *load {
	l := &load{m: m, inflight: inflight, origin: m.w.now}
	if rate > 0 {
		l.interval = float64(time.Second) / rate
	}
	l.thread = cpu.thread("load", l.work, l.finish)
	return l
}

func (l *load) dueAt(i int64) time.Duration {
	return l.origin + time.Duration(float64(i)*l.interval)
}

// work takes the commands that are due now.
func (l *load) work() (cost spend) {
	now, room := l.m.w.now, int64(l.inflight-l.under)
	if l.interval == 0 {
		l.next = group{int(min(room, loadTurn)), now, now}
	} else {
		due := int64(float64(now-l.origin)/l.interval) + 1 - l.due
		n := max(0, min(due, room, loadTurn))
		l.next = group{int(n), l.dueAt(l.due), l.dueAt(l.due + n - 1)}
		l.due += n
		if n == room {
			l.drop(due - n)
		}
	}
	l.under += l.next.n
	cost.on(l.m.w.costs.Submit, l.next.n, 0)
	return cost
}

// drop drops commands that are due beyond the limit.
func (l *load) drop(n int64) {
	l.due += max(0, n)
	if l.m.w.counts() {
		l.m.w.tally.dropped += max(0, n)
	}
}

func (l *load) finish() {
	w := l.m.w
	if l.next.n > 0 {
		l.m.proposer.add(l.next)
		l.m.route()
	}
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

// applied notes that groups of commands have their results.
func (l *load) applied(groups []group) {
	w := l.m.w
	before := l.under
	for _, g := range groups {
		l.under -= g.n
		if w.counts() {
			w.tally.commands += int64(g.n)
			w.tally.note(g, w.now)
		}
	}
	// If the limit was reached, the load waits until an eighth of it is free.
	if few := l.inflight - max(1, l.inflight/8); l.interval == 0 && before > few && l.under <= few {
		l.thread.wake()
	}
}

// proposer puts a member's commands into batches, as member.Proposals does.
type proposer struct {
	m    *node
	full fifo[*bundle]
	open *bundle
}

// bundle is the commands of a batch.
type bundle struct {
	groups   []group
	commands int
	bytes    int
}

func (p *proposer) add(g group) {
	cfg := &p.m.w.cfg
	each := len(protocol.AppendCommand(nil, p.m.w.command()))
	most := cfg.MaxBatchBytes / each
	if cfg.MaxBatchCommands > 0 {
		most = min(most, cfg.MaxBatchCommands)
	}
	step := float64(g.last-g.first) / float64(max(1, g.n-1))
	for done := 0; done < g.n; {
		if p.open == nil {
			p.open = &bundle{}
		}
		n := min(g.n-done, most-p.open.commands)
		part := group{n, g.first + time.Duration(float64(done)*step), g.first + time.Duration(float64(done+n-1)*step)}
		p.open.groups = append(p.open.groups, part)
		p.open.commands += n
		p.open.bytes += n * each
		done += n
		if p.open.commands == most {
			p.full.push(p.open)
			p.open = nil
		}
	}
}

// waiting is as that of member.Proposals: the next batch's bytes, or 0 if there is none, and
// whether the batch is full.
func (p *proposer) waiting() (bytes int, full bool) {
	switch {
	case p.full.len() > 0:
		return p.full.items[p.full.head].bytes, true
	case p.open != nil:
		return p.open.bytes, false
	}
	return 0, false
}

func (p *proposer) take() *bundle {
	if p.full.len() > 0 {
		return p.full.pop()
	}
	b := p.open
	p.open = nil
	return b
}

// batch makes the batch that is proposed for a bundle. All commands are equal, so batches share
// their payload.
func (w *world) batch(b *bundle) *member.Batch {
	batch := member.NewBatch(w.now, 0, 0)
	for len(w.encoded) < b.bytes {
		w.encoded = protocol.AppendCommand(w.encoded, w.command())
	}
	batch.Entry.Payload, batch.Entry.Count = w.encoded[:b.bytes:b.bytes], uint32(b.commands)
	return batch
}

func (w *world) command() []byte {
	if len(w.zeros) < w.cfg.Payload {
		w.zeros = make([]byte, w.cfg.Payload)
	}
	return w.zeros[:w.cfg.Payload]
}

// tally counts in the time that counts.
type tally struct {
	commands, dropped               int64
	batches, skips, syncs, messages int64
	// latencies[i] counts latencies from 2^(i/16) nanoseconds up to the next bucket.
	latencies [latencyBuckets]int64
}

const (
	latencySteps   = 16 // in each doubling
	latencyBuckets = 40 * latencySteps
	noteParts      = 8
)

// note counts the latencies of a group whose results came at a given time.
func (t *tally) note(g group, at time.Duration) {
	parts := min(g.n, noteParts)
	for i := range parts {
		n := g.n*(i+1)/parts - g.n*i/parts
		due := g.first + (g.last-g.first)*time.Duration(2*i+1)/time.Duration(2*parts)
		bucket := int(latencySteps * math.Log2(max(1, float64(at-due))))
		t.latencies[min(bucket, latencyBuckets-1)] += int64(n)
	}
}

// quantile is the latency that this share of the commands did not exceed; 0 if there were none.
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
