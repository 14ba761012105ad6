package intake

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
)

// DefaultBatchBytes is the default of MaxBatch. Batches of instances in a merged log leave by links of their own, and
// the log waits for the last of them. So a burst of commands has to be cut into pieces that can be distributed.
const DefaultBatchBytes = 128 << 10

// Proposals collects a member's commands into batches until an instance takes them. While batches
// are pending the next one grows. Not safe for concurrent use.
type Proposals struct {
	MaxCommand int   // bytes of a command with its body; 0: as many as an entry takes
	MaxBatch   int   // payload bytes at which a batch is full
	MaxCount   int   // commands at which a batch is full; 0: no limit
	MaxBytes   int64 // of everything that is proposed and not settled
	// Proposing is how the core takes proposals: see Follow.
	Proposing protocol.Proposing
	// Free is called with each settled batch. It is to call Settled in the end.
	Free func(*Batch)
	// Held is called when a command begins to wait for others. What is applied is to be looked at soon, after the call:
	// see Applied. It may be nil if no one proposes commands with tokens.
	Held func()
	// Asked sums up the commands that were answered. Blind ones count also where the core has no lanes.
	Asked  fit.Load
	Mutant mutant.Name // low-passes-unsettled, withdraw-sent, seal-numbered-again

	queue batchQueue
	// groups are the instances of a keyed order, and queues what waits for each; empty if the order is not keyed. Then
	// queue is empty, and no one has numbers of numbers.
	groups []protocol.InstanceID
	queues []groupQueue
	// held are batches that wait until other commands are applied, in the order in which they came.
	// Each waits for at least one.
	held    []*Batch
	numbers numbers
	// followed counts the calls of Follow.
	followed uint32
	// bytes is the payload of all batches not settled yet; ≤ MaxBytes plus one command.
	bytes int64
	err   error
	last  Ticket
}

// Fits returns an error if a command with its body is too large. It depends on nothing that changes.
func (p *Proposals) Fits(command, body []byte) error {
	most := protocol.MaxEntryBytes - protocol.HeadSize - CommandOverhead
	if p.MaxCommand > 0 {
		most = min(most, p.MaxCommand)
	}
	if n := len(command) + len(body); n > most {
		return fmt.Errorf("%w: %d bytes, limit %d", member.ErrTooLarge, n, most)
	}
	return nil
}

// reserve counts the cost of a command that is to be proposed, or refuses the command.
func (p *Proposals) reserve(cost int64) error {
	switch {
	case p.err != nil:
		return p.err
	case p.bytes+cost > p.MaxBytes && p.bytes > 0:
		return member.ErrOverloaded
	}
	p.bytes += cost
	return nil
}

// Settled is called when a batch has its results: it adds them to the load, releases bytes, and settles the numbers.
func (p *Proposals) Settled(now time.Duration, b *Batch) {
	count(&p.Asked, now, b)
	if p.last.Batch == b {
		p.last = Ticket{} // it may have a large body
	}
	p.bytes -= b.Cost()
	p.numbersOf(b).settle(b)
}

// NewBodyBatch makes a batch for a single command with a body.
func NewBodyBatch(command, body []byte, done Done) *Batch {
	b := NewBatch(0, len(command)+8, 1)
	b.Add(command, done)
	b.SetBody(body)
	return b
}

// AddBody takes a batch with one command, as of NewBodyBatch. Commands that came before it stay before
// it, unless it is to wait for others. On an error it is not taken, and not settled.
func (p *Proposals) AddBody(now func() time.Duration, b *Batch) (fresh bool, err error) {
	if err := p.refuseUnkeyed(b); err != nil {
		return false, err
	}
	if err := p.reserve(b.Cost()); err != nil {
		return false, err
	}
	b.Born, b.Free = now(), p.Free
	b.after.begin(b.Born)
	p.took(b)
	return p.addWhole(b), nil
}

