package workload

import (
	"sync/atomic"
	"time"
)

// Pace says when the operations of all clients together are due: evenly, at a rate. It is
// safe for concurrent use.
//
// Operations are handed out in the order in which they are due, to whichever client is free. One
// that no one was free to start in time has waited since it was due; latency that counts from then
// hides no stall (no coordinated omission).
type Pace struct {
	interval float64 // ns
	taken    atomic.Int64
}

// NewPace returns the pace of a rate of operations a second, which must be positive.
func NewPace(rate float64) *Pace { return &Pace{interval: float64(time.Second) / rate} }

// Next returns when the next operation is due, since the run began. It is the caller's to
// do then, or at once if that has passed.
func (p *Pace) Next() time.Duration {
	return time.Duration(float64(p.taken.Add(1)-1) * p.interval)
}

// Behind is how many operations were due at an instant and not taken by then.
func (p *Pace) Behind(at time.Duration) int64 {
	return max(0, int64(float64(at)/p.interval)+1-p.taken.Load())
}

// Throttle lets operations of all clients together begin at most at a rate. What was not
// begun in time is not caught up with. It is safe for concurrent use.
type Throttle struct {
	interval int64        // ns
	next     atomic.Int64 // ns since the run began
}

// NewThrottle returns a throttle of a rate of operations a second, which must be positive.
func NewThrottle(rate float64) *Throttle {
	return &Throttle{interval: max(1, int64(float64(time.Second)/rate))}
}

// Begin returns how long the caller must wait, now being the time since the run began,
// before it begins an operation.
func (t *Throttle) Begin(now time.Duration) time.Duration {
	for {
		next := t.next.Load()
		begin := max(next, int64(now))
		if t.next.CompareAndSwap(next, begin+t.interval) {
			return time.Duration(begin - int64(now))
		}
	}
}
