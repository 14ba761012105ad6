package replica

import (
	"context"

	"github.com/braidlog/braid/internal/member/intake"
)

// Client proposes without waiting. Its commands take effect in the order in which it proposed
// them: see intake.ClientQueue. Its methods are safe for concurrent use.
type Client struct {
	r     *Replica
	queue intake.ClientQueue // guarded by proposer.mu
}

// NewClient returns a client of this member.
func (r *Replica) NewClient() *Client {
	c := &Client{r: r}
	c.queue = intake.ClientQueue{Proposals: &r.proposer.queue, Free: c.settled}
	return c
}

// Propose is Replica.Propose; commands of this client keep their order.
func (c *Client) Propose(ctx context.Context, command, body []byte) (any, error) {
	return c.r.replicate(ctx, &c.queue, command, body)
}

// ProposeAsync is Replica.ProposeAsync; commands of this client keep their order.
func (c *Client) ProposeAsync(command, body []byte, done intake.Done) error {
	return c.r.proposer.propose(&c.queue, command, body, done, nil)
}

// settled continues with the next batch, or fails those that wait.
func (c *Client) settled(b *intake.Batch) {
	p := c.r.proposer
	p.mu.Lock()
	fresh, unproposed, err := c.queue.Settled(p.clock, b)
	p.mu.Unlock()
	if fresh {
		p.wake(0)
	}
	for _, b := range unproposed {
		b.Fail(err)
	}
}
