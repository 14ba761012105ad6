package workload

import (
	"sync/atomic"
	"time"
)

// Pace determines when the operations of all clients together are due: evenly, at a rate. It is safe for concurrent
// use.
//
// Operations are handed out in the order in which they are due, to any client that is free. If no client is free in
// time, the operation waits; its latency counts from when it was due, which hides no stall (no coordinated omission).
type Pace struct {
	interval float64 // ns
	taken    atomic.Int64
}

// NewPace returns the pace of a rate of operations a second, which must be positive.
func NewPace(rate float64) *Pace { return &Pace{interval: float64(time.Second) / rate} }

// Next returns when the next operation is due, since the run began. The caller must start it then, or at once if that
// time has passed.
func (p *Pace) Next() time.Duration {
	return time.Duration(float64(p.taken.Add(1)-1) * p.interval)
}

// Behind returns the number of operations that were due at a given time and not started by then.
func (p *Pace) Behind(at time.Duration) int64 {
	return max(0, int64(float64(at)/p.interval)+1-p.taken.Load())
}

// Throttle bounds the rate at which operations of all clients together start. Time without operations is not made up
// for. It is safe for concurrent use.
type Throttle struct {
	interval int64        // ns
	next     atomic.Int64 // ns since the run began
}

// NewThrottle returns a throttle of a rate of operations a second, which must be positive.
func NewThrottle(rate float64) *Throttle {
	return &Throttle{interval: max(1, int64(float64(time.Second)/rate))}
}

// Begin returns how long the caller must wait before it starts an operation. now is the time since the run began.
func (t *Throttle) Begin(now time.Duration) time.Duration {
	for {
		next := t.next.Load()
		begin := max(next, int64(now))
		if t.next.CompareAndSwap(next, begin+t.interval) {
			return time.Duration(begin - int64(now))
		}
	}
}