// addWhole adds a batch that is complete, or holds it if it waits for other commands. It reports
// whether an instance has to look.
func (p *Proposals) addWhole(b *Batch) (fresh bool) {
	p.fit(b)
	if len(b.after.Tokens) > 0 {
		p.held = append(p.held, b)
		p.Held()
		return false
	}
	p.of(b.home).addWhole(b)
	return true
}

// Add puts a command into the batch that is open. fresh says that the command began a batch, so
// that an instance has to look. Add asks for the time only then.
//
// Each proposer runs Add on a stack of its own. The stacks of thousands of proposers do not fit into a
// near cache. So what Add does for every command is inlined: the less stack it uses, the better.
func (p *Proposals) Add(now func() time.Duration, command []byte, done Done) (fresh bool, err error) {
	if p.Keyed() {
		return p.AddWith(now, command, &protocol.ProposeOptions{}, done)
	}
	if err := p.reserve(CommandCost(command)); err != nil {
		return false, err
	}
	if o := p.queue.open; o != nil && o.Options != nil {
		p.queue.turn(nil, 0)
	}
	b := p.queue.room(p, command)
	if fresh = b == nil; fresh {
		b = p.queue.begin(p, now(), command)
		b.Free = p.Free
	}
	b.Add(command, done)
	p.took(b)
	p.queue.added(p)
	return fresh, nil
}

// AddWith is Add for a command with options. Commands of one batch take the same path, in the same mode.
// If the command is to wait for others, those that come meanwhile do not wait for it.
func (p *Proposals) AddWith(now func() time.Duration, command []byte, o *protocol.ProposeOptions,
	done Done) (fresh bool, err error) {
	if p.Keyed() {
		return p.addKeyed(now, command, o, done)
	}
	use, path, err := p.use(o)
	if err != nil {
		return false, err
	}
	if len(p.Proposing.Held(o)) > 0 {
		return p.AddBody(now, p.waiting(command, o, done))
	}
	if use == nil {
		if fresh, err = p.Add(now, command, done); err == nil {
			p.last.Batch.noteBlind(o)
		}
		return fresh, err
	}
	if err := p.reserve(CommandCost(command) + int64(use.Bytes())); err != nil {
		return false, err
	}
	b := p.queue.roomWith(p, command, use, path)
	if fresh = b == nil; fresh {
		b = p.queue.begin(p, now(), command)
		b.Free = p.Free
	}
	b.addWith(command, use, path, done)
	b.noteBlind(o)
	b.fits = p.followed
	p.took(b)
	p.queue.added(p)
	return fresh, nil
}

// addKeyed is AddWith where each command goes to the group of its keys.
func (p *Proposals) addKeyed(now func() time.Duration, command []byte, o *protocol.ProposeOptions,
	done Done) (fresh bool, err error) {
	home, err := p.Home(o)
	if err == nil {
		err = p.reserve(CommandCost(command))
	}
	if err != nil {
		return false, err
	}
	fresh, b := p.addTo(home, p.of(home), command, done)
	if fresh {
		b.Born, b.Free = now(), p.Free
	}
	return fresh, nil
}

// use returns what the protocol takes notice of; nil if that is nothing, and the path is the first one.
func (p *Proposals) use(o *protocol.ProposeOptions) (*protocol.ProposeOptions, protocol.Path, error) {
	if err := o.Validate(); err != nil {
		return nil, 0, err
	}
	use, path := p.Proposing.Use(*o), protocol.Path(0)
	if p.Proposing.Path != nil {
		path = p.Proposing.Path(&use)
	}
	if use.Plain() && path == 0 {
		return nil, 0, nil
	}
	return &use, path, nil
}

