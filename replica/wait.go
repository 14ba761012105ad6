package replica

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/member"
)

// waiter waits for one Propose. It goes back to the pool when its answer has come, or if the command
// was refused at once. It fits a cache line, because those of thousands do not stay in a near cache.
type waiter struct {
	// waits is unlocked while somebody waits. Then it guards ctx and told. While nobody waits it is
	// locked.
	waits  sync.Mutex
	listed atomic.Bool     // the looks know of the waiter
	told   bool            // a look has found that ctx has ended
	ctx    context.Context // of the Propose that waits
	// woken gets a token when the answer has come, and one when told is set. It has room for both. So
	// nobody waits to send.
	woken  chan struct{}
	done   member.Done
	result any // a failure if there is no result
}

// failure is why there is no result.
type failure struct{ err error }

func newWaiter() *waiter {
	w := &waiter{woken: make(chan struct{}, 2)}
	w.waits.Lock()
	w.done = func(result any, err error) {
		if w.result = result; err != nil {
			w.result = failure{err}
		}
		w.woken <- struct{}{}
	}
	return w
}

// waiters are those who wait in Propose. Each waits for its answer alone: a select that also waits for
// the end of its context is dear when thousands wait. Instead looks at all contexts, some milliseconds
// apart, find those that have ended, and wake who waits with them.
type waiters struct {
	pool  sync.Pool
	timer *time.Timer

	mu      sync.Mutex
	begun   []*waiter // not known to the last look; guarded by mu
	looking bool      // a look is due or under way; guarded by mu. If not, nobody waits who is listed
	known   []*waiter // waiting at the last look; only looks use it
}

const (
	// lookInterval is the time between two looks, at least. It is also at least lookShare times as long
	// as the last look took, so that looks are cheap if many wait. lookMost is how long it is at most.
	lookInterval = 5 * time.Millisecond
	lookShare    = 50
	lookMost     = 100 * time.Millisecond
)

func (s *waiters) init() {
	s.pool.New = func() any { return newWaiter() }
	s.timer = time.AfterFunc(time.Hour, s.look)
	s.timer.Stop()
}

// list makes the looks know of a waiter.
func (s *waiters) list(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = append(s.begun, w)
	if !s.looking {
		s.looking = true
		s.timer.Reset(lookInterval)
	}
}

// look wakes those whose contexts have ended, and forgets those who do not wait.
func (s *waiters) look() {
	began := time.Now()
	s.mu.Lock()
	s.known = append(s.known, s.begun...)
	clear(s.begun)
	s.begun = s.begun[:0]
	s.mu.Unlock()
	keep := s.known[:0]
	for _, w := range s.known {
		if w.look() {
			keep = append(keep, w)
		}
	}
	clear(s.known[len(keep):])
	s.known = keep
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looking = len(keep)+len(s.begun) > 0; s.looking {
		s.timer.Reset(min(max(lookInterval, lookShare*time.Since(began)), lookMost))
	}
}

// look wakes who waits if the context has ended. It reports whether the looks still know of the
// waiter.
func (w *waiter) look() bool {
	if w.tell() {
		return true
	}
	w.listed.Store(false)
	// Somebody may have begun to wait just before, and have seen that the waiter was listed.
	return w.tell() && w.listed.CompareAndSwap(false, true)
}

// tell wakes who waits if the context has ended. It reports false if nobody waits.
func (w *waiter) tell() bool {
	if !w.waits.TryLock() {
		return false
	}
	if !w.told && w.ctx.Err() != nil {
		w.told = true
		w.woken <- struct{}{}
	}
	w.waits.Unlock()
	return true
}

// replicate proposes a command and waits for the answer.
func (r *Replica) replicate(ctx context.Context, to commands, command, body []byte) (any, error) {
	w := r.waiters.pool.Get().(*waiter)
	if err := r.proposer.propose(to, command, body, w.done); err != nil {
		r.waiters.pool.Put(w)
		return nil, err
	}
	return r.waiters.await(ctx, w)
}

// await waits for the answer to a command. It is apart from replicate, so that proposing and waiting
// use the same part of the stack: see Proposals.Add. What is rare has a function of its own for that,
// too.
func (s *waiters) await(ctx context.Context, w *waiter) (any, error) {
	w.ctx = ctx
	w.waits.Unlock()
	if !w.listed.Load() && w.listed.CompareAndSwap(false, true) {
		s.list(w)
	}
	<-w.woken
	w.waits.Lock()
	if w.told {
		return s.giveUp(w)
	}
	return s.resultOf(w)
}

// resultOf returns the answer that has come to a waiter, and gives back the waiter.
func (s *waiters) resultOf(w *waiter) (any, error) {
	result := w.result
	w.result, w.ctx, w.told = nil, nil, false
	s.pool.Put(w)
	if f, failed := result.(failure); failed {
		return nil, f.err
	}
	return result, nil
}

// giveUp is for a command whose ctx has ended. Its answer may have come at the same time: then there
// is a second token.
func (s *waiters) giveUp(w *waiter) (any, error) {
	select {
	case <-w.woken:
		return s.resultOf(w)
	default: // the late answer still goes to this waiter
		return nil, errors.Join(member.ErrMaybeCommitted, w.ctx.Err())
	}
}
