package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/braidlog/braid/protocol"
)

// proposer gathers this member's commands into batches until the event loop takes them:
// while batches are under way the next one grows.
type proposer struct {
	session  protocol.Session
	clock    func() time.Duration
	wake     func()
	maxBatch int   // payload bytes at which a batch is full
	maxCount int   // commands at which a batch is full; 0: no limit
	maxBytes int64 // of everything that is proposed and not settled

	mu   sync.Mutex
	full []*Batch // oldest first; each was open once
	open *Batch   // nil or with at least one command
	// bytes is the payload of all batches not settled yet; ≤ maxBytes plus one command.
	bytes int64
	hint  struct{ bytes, commands int } // the next batch's likely size: a bit more than the last
	err   error

	next uint64 // sequence number of the next batch taken; the loop's
}

// add puts a command into the batch that is being gathered.
func (p *proposer) add(command []byte, done Done) error {
	cost := commandCost(command)
	p.mu.Lock()
	switch {
	case p.err != nil:
		p.mu.Unlock()
		return p.err
	case p.bytes+cost > p.maxBytes && p.bytes > 0:
		p.mu.Unlock()
		return ErrOverloaded
	}
	p.bytes += cost
	b := p.open
	if b != nil && len(b.Entry.Payload)+len(command) > p.maxBatch {
		p.full = append(p.full, b)
		b = nil
	}
	fresh := b == nil
	if fresh {
		b = NewBatch(p.clock(), max(len(command)+8, min(p.hint.bytes, p.maxBatch)), max(1, p.hint.commands))
		b.free = p.free
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

// free gives back a settled batch's bytes.
func (p *proposer) free(b *Batch) {
	p.mu.Lock()
	p.bytes -= b.cost()
	p.mu.Unlock()
}

// waiting returns the payload bytes of the batch that take would return, 0 if none, and
// whether it is full.
func (p *proposer) waiting() (bytes int, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(p.full) > 0:
		return len(p.full[0].Entry.Payload), true
	case p.open != nil:
		return len(p.open.Entry.Payload), false
	}
	return 0, false
}

// take returns the oldest batch, not yet sealed, or nil.
func (p *proposer) take() *Batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b *Batch
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
	p.hint.bytes = len(b.Entry.Payload) + len(b.Entry.Payload)/4
	p.hint.commands = len(b.done) + len(b.done)/4
	return b
}

// expired takes batches that were never proposed and are older than limit.
func (p *proposer) expired(now, limit time.Duration) (out []*Batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.full) > 0 && now-p.full[0].born > limit {
		out = append(out, p.full[0])
		p.full = p.full[1:]
	}
	if len(p.full) == 0 && p.open != nil && now-p.open.born > limit {
		out = append(out, p.open)
		p.open = nil
	}
	return out
}

// close refuses further commands and returns the batches that were never proposed.
func (p *proposer) close(err error) []*Batch {
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
	done   Done
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

// Propose replicates a command and returns the result of applying it here. When ctx ends
// first, the error is both ErrMaybeCommitted and ctx's.
func (r *Replica) Propose(ctx context.Context, command []byte) (any, error) {
	w := r.waiters.Get().(*waiter)
	if err := r.ProposeAsync(command, w.done); err != nil {
		r.waiters.Put(w)
		return nil, err
	}
	select {
	case <-w.ready:
	case <-ctx.Done():
		select {
		case <-w.ready:
		default: // the waiter is left to its late answer
			return nil, errors.Join(ErrMaybeCommitted, ctx.Err())
		}
	}
	result, err := w.result, w.err
	w.result, w.err = nil, nil
	r.waiters.Put(w)
	return result, err
}

// ProposeAsync is Propose without waiting. The command is copied; done is called once,
// unless an error is returned.
func (r *Replica) ProposeAsync(command []byte, done Done) error {
	if len(command) > r.opt.MaxCommandBytes {
		return fmt.Errorf("%w: %d bytes, limit %d", ErrTooLarge, len(command), r.opt.MaxCommandBytes)
	}
	return r.proposer.add(command, done)
}
