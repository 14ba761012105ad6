package replica

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// waiter waits for one Propose. It goes back to the pool when its answer has come, or if the command
// was refused at once. All but its ticket fits a cache line, because those of thousands do not stay in a near cache.
type waiter struct {
	// waits is unlocked while somebody waits. Then it guards ctx and told. While nobody waits it is
	// locked.
	waits  sync.Mutex
	listed atomic.Bool     // the looks know of the waiter
	told   bool            // a look has found that ctx has ended, or that the state machine does not return
	apart  bool            // it is known not to be in a call of the state machine; only who waits uses it
	ctx    context.Context // of the Propose that waits
	// woken gets a token when the answer has come, and one when told is set. It has room for both. So
	// nobody waits to send.
	woken  chan struct{}
	done   member.Done
	result any // a failure if there is no result
	// ticket names the command. It is here and not on the stack of the proposer, of which each part that is used costs
	// a miss of the cache if thousands wait.
	ticket member.Ticket
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
// apart, find those that have ended, and wake who waits with them. While the state machine does not return
// they wake everybody once, because it may be waiting for itself: see within.
type waiters struct {
	pool   sync.Pool
	timer  *time.Timer
	isLong func() bool // the state machine does not return

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

func (s *waiters) init(isLong func() bool) {
	s.isLong = isLong
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
	long := s.isLong()
	keep := s.known[:0]
	for _, w := range s.known {
		if w.look(long) {
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

// look wakes who waits if the context has ended, or if the state machine does not return. It reports whether
// the looks still know of the waiter.
func (w *waiter) look(long bool) bool {
	if w.tell(long) {
		return true
	}
	w.listed.Store(false)
	// Somebody may have begun to wait just before, and have seen that the waiter was listed.
	return w.tell(long) && w.listed.CompareAndSwap(false, true)
}

// tell is look of who waits. It reports false if nobody waits.
func (w *waiter) tell(long bool) bool {
	if !w.waits.TryLock() {
		return false
	}
	if !w.told && (long && !w.apart || w.ctx.Err() != nil) {
		w.told = true
		w.woken <- struct{}{}
	}
	w.waits.Unlock()
	return true
}

// replicate proposes a command and waits for the answer.
func (r *Replica) replicate(ctx context.Context, to commands, command, body []byte) (any, error) {
	if ctx.Err() != nil {
		return nil, notSent(ctx)
	}
	w := r.waiters.pool.Get().(*waiter)
	if err := r.proposer.propose(to, command, body, w.done, &w.ticket); err != nil {
		r.waiters.pool.Put(w)
		return nil, err
	}
	return r.await(ctx, w)
}

// notSent is the error of a call of which nothing left this member before ctx ended.
func notSent(ctx context.Context) error { return errors.Join(member.ErrNotSent, ctx.Err()) }

// await waits for the answer to a command. It is apart from replicate, so that proposing and waiting
// use the same part of the stack: see Proposals.Add. What is rare has a function of its own for that,
// too.
func (r *Replica) await(ctx context.Context, w *waiter) (any, error) {
	s := &r.waiters
	w.ctx = ctx
	w.waits.Unlock()
	if !w.listed.Load() && w.listed.CompareAndSwap(false, true) {
		s.list(w)
	}
	<-w.woken
	w.waits.Lock()
	if w.told {
		return r.interrupted(w)
	}
	return s.resultOf(w)
}

// resultOf returns the answer that has come to a waiter, and gives back the waiter.
func (s *waiters) resultOf(w *waiter) (any, error) {
	result := w.result
	w.result, w.ctx, w.ticket, w.told, w.apart = nil, nil, member.Ticket{}, false, false
	s.pool.Put(w)
	if f, failed := result.(failure); failed {
		return nil, f.err
	}
	return result, nil
}

// interrupted is for a waiter that a look has woken. If it waits for itself, or its ctx has ended, the command is
// withdrawn, if it has not left this member.
func (r *Replica) interrupted(w *waiter) (any, error) {
	why := w.ctx.Err()
	if why == nil && !w.apart {
		why = r.fromApply()
	}
	if why == nil {
		w.told, w.apart = false, true
		return r.await(w.ctx, w)
	}
	withdrawn := len(w.woken) == 0 && r.withdraw(w.ticket)
	return r.waiters.giveUp(w, withdrawn, why)
}

// giveUp ends a wait. The answer may have come at the same time: then there is a second token.
func (s *waiters) giveUp(w *waiter, withdrawn bool, why error) (any, error) {
	select {
	case <-w.woken:
		return s.resultOf(w)
	default: // the late answer still goes to this waiter
	}
	switch {
	case !withdrawn:
		return nil, errors.Join(member.ErrMaybeCommitted, why)
	case errors.Is(why, member.ErrWithinApply):
		return nil, why
	}
	return nil, errors.Join(member.ErrNotSent, why)
}

// Ticket names a command of this member that was proposed and may be withdrawn.
type Ticket struct {
	r *Replica
	t member.Ticket
}

// ProposeTicket is ProposeAsync, or with options ProposeWithAsync, and returns what names the command: none
// if it is refused.
func (r *Replica) ProposeTicket(command, body []byte, o *protocol.ProposeOptions, done member.Done) (Ticket, error) {
	t, err := Ticket{r: r}, error(nil)
	if o.Plain() && o.Wait == 0 {
		err = r.proposer.propose(&r.proposer.queue, command, body, done, &t.t)
	} else {
		err = r.proposer.proposeWith(&r.proposer.queue, command, body, o, done, &t.t)
	}
	return t, err
}

// Withdraw withdraws the command if it has not left the member, and reports whether it did. Then the command never takes
// effect, and done is not called. Otherwise the command may take effect, or has failed already, and done tells what became of
// it. Withdraw takes a tenth of a second at most.
func (t Ticket) Withdraw() bool { return t.r != nil && t.r.withdraw(t.t) }

// withdraw withdraws a command. It reports false if the command may have left this member. The event
// loop that has it is asked, and has withdrawWithin to answer.
func (r *Replica) withdraw(t member.Ticket) bool {
	ok, instance := r.proposer.withdraw(t)
	l := r.hosted(instance)
	if ok || l == nil {
		return ok
	}
	var ended atomic.Bool // by the event loop, or because nobody waits for it any more
	verdict := make(chan bool, 1)
	l.do(func() {
		if ended.CompareAndSwap(false, true) {
			verdict <- l.hosted.Withdraw(t)
		}
	})
	timeout := time.NewTimer(withdrawWithin)
	defer timeout.Stop()
	select {
	case ok = <-verdict:
		return ok
	case <-timeout.C:
	case <-r.stop:
	}
	if ended.CompareAndSwap(false, true) {
		return false // and the command stays
	}
	return <-verdict // it comes at once
}

// withdrawWithin bounds how much longer than its ctx a Propose takes: an event loop that does not answer
// waits for the state machine, or its instance has ended.
const withdrawWithin = 100 * time.Millisecond
