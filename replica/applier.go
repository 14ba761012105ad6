package replica

import (
	"fmt"
	"io"

	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
)

// Loader makes an entry's payload resident: it reads it from where this member keeps it.
type Loader func(instance protocol.InstanceID, e *protocol.Entry) error

// Applier is the pure half of the apply loop: it merges what instances commit, lets each
// proposal take effect at most once, runs the state machine and hands out results. Not
// safe for concurrent use.
type Applier struct {
	order    order.Order
	sessions *Sessions
	sm       StateMachine
	load     Loader
	config   protocol.Config
	session  protocol.Session

	// skip is what a state machine on disk had applied before this life: positions up to
	// it only update the sessions.
	skip protocol.Position
	// last is the position of the last command that the state machine was given; ≥ skip.
	last protocol.Position
	// own are this member's committed batches whose entries were not applied yet, in
	// the order in which they were committed.
	own []*Batch

	placed   []order.Placed
	commands []Command
	settled  []settlement
	// configs is the number of configuration entries applied.
	configs uint64
	// Given is called with the body of each command that the state machine is about to be
	// given, Passed with those of commands that it is not given, because they were applied
	// before; nil: nobody wants to know.
	Given, Passed func(protocol.BodyRef)
	// MutantNoSessions applies duplicates; for the simulator to catch.
	MutantNoSessions bool
}

// settlement is commands of a batch, count from the one numbered from on, whose results
// stand in commands[at:].
type settlement struct {
	batch           *Batch
	from, at, count int
}

// applyChunk is how many commands are handed to the state machine at once, at most: few
// enough to stay in the processor's cache.
const applyChunk = 1024

// NewApplier returns an applier that continues after what meta describes.
func NewApplier(sm StateMachine, o order.Order, meta Meta, session protocol.Session, skip protocol.Position, load Loader) *Applier {
	return &Applier{
		order: o, sessions: NewSessions(meta.Sessions), sm: sm, load: load,
		config: meta.Config.Clone(), session: session, skip: skip, last: max(skip, meta.Command),
	}
}

// Apply applies committed entries. An error is final: the state machine's disk failed, or
// the log is not what was written.
func (a *Applier) Apply(c Commitment) error {
	a.own = append(a.own, c.Own...)
	a.order.Add(c.Instance, c.Entries)
	a.placed = a.order.Next(a.placed[:0])
	for i := range a.placed {
		if err := a.place(&a.placed[i]); err != nil {
			return err
		}
	}
	clear(a.placed)
	return a.flush()
}

func (a *Applier) place(p *order.Placed) error {
	e := &p.Entry
	if !e.Applicable() {
		if err := a.load(p.Instance, e); err != nil {
			return fmt.Errorf("load entry %d of instance %d: %w", e.Index, p.Instance, err)
		}
	}
	switch e.Kind {
	case protocol.EntryBatch:
		return a.placeBatch(p)
	case protocol.EntryConfig:
		c, err := protocol.DecodeConfig(e.Payload)
		if err != nil {
			return fmt.Errorf("entry %d of instance %d: %w", e.Index, p.Instance, err)
		}
		a.config = c
		a.configs++
	}
	return nil
}

func (a *Applier) placeBatch(p *order.Placed) error {
	e := &p.Entry
	own := a.takeOwn(e)
	body, err := a.body(p)
	if err != nil {
		return err
	}
	if !a.sessions.Admit(e) && !a.MutantNoSessions {
		if own != nil {
			own.Fail(ErrResultUnknown)
		}
		tell(a.Passed, body)
		return nil
	}
	rest, from, at := e.Payload, 0, len(a.commands)
	for i := range int(e.Count) {
		command, tail, err := protocol.NextCommand(rest)
		if err != nil {
			return fmt.Errorf("entry %d of instance %d: %w", e.Index, p.Instance, err)
		}
		rest = tail
		if position := p.First + protocol.Position(i); position > a.skip {
			tell(a.Given, body)
			a.commands = append(a.commands, Command{Position: position, Data: command, Body: body})
		} else {
			tell(a.Passed, body)
		}
		if len(a.commands) < applyChunk {
			continue
		}
		a.expect(own, from, at)
		if err := a.flush(); err != nil {
			return err
		}
		from, at = i+1, 0
	}
	a.expect(own, from, at)
	return nil
}

