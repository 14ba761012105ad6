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

	mu    sync.Mutex       // guards the ClientQueue of each Client, too
	queue member.Proposals // guarded by mu
}

func newProposer(clock func() time.Duration, wake func(), o *Options) *proposer {
	p := &proposer{clock: clock, wake: wake}
	p.queue = member.Proposals{MaxCommand: o.MaxCommandBytes, MaxBatch: o.MaxBatchBytes, MaxCount: o.MaxBatchCommands, MaxBytes: o.MaxPendingBytes, Free: p.free}
	return p
}

// commands is where commands are put: the member's Proposals, or a client's queue before them.
type commands interface {
	Add(now func() time.Duration, command []byte, done member.Done) (fresh bool, err error)
	AddBody(now func() time.Duration, b *member.Batch) (fresh bool, err error)
}

// propose takes a command, with a body if there is one.
func (p *proposer) propose(to commands, command, body []byte, done member.Done) error {
	if err := p.queue.Fits(command, body); err != nil {
		return err
	}
	if len(body) > 0 {
		return p.proposeBody(to, command, body, done)
	}
	p.mu.Lock()
	fresh, err := to.Add(p.clock, command, done)
	p.mu.Unlock()
	if fresh {
		p.wake()
	}
	return err
}

func (p *proposer) proposeBody(to commands, command, body []byte, done member.Done) error {
	b := member.NewBodyBatch(command, body, done) // it reads the whole body
	p.mu.Lock()
	fresh, err := to.AddBody(p.clock, b)
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
	if err == nil {
		p.wake()
		return
	}
	for _, b := range batches {
		b.Fail(err)
	}
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
	if err := r.proposer.propose(&r.proposer.queue, command, body, w.done); err != nil {
		r.waiters.Put(w)
		return nil, err
	}
	return r.await(ctx, w)
}

// await waits for the answer to a command. It is apart from Propose, so that proposing and waiting use
// the same part of the stack: see Proposals.Add. What is rare has a function of its own for that, too.
func (r *Replica) await(ctx context.Context, w *waiter) (any, error) {
	select {
	case <-w.ready:
		return r.resultOf(w)
	case <-ctx.Done():
		return r.giveUp(ctx, w)
	}
}

// resultOf returns the answer that has come to a waiter, and gives back the waiter.
func (r *Replica) resultOf(w *waiter) (any, error) {
	result, err := w.result, w.err
	w.result, w.err = nil, nil
	r.waiters.Put(w)
	return result, err
}

// giveUp is for a command whose ctx has ended. Its answer may have come at the same time.
func (r *Replica) giveUp(ctx context.Context, w *waiter) (any, error) {
	select {
	case <-w.ready:
		return r.resultOf(w)
	default: // the late answer still goes to this waiter
		return nil, errors.Join(member.ErrMaybeCommitted, ctx.Err())
	}
}

// ProposeAsync is Propose without waiting. It copies the command. It does not copy the body, which
// must never change again. done is called once, unless ProposeAsync returns an error.
func (r *Replica) ProposeAsync(command, body []byte, done member.Done) error {
	return r.proposer.propose(&r.proposer.queue, command, body, done)
}