// SetOptions gives options to a batch with one command, before it is added.
func (p *Proposals) SetOptions(b *Batch, o *protocol.ProposeOptions) error {
	use, path, err := p.use(o)
	if err != nil {
		return err
	}
	if use != nil {
		b.addOptions(use, path)
	}
	b.noteBlind(o)
	b.fits = p.followed
	if tokens := p.Proposing.Held(o); len(tokens) > 0 {
		b.after = newAwaited(tokens, o.Wait)
		b.bytes += b.after.Bytes()
	}
	return nil
}

// Follow takes in how another core takes proposals, from now on. What waits keeps what that core uses of its options.
// It does not wait for the tokens that the core before took care of: no core has both Tokens and a successor.
func (p *Proposals) Follow(how protocol.Proposing) {
	p.Proposing = how
	p.followed++
	for q := range p.all {
		q.closeAll()
		for _, b := range q.full {
			p.fit(b)
		}
	}
	for _, b := range p.held {
		p.fit(b)
	}
}

// fit has a batch keep what the core uses of its options, if they are those for a core before. It costs what it did.
func (p *Proposals) fit(b *Batch) {
	if b.fits == p.followed {
		return
	}
	if b.fits = p.followed; b.Options == nil {
		return
	}
	use := p.Proposing.Use(*b.Options)
	if b.Options, b.Path = &use, 0; p.Proposing.Path != nil {
		b.Path = p.Proposing.Path(&use)
	}
	if use.Plain() && b.Path == 0 {
		b.Options = nil
	}
}

// waiting makes a batch of a command that is to wait for others. The options are valid.
func (p *Proposals) waiting(command []byte, o *protocol.ProposeOptions, done Done) *Batch {
	b := NewBatch(0, len(command)+8, 1)
	b.Add(command, done)
	_ = p.SetOptions(b, o)
	return b
}

// Awaits reports whether commands wait for others.
func (p *Proposals) Awaits() bool { return len(p.held) > 0 }

// Applied lets in the commands that have waited long enough, now that more is applied. token is what is known of the
// command of a token, see Applier.Token. It reports whether an instance has to look.
func (p *Proposals) Applied(now time.Duration, token func(protocol.Token) member.TokenState) (fresh bool) {
	keep := p.held[:0]
	for _, b := range p.held {
		if now >= b.after.Until || !b.after.AllApplied(token) {
			keep = append(keep, b) // if it is too late, Expired takes it
			continue
		}
		p.letIn(now, b)
		fresh = true
	}
	clear(p.held[len(keep):])
	p.held = keep
	return fresh
}

// letIn adds a batch that waits no more. The time for which it may be tried begins now. If another
// batch is open that takes its command, it joins that.
func (p *Proposals) letIn(now time.Duration, b *Batch) {
	b.Born = now
	if b.whole || b.Entry.BodySize > 0 || b.Empty() {
		p.queue.addWhole(b)
		return
	}
	if into := p.queue.roomFor(p, b); into != nil {
		into.absorb(b)
	} else {
		p.queue.open = b
	}
	p.queue.added(p)
}

// Again puts batches that were taken before in front of all others. They keep their numbers. So
// they take effect at most once, whatever became of them before. An error says that there are no
// proposals any more. The batches are not settled then.
func (p *Proposals) Again(batches []*Batch) error {
	if p.err != nil {
		return p.err
	}
	for _, b := range batches {
		b.taker = 0
		p.fit(b)
	}
	if !p.Keyed() {
		p.queue.full = append(slices.Clone(batches), p.queue.full...)
		return nil
	}
	for _, b := range slices.Backward(batches) {
		q := p.of(b.home)
		q.full = slices.Insert(q.full, 0, b)
	}
	return nil
}

// Waiting returns the bytes of the batch that Take would return, 0 if there is none, whether it is full, and its path.
func (p *Proposals) Waiting() (bytes int, full bool, path protocol.Path) { return p.queue.waiting() }

// WaitingFor is Waiting for an instance, which TakeFor asks for.
func (p *Proposals) WaitingFor(instance protocol.InstanceID) (bytes int, full bool, path protocol.Path) {
	if p.Mutant == member.MutantAnyGroup {
		return p.anyGroup(instance).waiting()
	}
	return p.of(instance).waiting()
}

