package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Load describes the commands of a run. Exactly one of four modes holds:
//
//   - Idle: there are none.
//   - Proposers > 0: a closed loop; each proposer waits for its command before the next.
//   - Rate > 0: an open loop at a fixed rate; latency counts from the instant at which a
//     command was due, so a system that stalls cannot hide it (no coordinated omission).
//   - otherwise: an open window of Inflight commands.
type Load struct {
	Idle      bool    `json:",omitempty"`
	Payload   int     // bytes of a command, at least MinPayload
	Inflight  int     // commands in flight at most; not for a closed loop
	Proposers int     // goroutines of a closed loop
	Rate      float64 // commands per second of an open loop
	Warmup    time.Duration
	Duration  time.Duration
}

const (
	// windowSenders is the number of goroutines that fill an open window.
	windowSenders = 4
	// stallTimeout is the time without a completion after which a run is aborted.
	stallTimeout = 30 * time.Second
	// refusalPause is the wait of a sender after a refusal.
	refusalPause = time.Millisecond
	// sampleStride is the distance of commands whose latency is measured, with a window so large that reading the clock
	// twice for each command would affect the result.
	sampleStride = 8
	// sampleFrom is the window from which on latencies are sampled.
	sampleFrom = 4096
)

// Validate returns an error that says what is wrong with the load.
func (l *Load) Validate() error {
	switch {
	case l.Payload < MinPayload:
		return fmt.Errorf("payload of %d bytes: at least %d are needed, to tell the commands apart", l.Payload,
			MinPayload)
	case l.Duration <= 0:
		return fmt.Errorf("duration %v: must be positive", l.Duration)
	case l.Warmup < 0:
		return fmt.Errorf("warm-up %v: must not be negative", l.Warmup)
	case l.Idle && (l.Inflight != 0 || l.Proposers != 0 || l.Rate != 0):
		return errors.New("an idle cluster has no commands: give neither inflight nor proposers nor a rate")
	case l.Proposers < 0 || l.Proposers > maxSenders:
		return fmt.Errorf("%d proposers: must be between 1 and %d", l.Proposers, maxSenders)
	case l.Rate < 0 || math.IsNaN(l.Rate) || math.IsInf(l.Rate, 0):
		return fmt.Errorf("rate %v: must be positive", l.Rate)
	case l.Proposers > 0 && l.Rate > 0:
		return errors.New("proposers form a closed loop and a rate an open one: give one of the two")
	case l.Proposers > 0 && l.Inflight > 0:
		return errors.New("proposers have one command each in flight: give either proposers or inflight")
	case !l.Idle && l.Proposers == 0 && l.Inflight < 1:
		return fmt.Errorf("%d in flight: must be at least 1", l.Inflight)
	case l.pendingBytes() > maxPending:
		return fmt.Errorf("%d commands of %d bytes in flight are %d MiB: at most %d MiB", l.concurrency(), l.Payload,
			l.pendingBytes()>>20, maxPending>>20)
	}
	return nil
}

// maxPending bounds the commands in flight: every member holds a copy of each.
const maxPending = 1 << 30

// concurrency is the maximal number of commands in flight.
func (l *Load) concurrency() int { return max(l.Inflight, l.Proposers) }

func (l *Load) pendingBytes() int { return l.concurrency() * l.Payload }

// senders is the number of senders of the load.
func (l *Load) senders() int {
	if l.Proposers > 0 {
		return l.Proposers
	}
	return min(windowSenders, l.Inflight)
}

// Mode names the mode, for reports.
func (l *Load) Mode() string {
	switch {
	case l.Idle:
		return "idle"
	case l.Proposers > 0:
		return "closed"
	case l.Rate > 0:
		return "rate"
	default:
		return "window"
	}
}

// stride is the distance of commands whose latency is measured.
func (l *Load) stride() uint64 {
	if l.Mode() == "window" && l.Inflight >= sampleFrom {
		return sampleStride
	}
	return 1
}

// generator runs a Load on a cluster.
type generator struct {
	load    Load
	cluster Cluster
	origin  time.Time
	random  []byte // source of payloads
	stop    atomic.Bool
	// from and to bound the measured time, in ns since origin.
	from, to atomic.Int64
	senders  []*sender
	// shards are the histograms of a closed loop, whose senders are too many for one each.
	shards shardedHistogram
	wg     sync.WaitGroup
	errs   []error // of each sender
}

