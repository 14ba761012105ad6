package replica

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/braidlog/braid/member"
)

// proposer holds the member's Proposals. All event loops take batches from it.
type proposer struct {
	clock func() time.Duration
	wake  func()

	mu    sync.Mutex
	queue member.Proposals // guarded by mu
}

func newProposer(clock func() time.Duration, wake func(), o *Options) *proposer {
	p := &proposer{clock: clock, wake: wake}
	p.queue = member.Proposals{MaxBatch: o.MaxBatchBytes, MaxCount: o.MaxBatchCommands, MaxBytes: o.MaxPendingBytes, Free: p.free}
	return p
}

// admit counts a command that is not in a batch yet. release takes it off again.
func (p *proposer) admit(cost int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Reserve(cost)
}

func (p *proposer) release(cost int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.Release(cost)
}

// addWhole takes a batch that is complete. admit has counted its commands.
func (p *proposer) addWhole(b *member.Batch) {
	p.mu.Lock()
	err := p.queue.AddWhole(b)
	p.mu.Unlock()
	p.added(err, b)
}

// added wakes those who take batches. If there are no proposals any more, it fails the batches.
func (p *proposer) added(err error, batches ...*member.Batch) {
	if err == nil {
		p.wake()
		return
	}
	for _, b := range batches {
		b.Fail(err)
	}
}

// addBody takes a command with a body.
func (p *proposer) addBody(command, body []byte, done member.Done) error {
	b := member.NewBodyBatch(p.clock(), command, body, done)
	p.mu.Lock()
	err := p.queue.AddBody(b)
	p.mu.Unlock()
	if err == nil {
		p.wake()
	}
	return err
}

// add takes a command.
func (p *proposer) add(command []byte, done member.Done) error {
	p.mu.Lock()
	fresh, err := p.queue.Add(p.clock, command, done)
	p.mu.Unlock()
	if fresh {
		p.wake()
	}
	return err
}

// again puts back batches that event loops took, in front of all others.
func (p *proposer) again(batches []*member.Batch) {
	p.mu.Lock()
	err := p.queue.Again(batches)
	p.mu.Unlock()
	p.added(err, batches...)
}

// free takes off the bytes of a settled batch.
func (p *proposer) free(b *member.Batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.Settled(b)
}

func (p *proposer) waiting() (bytes int, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Waiting()
}

func (p *proposer) take() *member.Batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Take()
}

func (p *proposer) expired(now, limit time.Duration) []*member.Batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Expired(now, limit)
}

// close refuses all further commands and returns the batches that were never proposed.
func (p *proposer) close(err error) []*member.Batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Close(err)
}

// pendingBytes returns the cost of everything that is not settled.
func (p *proposer) pendingBytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Bytes()
}

// waiter waits for one Propose. It goes back to the pool when its answer has come, or if the command
// was refused at once.
type waiter struct {
	done   member.Done
	ready  chan struct{}
	result any
	err    error
}

func newWaiter() *waiter {
	w := &waiter{ready: make(chan struct{}, 1)}
	w.done = func(result any, err error) {
		w.result, w.err = result, err
		w.ready <- struct{}{}
	}
	return w
}

// Propose replicates a command, and a body if there is one. It returns the result of applying the
// command on this member. If ctx ends first, the error is both ErrMaybeCommitted and ctx's.
func (r *Replica) Propose(ctx context.Context, command, body []byte) (any, error) {
	w := r.waiters.Get().(*waiter)
	if err := r.ProposeAsync(command, body, w.done); err != nil {
		r.waiters.Put(w)
		return nil, err
	}
	return r.await(ctx, w)
}

// await waits for the answer to a command.
func (r *Replica) await(ctx context.Context, w *waiter) (any, error) {
	select {
	case <-w.ready:
	case <-ctx.Done():
		select {
		case <-w.ready:
		default: // the late answer still goes to this waiter
			return nil, errors.Join(member.ErrMaybeCommitted, ctx.Err())
		}
	}
	result, err := w.result, w.err
	w.result, w.err = nil, nil
	r.waiters.Put(w)
	return result, err
}

// ProposeAsync is Propose without waiting. It copies the command. It does not copy the body, which
// must never change again. done is called once, unless ProposeAsync returns an error.
func (r *Replica) ProposeAsync(command, body []byte, done member.Done) error {
	if err := r.fits(command, body); err != nil {
		return err
	}
	if len(body) > 0 {
		return r.proposer.addBody(command, body, done)
	}
	return r.proposer.add(command, done)
}
