package replica

import (
	"bytes"
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/internal/member"
)

// heldAfter is for how long the state machine is in one call, at least, before those who wait for it look whether they
// are in that call. They look within twice that time.
const heldAfter = 100 * time.Millisecond

// within finds out which callers wait for the goroutine that they run on: the one that runs the state machine. Whoever
// waits there for something that must be applied waits forever. Only the number of a goroutine tells who a caller is,
// and to read it takes microseconds. So a caller that has begun to wait reads it, once, and only while the state
// machine does not return.
type within struct {
	// calls counts the beginnings and ends of calls of the state machine: it is odd within one.
	calls atomic.Uint64
	// asleep: watch waits for wake, because there was no call for a while.
	asleep atomic.Bool
	wake   chan struct{}
	// goroutine is the number of the one that applies; 0: it does not run yet.
	goroutine atomic.Uint64
	// held is closed while the state machine does not return. There is a new channel when it has returned.
	held atomic.Pointer[chan struct{}]
}

func (w *within) init() {
	w.wake = make(chan struct{}, 1)
	w.again()
}

// again makes a new channel.
func (w *within) again() {
	c := make(chan struct{})
	w.held.Store(&c)
}

// begin is called before a call of the state machine.
func (w *within) begin() {
	w.calls.Add(1)
	if w.asleep.Load() && w.asleep.Swap(false) {
		poke(w.wake)
	}
}

// watch closes held when a call takes long. It runs until ctx ends.
func (w *within) watch(ctx context.Context) {
	ticker := time.NewTicker(heldAfter)
	defer ticker.Stop()
	for last, told := uint64(0), false; ; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if !w.rest(ctx, last) {
			return
		}
		calls := w.calls.Load()
		switch same := calls == last && calls%2 == 1; {
		case same && !told:
			told = true
			close(*w.held.Load())
		case !same && told:
			told = false
			w.again()
		}
		last = calls
	}
}

// rest waits for a call if there is none now and there was none since another number of them. It returns false if ctx
// ends.
func (w *within) rest(ctx context.Context, last uint64) bool {
	if last%2 == 1 || w.calls.Load() != last {
		return true
	}
	w.asleep.Store(true)
	if w.calls.Load() != last { // begin may have missed it
		w.asleep.Store(false)
		return true
	}
	select {
	case <-w.wake:
		return true
	case <-ctx.Done():
		return false
	}
}

// long returns a channel that is closed when the state machine does not return.
func (w *within) long() <-chan struct{} { return *w.held.Load() }

// isLong reports whether the state machine does not return.
func (w *within) isLong() bool {
	select {
	case <-w.long():
		return true
	default:
		return false
	}
}

// here reports whether the caller is within a call of the state machine.
func (w *within) here() bool {
	return w.calls.Load()%2 == 1 && w.goroutine.Load() == goroutine()
}

// goroutine returns the number of the goroutine that calls. It is never 0.
func goroutine() (number uint64) {
	var text [40]byte // "goroutine 123 [running]:"
	b := text[:runtime.Stack(text[:], false)]
	for _, digit := range bytes.TrimPrefix(b, []byte("goroutine ")) {
		if digit < '0' || digit > '9' {
			break
		}
		number = 10*number + uint64(digit-'0')
	}
	return number
}

// fromApply returns member.ErrWithinApply if the state machine calls.
func (r *Replica) fromApply() error {
	if r.apply.within.here() {
		return member.ErrWithinApply
	}
	return nil
}
