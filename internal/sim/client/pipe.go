package client

import (
	"errors"
	"time"

	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Some clients propose commands without waiting for the responses to earlier ones. Their commands take effect in the
// order in which a member accepted them, whatever happens meanwhile.

// pipeClients draws the choices of clients that propose without waiting.
var pipeClients = draw.New("pipe clients")

var (
	writesPiped      = count.New("writes_proposed_without_waiting", "writes proposed without waiting")
	writesUnproposed = count.New("writes_not_proposed_after_a_failure", "writes not proposed after a failure")
)

// Pipeline returns the number of additional operations that a client without waiting begins at once.
const Pipeline = 6

// pipe is a client of one incarnation of a member, like a program that embeds a member. It judges the order of its
// commands.
type pipe struct {
	m    *node.Member
	life int
	intake.ClientQueue
	last *history.Operation // the last accepted one
}

func newPipe(m *node.Member) *pipe {
	p := &pipe{m: m, life: m.Life}
	p.ClientQueue = intake.ClientQueue{Proposals: &m.Proposals, Free: p.settled, Mutant: m.Env.Set.MutantName()}
	return p
}

// settled proposes the next batch, or fails the waiting ones.
func (p *pipe) settled(b *intake.Batch) {
	fresh, unproposed, err := p.Settled(p.m.Clock, b)
	p.m.Env.Violate(p.m.ID, p.Check())
	if fresh {
		p.m.WakeTakers()
	}
	for _, b := range unproposed {
		p.m.Env.Events.Add(writesUnproposed, len(b.Done))
		b.Fail(err)
	}
}

// pipeTo returns the client's pipe to a member; nil if it waits for responses, or uses no pipe.
func (c *Client) pipeTo(m *node.Member) *pipe {
	if !c.pipelines {
		return nil
	}
	if c.pipe == nil || c.pipe.m != m || c.pipe.life != m.Life {
		c.pipe = newPipe(m)
	}
	return c.pipe
}

// propose asks a member to replicate the command of an operation.
func (c *Client) propose(m *node.Member, op *history.Operation, bytes []byte, done intake.Done) {
	p, o := c.pipeTo(m), c.w.options(op)
	if p == nil {
		m.Propose(&m.Proposals, bytes, op, o, done)
		return
	}
	m.Propose(&piped{p, op}, bytes, op, o, func(result any, err error) {
		if broken := (*intake.BrokenError)(nil); errors.As(err, &broken) && c.pipe == p {
			c.pipe = nil // the client continues with another one
		}
		done(result, err)
	})
}

// piped puts the command of an operation into a pipe, and records its predecessor.
type piped struct {
	*pipe
	op *history.Operation
}

// Add implements commands.
func (p *piped) Add(now func() time.Duration, command []byte, done intake.Done) (fresh bool, err error) {
	fresh, err = p.pipe.Add(now, command, done)
	return fresh, p.took(err)
}

// AddWith implements commands.
func (p *piped) AddWith(now func() time.Duration, command []byte, o *protocol.ProposeOptions, done intake.Done) (fresh bool, err error) {
	fresh, err = p.pipe.AddWith(now, command, o, done)
	return fresh, p.took(err)
}

// AddBody implements commands.
func (p *piped) AddBody(now func() time.Duration, b *intake.Batch) (fresh bool, err error) {
	fresh, err = p.pipe.AddBody(now, b)
	return fresh, p.took(err)
}

func (p *piped) took(err error) error {
	p.m.Env.Violate(p.m.ID, p.Check())
	if err == nil {
		p.m.Env.Count(writesPiped)
		p.op.Before, p.last = p.last, p.op
	}
	return err
}
