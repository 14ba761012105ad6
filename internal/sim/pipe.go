package sim

import (
	"errors"
	"time"

	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/protocol"
)

// Some clients propose commands without waiting for the answers to earlier ones. Their commands
// take effect in the order in which a member took them in, whatever happens meanwhile.

// pipeClients draws what concerns clients that propose without waiting.
var pipeClients = draw.New("pipe clients")

var (
	writesPiped      = count.New("writes_proposed_without_waiting", "writes proposed without waiting")
	writesUnproposed = count.New("writes_not_proposed_after_a_failure", "writes not proposed after a failure")
)

// drawPipes chooses how many clients propose without waiting.
func (s *Settings) drawPipes(d draw.Chance) {
	if d.Yes(0.5) {
		s.Load.Pipes = d.Share()
	}
}

// pipeline is how many operations more a client begins at once that does not wait.
const pipeline = 6

// pipe is a client of a member in one of its lives, as a program has it that embeds a member. It
// judges the order of its commands.
type pipe struct {
	m    *Member
	life int
	intake.ClientQueue
	last *history.Operation // the last one that was taken in
}

func newPipe(m *Member) *pipe {
	p := &pipe{m: m, life: m.life}
	p.ClientQueue = intake.ClientQueue{Proposals: &m.proposals, Free: p.settled, Mutant: m.w.set.mutant()}
	return p
}

// settled goes on with the next batch, or fails those that wait.
func (p *pipe) settled(b *intake.Batch) {
	fresh, unproposed, err := p.Settled(p.m.clock, b)
	p.m.w.Violate(p.m.id, p.Check())
	if fresh {
		p.m.wakeTakers()
	}
	for _, b := range unproposed {
		p.m.w.Events.Add(writesUnproposed, len(b.Done))
		b.Fail(err)
	}
}

// pipeTo is the client's pipe to a member; nil if it waits for answers, or uses no pipe.
func (c *client) pipeTo(m *Member) *pipe {
	if !c.pipelines {
		return nil
	}
	if c.pipe == nil || c.pipe.m != m || c.pipe.life != m.life {
		c.pipe = newPipe(m)
	}
	return c.pipe
}

// propose asks a member to replicate the command of an operation.
func (c *client) propose(m *Member, op *history.Operation, bytes []byte, done intake.Done) {
	p, o := c.pipeTo(m), c.w.options(op)
	if p == nil {
		m.Propose(&m.proposals, bytes, op, o, done)
		return
	}
	m.Propose(&piped{p, op}, bytes, op, o, func(result any, err error) {
		if broken := (*intake.BrokenError)(nil); errors.As(err, &broken) && c.pipe == p {
			c.pipe = nil // the client goes on with another one
		}
		done(result, err)
	})
}

// piped puts the command of an operation into a pipe, and notes which one is before it.
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
	p.m.w.Violate(p.m.id, p.Check())
	if err == nil {
		p.m.w.Count(writesPiped)
		p.op.Before, p.last = p.last, p.op
	}
	return err
}
