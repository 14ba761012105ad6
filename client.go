package braid

import (
	"context"

	"github.com/braidlog/braid/internal/replica"
)

// Client proposes without waiting, and its commands take effect in the order in which it proposed them. Its methods are
// safe for concurrent use. See [Node.Client].
type Client struct{ c *replica.Client }

// Client returns a client. Commands that are proposed to the [Node] itself keep their order only if each is proposed
// after the one before it was answered. After a failure the client refuses further commands with a [BrokenError],
// because the failed command might take effect after them.
func (n *Node) Client() *Client { return &Client{n.r.NewClient()} }

// Propose is [Node.ProposeBody] in the client's order. body may be nil.
func (c *Client) Propose(ctx context.Context, command, body []byte) (any, error) {
	return c.c.Propose(ctx, command, body)
}

// ProposeAsync is [Node.ProposeBodyAsync] in the client's order. body may be nil.
func (c *Client) ProposeAsync(command, body []byte, done func(result any, err error)) error {
	return c.c.ProposeAsync(command, body, done)
}

// ProposeWithAsync is [Node.ProposeWithAsync] in the client's order. body may be nil.
func (c *Client) ProposeWithAsync(command, body []byte, o ProposeOptions, done func(result any, err error)) error {
	return c.c.ProposeWithAsync(command, body, o, done)
}