// sender is one goroutine of the load, with its commands and their outcomes.
type sender struct {
	g       *generator
	id      int
	command []byte // the buffer of the next command
	seq     uint64 // of the next command; all below it were sent
	// unknown are commands that may or may not take effect: they failed, or were not answered before the run ended.
	unknown []uint64
	hist    *hdrhistogram.Histogram

	completed atomic.Int64 // commands answered, also with an error
	failed    atomic.Int64 // commands answered with an error
	refused   atomic.Int64 // attempts that were refused at once, and repeated
	lastError atomic.Pointer[error]
}

func newGenerator(c Cluster, l Load) *generator {
	g := &generator{load: l, cluster: c, origin: time.Now(), random: make([]byte, l.Payload)}
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(g.random)
	g.from.Store(math.MaxInt64)
	g.to.Store(math.MaxInt64)
	n := l.senders()
	g.errs = make([]error, n)
	for i := range n {
		s := &sender{g: g, id: i, command: append([]byte(nil), g.random...)}
		if l.Proposers == 0 {
			s.hist = newHistogram()
		}
		g.senders = append(g.senders, s)
	}
	return g
}

// now is the time since the generator began, in nanoseconds; never 0.
func (g *generator) now() int64 { return int64(time.Since(g.origin)) + 1 }

// start starts the senders.
func (g *generator) start(ctx context.Context) {
	for i, s := range g.senders {
		g.wg.Go(func() {
			if g.load.Proposers > 0 {
				g.errs[i] = s.closedLoop(ctx)
			} else {
				g.errs[i] = newWindow(s, i).run(ctx)
			}
		})
	}
}

// finish ends the load and waits until all commands in flight are answered or abandoned.
func (g *generator) finish() error {
	g.stop.Store(true)
	g.wg.Wait()
	return errors.Join(g.errs...)
}

// progress sums up the senders' counters.
func (g *generator) progress() (completed, failed, refused int64) {
	for _, s := range g.senders {
		failed += s.failed.Load()
		completed += s.completed.Load()
		refused += s.refused.Load()
	}
	return completed, failed, refused
}

// latencies merges the histograms. It may be called after finish only.
func (g *generator) latencies() *hdrhistogram.Histogram {
	all := g.shards.merged()
	for _, s := range g.senders {
		if s.hist != nil {
			all.Merge(s.hist)
		}
	}
	return all
}

// errorSample returns one of the errors that commands failed with, or nil.
func (g *generator) errorSample() error {
	for _, s := range g.senders {
		if err := s.lastError.Load(); err != nil {
			return *err
		}
	}
	return nil
}

// next writes the sender's next command into its buffer.
func (s *sender) next() []byte {
	putIdentity(s.command, s.id, s.seq)
	return s.command
}

// note keeps an error for the report. It is separate so that its caller's err need not escape.
//
//go:noinline
func (s *sender) note(err error) { s.lastError.Store(&err) }

// measured reports whether a completion at a given time belongs to the measurement.
func (g *generator) measured(end int64) bool { return end >= g.from.Load() && end <= g.to.Load() }

// closedLoop sends commands one after the other.
func (s *sender) closedLoop(ctx context.Context) error {
	g := s.g
	p := requestLimit{parent: ctx, limit: stallTimeout}
	defer p.end()
	for !g.stop.Load() {
		command := s.next()
		start := g.now()
		err := g.cluster.Propose(p.at(start), command)
		end := g.now()
		if err != nil {
			s.unknown = append(s.unknown, s.seq)
			s.note(p.explain(err))
			s.failed.Add(1)
		}
		s.seq++
		s.completed.Add(1)
		if err != nil {
			time.Sleep(refusalPause)
			if took := time.Duration(end - start); took >= stallTimeout/2 {
				return fmt.Errorf("gave up: a command failed after %v: %w", took.Round(time.Second), p.explain(err))
			}
			continue
		}
		if g.measured(end) {
			g.shards.record(s.id, end-start)
		}
	}
	return nil
}
