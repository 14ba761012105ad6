package replica

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/braidlog/braid/member"
)

// proposer gathers this member's commands into batches until the event loop takes them:
// while batches are under way the next one grows.
type proposer struct {
	clock    func() time.Duration
	wake     func()
	maxBatch int   // payload bytes at which a batch is full
	maxCount int   // commands at which a batch is full; 0: no limit
	maxBytes int64 // of everything that is proposed and not settled

	mu   sync.Mutex
	full []*member.Batch // oldest first; each was open once
	open *member.Batch   // nil or with at least one command
	// bytes is the payload of all batches not settled yet; ≤ maxBytes plus one command.
	bytes int64
	hint  struct{ bytes, commands int } // the next batch's likely size: a bit more than the last
	err   error
}

// reserve counts the cost of a command that is to be proposed, or refuses it.
func (p *proposer) reserve(cost int64) error {
	switch {
	case p.err != nil:
		return p.err
	case p.bytes+cost > p.maxBytes && p.bytes > 0:
		return member.ErrOverloaded
	}
	p.bytes += cost
	return nil
}

// admit is reserve for a command that is not in a batch yet; release is its opposite.
func (p *proposer) admit(cost int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reserve(cost)
}

func (p *proposer) release(cost int64) {
	p.mu.Lock()
	p.bytes -= cost
	p.mu.Unlock()
}

// addWhole takes a batch that is complete and whose commands were admitted.
func (p *proposer) addWhole(b *member.Batch) {
	p.mu.Lock()
	err := p.err
	if err == nil {
		p.full = append(p.full, b)
	}
	p.mu.Unlock()
	if err != nil {
		b.Fail(err)
		return
	}
	p.wake()
}

// addBody makes a batch of its own of a command with a body. Commands that came before it
// stay before it.
func (p *proposer) addBody(command, body []byte, done member.Done) error {
	b := member.NewBatch(p.clock(), len(command)+8, 1)
	b.Free = p.free
	b.Add(command, done)
	b.SetBody(body)
	p.mu.Lock()
	if err := p.reserve(b.Cost()); err != nil {
		p.mu.Unlock()
		return err
	}
	if p.open != nil {
		p.full = append(p.full, p.open)
		p.open = nil
	}
	p.full = append(p.full, b)
	p.mu.Unlock()
	p.wake()
	return nil
}

// add puts a command into the batch that is being gathered.
func (p *proposer) add(command []byte, done member.Done) error {
	p.mu.Lock()
	if err := p.reserve(member.CommandCost(command)); err != nil {
		p.mu.Unlock()
		return err
	}
	b := p.open
	if b != nil && len(b.Entry.Payload)+len(command) > p.maxBatch {
		p.full = append(p.full, b)
		b = nil
	}
	fresh := b == nil
	if fresh {
		b = member.NewBatch(p.clock(), max(len(command)+8, min(p.hint.bytes, p.maxBatch)), max(1, p.hint.commands))
		b.Free = p.free
		p.open = b
	}
	b.Add(command, done)
	if p.maxCount > 0 && int(b.Entry.Count) >= p.maxCount {
		p.full = append(p.full, b)
		p.open = nil
	}
	p.mu.Unlock()
	if fresh {
		p.wake()
	}
	return nil
}

// again puts batches that were taken in front of all others.
func (p *proposer) again(batches []*member.Batch) {
	p.mu.Lock()
	err := p.err
	if err == nil {
		p.full = append(slices.Clone(batches), p.full...)
	}
	p.mu.Unlock()
	if err != nil {
		for _, b := range batches {
			b.Fail(err)
		}
		return
	}
	p.wake()
}

// free gives back a settled batch's bytes.
func (p *proposer) free(b *member.Batch) {
	p.mu.Lock()
	p.bytes -= b.Cost()
	p.mu.Unlock()
}

// waiting returns the bytes of the batch that take would return, 0 if none, and
// whether it is full.
func (p *proposer) waiting() (bytes int, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(p.full) > 0:
		return p.full[0].Size(), true
	case p.open != nil:
		return len(p.open.Entry.Payload), false
	}
	return 0, false
}

// take returns the oldest batch, not yet sealed, or nil.
func (p *proposer) take() *member.Batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b *member.Batch
	switch {
	case len(p.full) > 0:
		b = p.full[0]
		p.full[0] = nil
		p.full = p.full[1:]
	case p.open != nil:
		b, p.open = p.open, nil
	default:
		return nil
	}
	if b.Entry.BodySize > 0 {
		return b // says nothing of the next one
	}
	p.hint.bytes = len(b.Entry.Payload) + len(b.Entry.Payload)/4
	p.hint.commands = len(b.Done) + len(b.Done)/4
	return b
}

// expired takes batches that were never proposed and are older than limit.
func (p *proposer) expired(now, limit time.Duration) (out []*member.Batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.full) > 0 && now-p.full[0].Born > limit {
		out = append(out, p.full[0])
		p.full = p.full[1:]
	}
	if len(p.full) == 0 && p.open != nil && now-p.open.Born > limit {
		out = append(out, p.open)
		p.open = nil
	}
	return out
}

// close refuses further commands and returns the batches that were never proposed.
func (p *proposer) close(err error) []*member.Batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.full
	if p.open != nil {
		out = append(out, p.open)
	}
	p.full, p.open, p.err = nil, nil, err
	return out
}

// pendingBytes is the cost of everything not settled.
func (p *proposer) pendingBytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}

// waiter is one blocked Propose. It goes back to the pool only after its answer came.
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

// Propose replicates a command, with a body unless that is empty, and returns the result
// of applying it here. When ctx ends first, the error is both ErrMaybeCommitted and ctx's.
func (r *Replica) Propose(ctx context.Context, command, body []byte) (any, error) {
	w := r.waiters.Get().(*waiter)
	if err := r.ProposeAsync(command, body, w.done); err != nil {
		r.waiters.Put(w)
		return nil, err
	}
	return r.await(ctx, w)
}

// await waits for a command's answer.
func (r *Replica) await(ctx context.Context, w *waiter) (any, error) {
	select {
	case <-w.ready:
	case <-ctx.Done():
		select {
		case <-w.ready:
		default: // the waiter is left to its late answer
			return nil, errors.Join(member.ErrMaybeCommitted, ctx.Err())
		}
	}
	result, err := w.result, w.err
	w.result, w.err = nil, nil
	r.waiters.Put(w)
	return result, err
}

// ProposeAsync is Propose without waiting. The command is copied, the body is not: it must
// never change again. done is called once, unless an error is returned.
func (r *Replica) ProposeAsync(command, body []byte, done member.Done) error {
	if err := r.fits(command, body); err != nil {
		return err
	}
	if len(body) > 0 {
		return r.proposer.addBody(command, body, done)
	}
	return r.proposer.add(command, done)
}
