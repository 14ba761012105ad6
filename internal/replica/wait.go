package replica

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/protocol"
)

// waiter is a caller that waits for one answer: to a command, or to a read. It goes back to the pool when its answer
// has come, or if the command was refused at once. What an answer needs fits a cache line, because those of thousands
// do not stay in a near cache.
type waiter struct {
	// waits is unlocked while the caller waits. Then it guards ctx and told. At other times it is locked.
	waits  sync.Mutex
	listed atomic.Bool     // the looks know of the waiter
	told   bool            // a look has found a reason not to wait: see reason
	apart  bool            // the caller is known not to be in a call of the state machine; only it uses this
	reads  bool            // it waits for a read, which leaves nothing behind
	tells  bool            // it has stages or readStages, which others do not look at
	ctx    context.Context // of the caller
	// woken gets a token when the answer has come, and one when told is set. It has capacity for both, so
	// nothing waits to send.
	woken  chan struct{}
	done   intake.Done
	result any // a failure if there is no result
	// ticket names the command. It is here and not on the stack of the proposer, of which each part that is used costs
	// a miss of the cache if thousands wait.
	ticket intake.Ticket
	until  time.Duration // when the wait ends, by the clock of waiters; 0: with ctx alone
	// group is that of a read, and next and previous are others in it. They are guarded by its loop's mu.
	group          *readGroup
	next, previous *waiter
	// stages and readStages are set with the answer; nil: no one wants to know them.
	stages     *protocol.Stages
	readStages *protocol.ReadStages
	began      time.Duration // by the member's clock, if they are wanted
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

// waiters are the callers that wait for answers. Each waits for its answer alone: a select that also waits for the end
// of a context, or for a timer, is expensive when thousands wait. Instead there are looks, some milliseconds apart,
// which find those with a reason not to wait any longer, and wake them: their contexts have ended, or their time is
// over, or the member has stopped. While the state machine does not return they wake every caller once, because it may
// wait for itself: see within.
type waiters struct {
	pool   sync.Pool
	timer  *time.Timer
	isLong func() bool     // the state machine does not return
	stop   <-chan struct{} // closed when the member stops
	began  time.Time

	mu      sync.Mutex
	begun   []*waiter // not known to the last look; guarded by mu
	looking bool      // a look is due or under way; guarded by mu. If not, no listed waiter waits

	turn  sync.Mutex // of a look
	known []*waiter  // waiting at the last look; guarded by turn
}

// sight is what a look sees of the member.
type sight struct {
	now           time.Duration // by the clock of waiters
	long, stopped bool          // the state machine does not return; the member stops
}

const (
	// lookInterval is the time between two looks, at least. It is also at least lookShare times as long
	// as the last look took, so that looks are cheap if many wait. lookMost is how long it is at most.
	lookInterval = 5 * time.Millisecond
	lookShare    = 50
	lookMost     = 100 * time.Millisecond
)

func (s *waiters) init(isLong func() bool, stop <-chan struct{}) {
	s.isLong, s.stop, s.began = isLong, stop, time.Now()
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

// now is the clock of deadlines.
func (s *waiters) now() time.Duration { return time.Since(s.began) }

func (s *waiters) sight() sight {
	seen := sight{now: s.now(), long: s.isLong()}
	select {
	case <-s.stop:
		seen.stopped = true
	default:
	}
	return seen
}

// look wakes those that have a reason not to wait, and forgets those that do not wait. The timer calls it, and the end
// of the member, which readers do not wait for a look to find out.
func (s *waiters) look() {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	s.known = append(s.known, s.begun...)
	clear(s.begun)
	s.begun = s.begun[:0]
	s.mu.Unlock()
	seen := s.sight()
	keep := s.known[:0]
	for _, w := range s.known {
		if w.look(seen) {
			keep = append(keep, w)
		}
	}
	clear(s.known[len(keep):])
	s.known = keep
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looking = len(keep)+len(s.begun) > 0; s.looking {
		s.timer.Reset(min(max(lookInterval, lookShare*(s.now()-seen.now)), lookMost))
	}
}

// look wakes the caller if there is a reason. It reports whether the looks still know of the waiter.
func (w *waiter) look(seen sight) bool {
	if w.tell(seen) {
		return true
	}
	w.listed.Store(false)
	// The caller may have begun to wait just before, and have seen that the waiter was listed.
	return w.tell(seen) && w.listed.CompareAndSwap(false, true)
}

// tell is look while the caller waits. It reports false if it does not.
func (w *waiter) tell(seen sight) bool {
	if !w.waits.TryLock() {
		return false
	}
	if !w.told && (seen.long && !w.apart || seen.stopped && w.reads || w.over(seen.now) || w.ctx.Err() != nil) {
		w.told = true
		w.woken <- struct{}{}
	}
	w.waits.Unlock()
	return true
}

// over reports whether the waiter's time is over.
func (w *waiter) over(now time.Duration) bool { return w.until > 0 && now >= w.until }

// reason is why the caller does not wait any longer. It is nil if it has to.
func (r *Replica) reason(w *waiter) error {
	switch {
	case w.ctx.Err() != nil:
		return w.ctx.Err()
	case w.over(r.waiters.now()):
		return context.DeadlineExceeded
	case w.reads && r.ctx.Err() != nil:
		return r.stopped()
	case w.apart:
		return nil
	}
	return r.fromApply()
}

// replicate proposes a command and waits for the answer.
func (r *Replica) replicate(ctx context.Context, to commands, command, body []byte) (any, error) {
	if ctx.Err() != nil {
		return nil, notSent(ctx)
	}
	w := r.waiters.get()
	if err := r.proposer.propose(to, command, body, w.done, &w.ticket); err != nil {
		r.waiters.put(w)
		return nil, err
	}
	return r.await(ctx, w, 0)
}

// notSent is the error of a call of which nothing left this member before ctx ended.
func notSent(ctx context.Context) error { return errors.Join(member.ErrNotSent, ctx.Err()) }

// await waits for an answer, until ctx ends, and if limit is not 0 for so long at most. It is apart from replicate, so
// that proposing and waiting use the same part of the stack: see Proposals.Add. What is rare has a function of its own
// for that, too.
func (r *Replica) await(ctx context.Context, w *waiter, limit time.Duration) (any, error) {
	s := &r.waiters
	w.ctx = ctx
	if limit > 0 {
		w.until = s.now() + limit
	}
	w.waits.Unlock()
	if !w.listed.Load() && w.listed.CompareAndSwap(false, true) {
		s.list(w)
	}
	<-w.woken
	w.waits.Lock()
	if w.told {
		return r.interrupted(w)
	}
	if w.tells {
		r.tell(w)
	}
	return s.resultOf(w)
}

// resultOf returns the answer that has come to a waiter, and gives back the waiter.
func (s *waiters) resultOf(w *waiter) (any, error) {
	result := w.result
	s.put(w)
	if f, failed := result.(failure); failed {
		return nil, f.err
	}
	return result, nil
}

// get returns a waiter that nothing refers to.
func (s *waiters) get() *waiter { return s.pool.Get().(*waiter) }

// put gives back a waiter of which no answer is to come.
func (s *waiters) put(w *waiter) {
	w.result, w.ctx, w.ticket, w.until, w.group, w.next, w.previous = nil, nil, intake.Ticket{}, 0, nil, nil, nil
	if w.tells {
		w.stages, w.readStages = nil, nil
	}
	w.told, w.apart, w.reads, w.tells = false, false, false, false
	s.pool.Put(w)
}

// interrupted is for a caller that a look has woken. If there is a reason not to wait, the command is withdrawn, if it
// has not left this member.
func (r *Replica) interrupted(w *waiter) (any, error) {
	why := r.reason(w)
	if why == nil {
		w.told, w.apart = false, true
		return r.await(w.ctx, w, 0) // until stays
	}
	withdrawn := false
	if !w.reads && len(w.woken) == 0 {
		var proposed time.Duration
		if withdrawn, proposed = r.withdraw(w.ticket); proposed > 0 && w.tells {
			w.stages.Proposed = max(proposed-w.began, 0)
		}
	}
	return r.waiters.giveUp(w, withdrawn, why)
}

// giveUp ends a wait. The answer may have come at the same time: then there is a second token.
func (s *waiters) giveUp(w *waiter, withdrawn bool, why error) (any, error) {
	select {
	case <-w.woken:
		return s.resultOf(w)
	default: // a late answer still goes to this waiter
		w.ctx = nil // it may hold much
	}
	reads := w.reads
	if reads && w.group.leave(w) {
		s.put(w)
	}
	within := errors.Is(why, member.ErrWithinApply)
	switch {
	case within && (withdrawn || reads), errors.Is(why, member.ErrStopped):
		return nil, why
	case reads:
		return nil, errors.Join(member.ErrReadTimeout, why)
	case withdrawn:
		return nil, errors.Join(member.ErrNotSent, why)
	}
	return nil, errors.Join(member.ErrMaybeCommitted, why)
}

// withdrawal is what an event loop says of a command that is to be withdrawn.
type withdrawal struct {
	ok       bool
	proposed time.Duration // when it was given to the core, if it is not known to be committed
}

// withdraw withdraws a command. It reports false if the command may have left this member, and when it was given to the
// core, if it waits to be committed. The event loop that has it is asked, and has withdrawWithin to answer.
func (r *Replica) withdraw(t intake.Ticket) (ok bool, proposed time.Duration) {
	ok, instance := r.proposer.withdraw(t)
	l := r.hosted(instance)
	if ok || l == nil {
		return ok, 0
	}
	var ended atomic.Bool // by the event loop, or because no one waits for it any more
	verdict := make(chan withdrawal, 1)
	l.do(func() {
		if ended.CompareAndSwap(false, true) {
			v := withdrawal{ok: l.hosted.Withdraw(t)}
			if l.hosted.Proposed(t.Batch) {
				v.proposed = t.Batch.ProposedAt
			}
			verdict <- v
		}
	})
	timeout := time.NewTimer(withdrawWithin)
	defer timeout.Stop()
	select {
	case v := <-verdict:
		return v.ok, v.proposed
	case <-timeout.C:
	case <-r.stop:
	}
	if ended.CompareAndSwap(false, true) {
		return false, 0 // and the command stays
	}
	v := <-verdict // it comes at once
	return v.ok, v.proposed
}

// withdrawWithin bounds how much longer than its ctx a Propose takes: an event loop that does not answer
// waits for the state machine, or its instance has ended.
const withdrawWithin = 100 * time.Millisecond