func (q *batchQueue) waiting() (bytes int, full bool, path protocol.Path) {
	switch {
	case len(q.full) > 0:
		return q.full[0].Size(), true, q.full[0].Path
	case len(q.aside) > 0:
		return q.aside[0].Size(), false, q.aside[0].Path
	case q.open != nil:
		return len(q.open.Entry.Payload), false, q.open.Path
	}
	return 0, false, 0
}

// Take returns the oldest batch with its numbers, or nil.
func (p *Proposals) Take() *Batch { return p.numbered(p.queue.pop(), protocol.FirstInstance) }

// TakeFor is Take for an instance: in a keyed order it takes only what is of its group.
func (p *Proposals) TakeFor(instance protocol.InstanceID) *Batch {
	if p.Mutant == member.MutantAnyGroup {
		return p.numbered(p.anyGroup(instance).pop(), instance)
	}
	return p.numbered(p.of(instance).pop(), instance)
}

// numbered gives a batch its numbers as an instance takes it.
func (p *Proposals) numbered(b *Batch, taker protocol.InstanceID) *Batch {
	if b != nil {
		if p.Mutant == member.MutantNumberedAgain && b.turn > 0 && b.taker != taker {
			p.numbersOf(b).settle(b)
			b.turn = 0
		}
		b.taker = taker
		p.numbersOf(b).assign(b, p.Mutant == member.MutantLowEarly)
	}
	return b
}

// Expired takes out batches that wait, were not answered, and are older than limit.
func (p *Proposals) Expired(now, limit time.Duration) (out []*Batch) {
	expires := func(b *Batch) bool {
		old := now-b.Born > limit && !b.Answered
		if old {
			out = append(out, b)
		}
		return old
	}
	for q := range p.all {
		q.full, q.aside = slices.DeleteFunc(q.full, expires), slices.DeleteFunc(q.aside, expires)
		if q.open != nil && expires(q.open) {
			q.open = nil
		}
	}
	p.held = slices.DeleteFunc(p.held, func(b *Batch) bool {
		if now >= b.after.Until {
			out = append(out, b)
			return true
		}
		return expires(b)
	})
	return gone(out)
}

// gone notes that batches were taken out to fail. Whoever does that does not hold what guards the proposals, so nothing
// is withdrawn from them any more.
func gone(batches []*Batch) []*Batch {
	for _, b := range batches {
		b.gone = true
	}
	return batches
}

// Close refuses further commands. It returns the batches that wait.
func (p *Proposals) Close(err error) []*Batch {
	p.err = err
	var out []*Batch
	for q := range p.all {
		out = append(out, q.drain()...)
	}
	out = append(out, p.held...)
	p.held = nil
	return gone(out)
}

// Err is why there are no proposals any more, nil if there are.
func (p *Proposals) Err() error { return p.err }

// Bytes is the cost of everything not settled.
func (p *Proposals) Bytes() int64 { return p.bytes }

// Check verifies the invariants.
func (p *Proposals) Check() error {
	for _, b := range p.held {
		if len(b.after.Tokens) == 0 || b.turn > 0 || len(b.Done) != 1 {
			return fmt.Errorf("proposals: a batch of %d commands waits for %d others, and is the %dth", len(b.Done),
				len(b.after.Tokens), b.turn)
		}
	}
	for i := range p.queues {
		if err := p.queues[i].numbers.check(); err != nil {
			return err
		}
	}
	if p.Keyed() && p.queue.open != nil {
		return errors.New("proposals: a batch waits that has no group")
	}
	return p.numbers.check()
}

