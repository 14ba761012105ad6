package replica

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/protocol"
)

// proposer holds the member's Proposals. All event loops take batches from it.
type proposer struct {
	clock func() time.Duration
	// wake wakes the instance that may take a batch; 0: whichever suits best.
	wake func(home protocol.InstanceID)

	mu    sync.Mutex       // guards the ClientQueue of each Client, too
	queue intake.Proposals // guarded by mu
	// awaits: commands wait until others are applied.
	awaits atomic.Bool
}

// newProposer makes a proposer. look makes Apply look whether commands still have to wait for others.
func newProposer(clock func() time.Duration, wake func(protocol.InstanceID), look func(), o *Options) *proposer {
	p := &proposer{clock: clock, wake: wake}
	p.queue = intake.Proposals{MaxCommand: o.MaxCommandBytes, MaxBatch: o.MaxBatchBytes, MaxCount: o.MaxBatchCommands,
		MaxBytes: o.MaxPendingBytes, Free: p.free}
	if o.Begin.Keyed {
		p.queue.SetGroups(o.Begin.Instances())
	}
	p.queue.Held = func() {
		p.awaits.Store(true)
		look()
	}
	return p
}

// follow takes in how the core of the first instance takes proposals.
func (p *proposer) follow(how protocol.Proposing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.Follow(how)
}

// applied lets in commands that waited for what is applied now. Apply calls it.
func (p *proposer) applied(a *apply.Applier) {
	if !p.awaits.Load() {
		return
	}
	p.mu.Lock()
	fresh := p.queue.Applied(p.clock(), a.Token)
	p.awaits.Store(p.queue.Awaits())
	p.mu.Unlock()
	if fresh {
		p.wake(0)
	}
}

// commands is where commands are put: the member's Proposals, or a client's queue before them.
type commands interface {
	Add(now func() time.Duration, command []byte, done intake.Done) (fresh bool, err error)
	AddWith(now func() time.Duration, command []byte, o *protocol.ProposeOptions, done intake.Done) (fresh bool, err error)
	AddBody(now func() time.Duration, b *intake.Batch) (fresh bool, err error)
}

// propose takes a command, with a body if there is one. If it may be withdrawn later, ticket is set to name it.
func (p *proposer) propose(to commands, command, body []byte, done intake.Done, ticket *intake.Ticket) error {
	if err := p.queue.Fits(command, body); err != nil {
		return err
	}
	if len(body) > 0 {
		return p.proposeBody(to, command, body, done, ticket)
	}
	p.mu.Lock()
	fresh, err := to.Add(p.clock, command, done)
	p.noteTicket(ticket, err)
	p.mu.Unlock()
	if fresh {
		p.wake(0)
	}
	return err
}

func (p *proposer) proposeBody(to commands, command, body []byte, done intake.Done, ticket *intake.Ticket) error {
	b := intake.NewBodyBatch(command, body, done) // it reads the whole body
	p.mu.Lock()
	fresh, err := to.AddBody(p.clock, b)
	p.noteTicket(ticket, err)
	p.mu.Unlock()
	if fresh {
		p.wake(0)
	}
	return err
}

// noteTicket names the command that was taken last, unless a later one was refused. p.mu is held.
func (p *proposer) noteTicket(t *intake.Ticket, err error) {
	if t != nil && err == nil {
		*t = p.queue.Last()
	}
}

// withdraw withdraws a command that waits. Otherwise it returns the instance that has it.
func (p *proposer) withdraw(t intake.Ticket) (ok bool, instance protocol.InstanceID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Withdraw(t)
}

// again puts back batches that event loops took, in front of all others.
func (p *proposer) again(batches []*intake.Batch) {
	p.mu.Lock()
	err := p.queue.Again(batches)
	p.mu.Unlock()
	if err == nil {
		p.wake(0)
		return
	}
	for _, b := range batches {
		b.Fail(err)
	}
}

// free takes off the bytes of a settled batch.
func (p *proposer) free(b *intake.Batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.Settled(p.clock(), b)
}

func (p *proposer) waiting(instance protocol.InstanceID) (bytes int, full bool, path protocol.Path) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.WaitingFor(instance)
}

func (p *proposer) nextBatch(instance protocol.InstanceID) *intake.Batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.TakeFor(instance)
}

func (p *proposer) expired(now, limit time.Duration) []*intake.Batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Expired(now, limit)
}

// close refuses all further commands and returns the batches that were never proposed.
func (p *proposer) close(err error) []*intake.Batch {
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

// answered sums up the commands that were answered.
func (p *proposer) answered() fit.Load {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Asked
}

// Propose replicates a command, and a body if there is one. It returns the result of applying the
// command on this member. If ctx ends first, the error is ctx's, and ErrNotSent if the command has not left
// this member, else ErrMaybeCommitted. It comes some milliseconds later, see waiters.
func (r *Replica) Propose(ctx context.Context, command, body []byte) (any, error) {
	return r.replicate(ctx, &r.proposer.queue, command, body)
}

// ProposeAsync is Propose without waiting. It copies the command. It does not copy the body, which
// must never change again. done is called once, unless ProposeAsync returns an error.
func (r *Replica) ProposeAsync(command, body []byte, done intake.Done) error {
	return r.proposer.propose(&r.proposer.queue, command, body, done, nil)
}
