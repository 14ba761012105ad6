package replica

import (
	"context"
	"time"

	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/protocol"
)

// ProposeWith is Propose of a command with options. In protocol.ModeAccepted the result is a [*intake.Accepted], or the
// result of applying the command if no one promised anything before. If the command waits for those of o.After, and
// ctx's deadline or o.Wait is over first, the error is a [member.TokenError]: the command was not proposed.
func (r *Replica) ProposeWith(ctx context.Context, command, body []byte, o protocol.ProposeOptions) (any, error) {
	if ctx.Err() != nil {
		return nil, notSent(ctx)
	}
	began := time.Duration(0)
	if o.Stages != nil {
		began = r.now()
	}
	if tokens := r.first().program.Proposing.Held(&o); len(tokens) > 0 {
		if _, err := r.proposer.queue.Home(&o); err != nil {
			return nil, err // groups have no tokens
		}
		if err := r.awaitOthers(ctx, &o, tokens); err != nil {
			return nil, err
		}
	}
	w := r.waiters.get()
	if o.Stages != nil {
		w.tells, w.stages, w.began = true, o.Stages, began
	}
	if err := r.proposer.proposeAny(command, body, &o, w); err != nil {
		r.waiters.put(w)
		return nil, err
	}
	return r.await(ctx, w, o.Timeout)
}

// proposeAny is proposeWith, or propose where there are no options.
func (p *proposer) proposeAny(command, body []byte, o *protocol.ProposeOptions, w *waiter) error {
	if o.Plain() && o.Wait == 0 && o.Timeout >= 0 {
		return p.propose(&p.queue, command, body, w.done, &w.ticket)
	}
	return p.proposeWith(&p.queue, command, body, o, w.done, &w.ticket)
}

// awaitOthers waits for the commands that are to take effect before a proposal, which does not wait for
// them any more then.
func (r *Replica) awaitOthers(ctx context.Context, o *protocol.ProposeOptions, tokens []protocol.Token) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.Wait > 0 {
		within, cancel := context.WithTimeout(ctx, o.Wait)
		defer cancel()
		ctx = within
	}
	o.After, o.Wait = nil, 0
	return r.AwaitTokens(ctx, tokens)
}

// ProposeWithAsync is ProposeWith without waiting: see ProposeAsync.
func (r *Replica) ProposeWithAsync(command, body []byte, o protocol.ProposeOptions, done intake.Done) error {
	return r.proposer.proposeWith(&r.proposer.queue, command, body, &o, done, nil)
}

// ProposeWithAsync is Replica.ProposeWithAsync; commands of this client keep their order.
func (c *Client) ProposeWithAsync(command, body []byte, o protocol.ProposeOptions, done intake.Done) error {
	return c.r.proposer.proposeWith(&c.queue, command, body, &o, done, nil)
}

// proposeWith is propose of a command with options.
func (p *proposer) proposeWith(to commands, command, body []byte, o *protocol.ProposeOptions, done intake.Done,
	ticket *intake.Ticket) error {
	if err := p.queue.Fits(command, body); err != nil {
		return err
	}
	var whole *intake.Batch
	if len(body) > 0 {
		whole = intake.NewBodyBatch(command, body, done) // it reads the whole body
	}
	fresh, err := p.addWith(to, command, whole, o, done, ticket)
	if fresh {
		home, _ := p.queue.Home(o) // it was taken, so there is one
		p.wake(home)
	}
	return err
}

func (p *proposer) addWith(to commands, command []byte, whole *intake.Batch, o *protocol.ProposeOptions,
	done intake.Done, ticket *intake.Ticket) (fresh bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if whole == nil {
		fresh, err = to.AddWith(p.clock, command, o, done)
	} else if err = p.queue.SetOptions(whole, o); err == nil {
		fresh, err = to.AddBody(p.clock, whole)
	}
	p.noteTicket(ticket, err)
	return fresh, err
}
