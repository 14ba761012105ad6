package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
)

// Client proposes without waiting. Its commands take effect in the order in which it proposed
// them. When proposals are repeated, one instance may overtake another, and one batch may overtake
// another batch of the same instance. So a client has only one unsettled batch at a time. The commands
// that come meanwhile form the next batch. Its methods are safe for concurrent use.
type Client struct {
	r *Replica

	mu      sync.Mutex
	waiting []pendingCommand // in the order in which they were proposed
	flying  bool             // a batch was proposed and is not settled
	// err is why no further commands are taken: an earlier command failed. Perhaps it has no effect,
	// perhaps it takes effect later.
	err error
}

type pendingCommand struct {
	command, body []byte
	done          member.Done
}

// BrokenError says that a command was not proposed, because an earlier command of the same client
// failed and may still take effect. The command has no effect. The caller goes on with a new client.
type BrokenError struct{ Cause error }

func (e *BrokenError) Error() string {
	return "braid: not proposed, for an earlier command of this client failed: " + e.Cause.Error()
}

// Unwrap returns why the earlier command failed.
func (e *BrokenError) Unwrap() error { return e.Cause }

// NewClient returns a client of this member.
func (r *Replica) NewClient() *Client { return &Client{r: r} }

// Propose is Replica.Propose; commands of this client keep their order.
func (c *Client) Propose(ctx context.Context, command, body []byte) (any, error) {
	w := c.r.waiters.Get().(*waiter)
	if err := c.ProposeAsync(command, body, w.done); err != nil {
		c.r.waiters.Put(w)
		return nil, err
	}
	return c.r.await(ctx, w)
}

// ProposeAsync is Replica.ProposeAsync; commands of this client keep their order.
func (c *Client) ProposeAsync(command, body []byte, done member.Done) error {
	if err := c.r.fits(command, body); err != nil {
		return err
	}
	p := c.r.proposer
	next := pendingCommand{append([]byte(nil), command...), body, done}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return &BrokenError{c.err}
	}
	if err := p.admit(next.cost()); err != nil {
		c.mu.Unlock()
		return err
	}
	c.waiting = append(c.waiting, next)
	b := c.next()
	c.mu.Unlock()
	if b != nil {
		p.addWhole(b)
	}
	return nil
}

func (c *pendingCommand) cost() int64 { return member.CommandCost(c.command) + int64(len(c.body)) }

// next makes a batch of the commands that wait, unless a batch is not settled. c.mu is held.
func (c *Client) next() *member.Batch {
	if c.flying || len(c.waiting) == 0 {
		return nil
	}
	c.flying = true
	p := c.r.proposer
	b := member.NewBatch(p.clock(), len(c.waiting[0].command)+8, 1)
	n := 0
	for n < len(c.waiting) {
		w := &c.waiting[n]
		full := n > 0 && (len(w.body) > 0 || len(b.Entry.Payload)+len(w.command) > p.queue.MaxBatch || p.queue.MaxCount > 0 && n >= p.queue.MaxCount)
		if full {
			break
		}
		b.Add(w.command, c.watch(w.done))
		n++
		if len(w.body) > 0 {
			b.SetBody(w.body)
			break
		}
	}
	clear(c.waiting[:n])
	if c.waiting = c.waiting[n:]; len(c.waiting) == 0 {
		c.waiting = nil
	}
	b.Free = func(b *member.Batch) {
		p.free(b)
		c.landed()
	}
	return b
}

// watch notes in the client that a command failed, before done is called.
func (c *Client) watch(done member.Done) member.Done {
	return func(result any, err error) {
		if err != nil && !errors.Is(err, member.ErrResultUnknown) { // with that error it took effect
			c.mu.Lock()
			if c.err == nil {
				c.err = err
			}
			c.mu.Unlock()
		}
		done(result, err)
	}
}

// landed goes on with the next batch. If a command failed, it fails all commands that wait.
func (c *Client) landed() {
	c.mu.Lock()
	c.flying = false
	var failed []pendingCommand
	var b *member.Batch
	err := c.err
	if err != nil {
		failed, c.waiting = c.waiting, nil
	} else {
		b = c.next()
	}
	c.mu.Unlock()
	for i := range failed {
		c.r.proposer.release(failed[i].cost())
		failed[i].done(nil, &BrokenError{err})
	}
	if b != nil {
		c.r.proposer.addWhole(b)
	}
}

// fits returns an error if a command with its body is too large.
func (r *Replica) fits(command, body []byte) error {
	most := min(r.opt.MaxCommandBytes, protocol.MaxEntryBytes-protocol.HeadSize-member.CommandOverhead)
	if n := len(command) + len(body); n > most {
		return fmt.Errorf("%w: %d bytes, limit %d", member.ErrTooLarge, n, most)
	}
	return nil
}