// batchQueue is commands in the order in which they came, in batches.
type batchQueue struct {
	full []*Batch // oldest first; each was open once, or has a body
	open *Batch   // nil or with at least one command
	// aside are open batches that take other paths than open, each with at least one command; empty if
	// the queue is ordered.
	aside []*Batch
	// ordered: the batches keep the order of their commands, also of different paths.
	ordered bool
	hint    struct{ bytes, commands int } // the next batch's likely size: a bit more than the last one's
}

// room returns the open batch if it takes the command, nil if a batch is to begin.
func (q *batchQueue) room(p *Proposals, command []byte) *Batch {
	if b := q.open; b != nil && len(b.Entry.Payload)+len(command) > p.MaxBatch {
		q.close()
	}
	return q.open
}

// roomWith is room for a command with options.
func (q *batchQueue) roomWith(p *Proposals, command []byte, o *protocol.ProposeOptions, path protocol.Path) *Batch {
	if b := q.open; b != nil && !b.goes(o, path) {
		q.turn(o, path)
	}
	if b := q.open; b != nil && !b.Options.Takes(o) {
		q.close()
	}
	return q.room(p, command)
}

// roomFor returns the open batch if it takes the commands of another one, nil if that is to be the
// open one.
func (q *batchQueue) roomFor(p *Proposals, b *Batch) *Batch {
	if b.Options != nil {
		return q.roomWith(p, b.Entry.Payload, b.Options, b.Path)
	}
	if q.open != nil && q.open.Options != nil {
		q.turn(nil, 0)
	}
	return q.room(p, b.Entry.Payload)
}

// turn sets the open batch aside, which does not go with a command. The one that does is opened again,
// if there is one.
func (q *batchQueue) turn(o *protocol.ProposeOptions, path protocol.Path) {
	if q.ordered {
		q.close()
		return
	}
	at := slices.IndexFunc(q.aside, func(b *Batch) bool { return b.goes(o, path) })
	set := q.open
	if q.open = nil; at >= 0 {
		q.open = q.aside[at]
		q.aside = slices.Delete(q.aside, at, at+1)
	}
	q.aside = append(q.aside, set)
}

// begin opens a batch for a command that comes now.
func (q *batchQueue) begin(p *Proposals, now time.Duration, command []byte) *Batch {
	q.open = NewBatch(now, max(len(command)+8, min(q.hint.bytes, p.MaxBatch)), max(1, q.hint.commands))
	return q.open
}

// added closes the open batch if a command has filled it.
func (q *batchQueue) added(p *Proposals) {
	if p.MaxCount > 0 && int(q.open.Entry.Count) >= p.MaxCount {
		q.close()
	}
}

// addWhole adds a batch that is complete.
func (q *batchQueue) addWhole(b *Batch) {
	q.closeAll()
	q.full = append(q.full, b)
}

// close ends the open batch, if there is one.
func (q *batchQueue) close() {
	if q.open != nil {
		q.full = append(q.full, q.open)
		q.open = nil
	}
}

// closeAll ends all open batches.
func (q *batchQueue) closeAll() {
	q.full = append(q.full, q.aside...)
	clear(q.aside)
	q.aside = q.aside[:0]
	q.close()
}

// pop removes and returns the oldest batch; nil if there is none.
func (q *batchQueue) pop() *Batch {
	var b *Batch
	switch {
	case len(q.full) > 0:
		b = q.full[0]
		q.full[0] = nil
		q.full = q.full[1:]
	case len(q.aside) > 0:
		b = q.aside[0]
		q.aside = slices.Delete(q.aside, 0, 1)
	case q.open != nil:
		b, q.open = q.open, nil
	default:
		return nil
	}
	if b.Entry.BodySize > 0 {
		return b // it says nothing about the next one
	}
	q.hint.bytes = len(b.Entry.Payload) + len(b.Entry.Payload)/4
	q.hint.commands = len(b.Done) + len(b.Done)/4
	return b
}

// drain takes out all batches.
func (q *batchQueue) drain() []*Batch {
	q.closeAll()
	out := q.full
	q.full = nil
	return out
}