func tell(who func(protocol.BodyRef), body *protocol.BodyRef) {
	if who != nil && body != nil {
		who(*body)
	}
}

// body names the body of an entry's one command; nil if it has none.
func (a *Applier) body(p *order.Placed) (*protocol.BodyRef, error) {
	e := &p.Entry
	if e.BodySize == 0 {
		return nil, nil
	}
	if e.Count != 1 {
		return nil, &protocol.CorruptError{What: "batch", Detail: fmt.Sprintf(
			"entry %d of instance %d has a body and %d commands", e.Index, p.Instance, e.Count)}
	}
	ref := e.Ref(p.Instance)
	return &ref, nil
}

// expect notes that the results of own's commands, numbered from on, will stand in
// commands[at:].
func (a *Applier) expect(own *Batch, from, at int) {
	if count := len(a.commands) - at; own != nil && count > 0 {
		a.settled = append(a.settled, settlement{own, from, at, count})
	}
}

// takeOwn finds the waiting batch for an entry of this member's session, usually the first.
func (a *Applier) takeOwn(e *protocol.Entry) *Batch {
	if e.ID.Session != a.session {
		return nil
	}
	for i, b := range a.own {
		if b.Entry.ID.Seq == e.ID.Seq {
			a.own = append(a.own[:i], a.own[i+1:]...)
			return b
		}
	}
	return nil
}

// flush runs the state machine on what gathered and completes whole batches in one pass.
func (a *Applier) flush() error {
	if n := len(a.commands); n > 0 {
		a.last = a.commands[n-1].Position
		if err := a.sm.Apply(a.commands); err != nil {
			return fmt.Errorf("state machine: %w", err)
		}
	}
	for _, s := range a.settled {
		s.batch.settle(s.from, a.commands[s.at:s.at+s.count])
	}
	clear(a.settled)
	clear(a.commands)
	a.settled, a.commands = a.settled[:0], a.commands[:0]
	return nil
}

// Install replaces everything by a snapshot: its meta and its state. Batches of this
// member behind it took effect or not: they are told so.
func (a *Applier) Install(o order.Order, meta Meta, state io.Reader) error {
	if state != nil {
		if err := a.sm.Restore(state); err != nil {
			return fmt.Errorf("state machine: restore: %w", err)
		}
	}
	a.order, a.sessions, a.config = o, NewSessions(meta.Sessions), meta.Config.Clone()
	a.skip, a.last = meta.Command, meta.Command // the state may be ahead of the cursor
	a.FailOwn(ErrResultUnknown)
	return nil
}

// FailOwn tells every batch that is committed and not applied here an error.
func (a *Applier) FailOwn(err error) {
	for _, s := range a.settled {
		s.batch.failFrom(s.from, err)
	}
	clear(a.settled)
	clear(a.commands)
	a.settled, a.commands = a.settled[:0], a.commands[:0]
	for _, b := range a.own {
		b.Fail(err)
	}
	a.own = nil
}

// Cursor tells how far the global log is applied.
func (a *Applier) Cursor() order.Cursor { return a.order.Cursor() }

// Config is the membership as of the cursor.
func (a *Applier) Config() protocol.Config { return a.config }

// Meta describes the applied state for a snapshot.
func (a *Applier) Meta() Meta {
	return Meta{Cursor: a.order.Cursor().Clone(), Command: a.last, Config: a.config.Clone(), Sessions: a.sessions.States()}
}

// Check verifies the invariants.
func (a *Applier) Check() error {
	if err := a.sessions.Check(); err != nil {
		return err
	}
	if a.last < a.skip {
		return fmt.Errorf("applier: at command %d, but the state is at %d", a.last, a.skip)
	}
	return a.order.Check()
}
