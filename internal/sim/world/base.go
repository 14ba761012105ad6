package world

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/event"
	"github.com/braidlog/braid/protocol"
)

// Base is a simulated world without members: time, scheduled events, random numbers, the trace and the hash of
// events, counters, and the first violation. It is for one goroutine.
type Base struct {
	Seed uint64
	Tick time.Duration // the interval at which RunUntil checks its condition
	Rand *rand.Rand    // for everything without a source of its own
	// Judge, if set, is called after each event.
	Judge func()
	// Pointless, if set, reports whether the run no longer matters. It is called every StepsAsked events. If so, Run
	// panics with Abandoned.
	Pointless func() bool

	time   time.Duration
	queue  event.Queue
	Steps  int // events so far
	Hash   uint64
	Events count.Counts
	Out    *Trace // nil: there is no trace
	Broken *Violation
}

// Violation is a broken property.
type Violation struct {
	Seed   uint64
	At     time.Duration
	Step   int
	Member protocol.MemberID // 0: the cluster
	Err    error
}

func (v *Violation) Error() string {
	who := "cluster"
	if v.Member != 0 {
		who = "member " + v.Member.String()
	}
	return fmt.Sprintf("seed %d, %s (step %d), %s: %v", v.Seed, v.At.Round(time.Microsecond), v.Step, who, v.Err)
}

func (v *Violation) Unwrap() error { return v.Err }

// Abandoned is the value of the panic that ends a run that does not matter any more.
type Abandoned struct{}

// StepsAsked is the number of events after which a world checks whether its run still matters.
const StepsAsked = 1 << 10

// Now returns the time since the run began.
func (w *Base) Now() time.Duration { return w.time }

// Violate records a violation if err is not nil. The first violation ends the run.
func (w *Base) Violate(member protocol.MemberID, err error) {
	if w.Broken == nil && err != nil {
		w.Broken = &Violation{Seed: w.Seed, At: w.time, Step: w.Steps, Member: member, Err: err}
	}
}

// After schedules do, d from now, or at the end of the current events if d is not positive.
func (w *Base) After(d time.Duration, do func()) { w.queue.Push(w.time+max(d, 0), do) }

// At schedules do at an instant, which is not in the past.
func (w *Base) At(instant time.Duration, do func()) { w.queue.Push(instant, do) }

// Run runs all events up to the given time or the first violation.
func (w *Base) Run(until time.Duration) {
	for w.Broken == nil && w.queue.Due(until) {
		e := w.queue.Pop()
		w.time = e.At
		w.Steps++
		if w.Steps%StepsAsked == 0 && w.Pointless != nil && w.Pointless() {
			panic(Abandoned{})
		}
		w.Mix(uint64(e.At), e.Seq)
		e.Do()
		if w.Judge != nil {
			w.Judge()
		}
	}
	w.time = max(w.time, until)
}

// RunUntil runs events until done is true, the given time, or the first violation. It reports whether done was true.
func (w *Base) RunUntil(until time.Duration, done func() bool) bool {
	for !done() {
		if w.Broken != nil || w.time >= until {
			return false
		}
		w.Run(min(until, w.time+w.Tick))
	}
	return true
}

// Chance is true with probability p.
func (w *Base) Chance(p float64) bool { return p > 0 && w.Rand.Float64() < p }

// Between draws a time from lo to hi. Short times are more likely than long ones.
func (w *Base) Between(lo, hi time.Duration) time.Duration {
	if hi <= lo {
		return lo
	}
	f := w.Rand.Float64()
	return lo + time.Duration(f*f*f*float64(hi-lo))
}

// Pick draws a number below n.
func (w *Base) Pick(n int) int { return w.Rand.IntN(n) }

// Among draws a number below n. If n is 1, it returns 0 and draws nothing.
func (w *Base) Among(n int) int {
	if n == 1 {
		return 0
	}
	return w.Pick(n)
}

// Mix adds an event to the run's hash (FNV-1a on words).
func (w *Base) Mix(words ...uint64) {
	for _, v := range words {
		w.Hash = (w.Hash ^ v) * 1099511628211
	}
}

// Count counts an event.
func (w *Base) Count(c *count.Counter) { w.Events.Add(c, 1) }

// Tracing reports whether there is a trace.
func (w *Base) Tracing() bool { return w.Out != nil }

// Tracef prints a line with the time, if there is a trace.
func (w *Base) Tracef(format string, args ...any) {
	if w.Out != nil {
		w.Out.printf(w.time, format, args...)
	}
}
