package intake

import (
	"errors"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// Done is told what became of a command: the state machine's result, or why there is
// none. It is called once, from the apply loop or the event loop, and must not block.
type Done func(result any, err error)

// Batch is the commands of one entry on the member that proposed them.
type Batch struct {
	// Entry is what is proposed; it never changes once the batch is sealed, so that
	// proposing it again is the same proposal.
	Entry protocol.Entry
	// Done has one element for each command.
	Done []Done
	// bytes is the length of all commands and the body.
	bytes int64
	// Free is called once, when the batch is settled, whatever its outcome. It may be nil.
	Free func(*Batch)
	// Born is when the first command came. The batch is given up GiveUp later.
	Born time.Duration
	// Options are those of the proposal, nil if it has none; then Path, by which the protocol takes it, is 0.
	Options *protocol.ProposeOptions
	Path    protocol.Path
	// fits is Proposals.followed when Options became what the core uses.
	fits uint32
	// blind is how many of the commands may take a lane, early how many of these ask to be answered when accepted.
	blind, early uint32
	// answeredAt is when the commands were accepted; 0: they have no answer before they are applied.
	answeredAt time.Duration
	// Answered: the core has promised to commit the commands, and their callers have that answer. They get no other
	// one. The batch is resolved when it is applied and not given up before, because the numbers of a resolved batch
	// are forgotten, and what comes of them later is refused.
	Answered bool
	// after are commands that are to be applied before the batch is proposed. It waits in
	// Proposals.held as long as there are any. Then it has one command, and no numbers.
	after Awaited
	// into is the batch that took over the commands of this one; nil: none did.
	into *Batch
	// home is the only instance that may take the batch; 0: any may.
	home protocol.InstanceID
	// taker is the instance that has the batch; 0: it waits. gone: it waits no more and no instance has it, because
	// another batch has its commands, or they are about to fail.
	taker protocol.InstanceID
	gone  bool
	// Withdrawn are the commands that were withdrawn, ascending. spared is what those cost that are not
	// in the batch any more.
	Withdrawn []withdrawal
	spared    int64
	// whole: no other commands are put into the batch.
	whole bool
	// turn is which batch of the member's incarnation it is that got numbers, from 1; 0: it has none yet.
	turn uint64

	// Proposed counts how often the core took the batch without refusing it at once. 0: its commands certainly did
	// not take effect.
	Proposed int
	// ProposedAt, ProposedTo and ProposedTerm are when, to which leader and in which term it was last given to the
	// core.
	ProposedAt   time.Duration
	ProposedTo   protocol.MemberID
	ProposedTerm protocol.Term
	// Passed is when the batch passed the later stages.
	Passed Passed
	// Repeats counts how often it was sent to this leader again in this term.
	Repeats int
	// Group is the index of the committed group that has the batch; 0: it has an entry of its own.
	Group protocol.Index
	// failed is why a command of the batch has no result, if it may not have taken effect.
	failed error
	// Refused: the leader refused it, for this reason. It is proposed again at the next tick.
	Refused bool
	Reason  protocol.Reason
}

// Passed are times by the driver's clock, which the driver notes and no rule reads. 0: the batch has not come so far.
type Passed struct {
	Appended  time.Duration // to this member's log, if it was proposed here and not committed before
	Committed time.Duration
	// Ordered and Applied are when the state machine was given the first commands of the batch, and when it returned.
	// They do not change once they are set, because callers may look as soon as they have their results.
	Ordered, Applied time.Duration
}

// Holder is the batch that has the commands of this one.
func (b *Batch) Holder() *Batch {
	for b.into != nil {
		b = b.into
	}
	return b
}

// CommittedIn reports whether the batch is in a committed entry of its instance.
func (b *Batch) CommittedIn(e *protocol.Entry) bool {
	if b.Group > 0 {
		return e.Index == b.Group
	}
	return e.ID == b.Entry.ID
}

// Renew makes a batch ready for another instance. It keeps its numbers, and what is known of
// whether it may have taken effect.
func (b *Batch) Renew() {
	b.ProposedTo, b.ProposedTerm, b.Repeats, b.Refused, b.Reason = 0, 0, 0, false, protocol.ReasonNone
}

// Abandoned is the error for the commands of a batch that was tried for long enough.
func (b *Batch) Abandoned() error {
	switch {
	case len(b.after.Tokens) > 0:
		return b.after.err()
	case b.Proposed > 0:
		return member.ErrMaybeCommitted
	case b.Reason == protocol.ReasonOverloaded:
		return member.ErrOverloaded
	}
	return member.ErrNoLeader
}

// absorb takes over the commands of a batch that goes with this one.
func (b *Batch) absorb(o *Batch) {
	b.Entry.Payload = append(b.Entry.Payload, o.Entry.Payload...)
	b.Entry.Count += o.Entry.Count
	b.bytes += o.bytes
	b.blind, b.early = b.blind+o.blind, b.early+o.early
	b.Done = append(b.Done, o.Done...)
	o.gone, o.into = true, b
	if o.Options != nil {
		b.Options.Add(o.Options)
	}
}

// Add puts one more command into an unsealed batch. The command's bytes are copied.
func (b *Batch) Add(command []byte, done Done) {
	b.Entry.Payload = protocol.AppendCommand(b.Entry.Payload, command)
	b.Entry.Count++
	b.bytes += int64(len(command))
	b.Done = append(b.Done, done)
}

// goes reports whether a command with these options may be in the batch, if there is room.
func (b *Batch) goes(o *protocol.ProposeOptions, path protocol.Path) bool {
	if b.Options == nil || o == nil {
		return b.Options == o
	}
	return b.Path == path && b.Options.Mode == o.Mode
}

// addWith is Add for a command with options, which goes with the batch.
func (b *Batch) addWith(command []byte, o *protocol.ProposeOptions, path protocol.Path, done Done) {
	b.Add(command, done)
	b.addOptions(o, path)
}

// addOptions adds options and the path to those of the batch.
func (b *Batch) addOptions(o *protocol.ProposeOptions, path protocol.Path) {
	b.bytes += int64(o.Bytes())
	if b.Path = path; b.Options == nil {
		c := o.Clone()
		b.Options = &c
		return
	}
	b.Options.Add(o)
}

// SetBody gives the batch's one command a body. The batch refers to these bytes, so they must not
// change any more. It takes no further commands, because entry and body name each other.
func (b *Batch) SetBody(body []byte) {
	b.Entry.Body = body
	b.bytes += int64(len(body))
	b.Entry.SealPayload() // it reads all of the body, so the event loop should not have to do it
}

// Size is the length of payload and body.
func (b *Batch) Size() int { return len(b.Entry.Payload) + len(b.Entry.Body) }

// Seal ends the batch: its id and checksum are fixed from now on. seq is the first command's
// number in the session. low is the oldest number of the session that is not settled yet.
func (b *Batch) Seal(session protocol.Session, seq, low uint64) {
	b.Entry.Kind = protocol.EntryBatch
	b.Entry.ID = protocol.ProposalID{Session: session, Seq: seq}
	b.Entry.Low = low
	if b.Entry.BodySize == 0 {
		b.Entry.SealPayload()
	}
	b.Entry.Seal(0, 0, make([]byte, protocol.HeadSize))
}

// CommandCost is what a pending command costs in memory. Cost is the same for a batch.
func CommandCost(command []byte) int64 { return int64(len(command)) + CommandOverhead }

func (b *Batch) Cost() int64 { return b.bytes + int64(len(b.Done))*CommandOverhead + b.spared }

// CommandOverhead is what a command costs besides its bytes: its length and its Done.
const CommandOverhead = 16

// NewBatch returns an empty batch that began at born, with capacity for so many payload bytes and
// commands.
func NewBatch(born time.Duration, bytes, commands int) *Batch {
	return &Batch{Born: born, Entry: protocol.Entry{Payload: make([]byte, 0, bytes)}, Done: make([]Done, 0, commands)}
}

// Mode is when the batch is to be answered.
func (b *Batch) Mode() protocol.Mode {
	if b.Options == nil {
		return protocol.ModeConfirmed
	}
	return b.Options.Mode
}

// Accepted is the answer, without a result, to a command in protocol.ModeAccepted. The command takes effect
// exactly once.
type Accepted struct {
	// Token is the command's.
	Token protocol.Token
}

// Accept tells every command of an answered batch that it is accepted. The batch is settled when it
// is applied.
func (b *Batch) Accept(now time.Duration) {
	b.answeredAt = now
	answers := make([]Accepted, len(b.Done))
	for i, done := range b.Done {
		answers[i].Token = protocol.Token{Session: b.Entry.ID.Session, Seq: b.Entry.ID.Seq + uint64(i)}
		done(&answers[i], nil)
	}
}

// Fail tells every command of the batch that there is no result.
func (b *Batch) Fail(err error) { b.FailFrom(0, err) }

// FailFirst tells the first n commands of the batch that there is no result.
func (b *Batch) FailFirst(n int, err error) {
	b.noteFailure(err)
	if !b.Answered {
		for _, done := range b.Done[:n] {
			done(nil, err)
		}
	}
	if n == len(b.Done) {
		b.Settled()
	}
}

func (b *Batch) FailFrom(from int, err error) {
	b.noteFailure(err)
	if !b.Answered {
		for _, done := range b.Done[from:] {
			done(nil, err)
		}
	}
	b.Settled()
}

// noteFailure notes why commands fail. With ErrResultUnknown they took effect. Where all were withdrawn none fails:
// their proposers know that they take no effect.
func (b *Batch) noteFailure(err error) {
	withdrawn := b.Empty() && b.Proposed == 0
	if b.failed == nil && !withdrawn && !errors.Is(err, member.ErrResultUnknown) {
		b.failed = err
	}
}

// Settle hands results to commands of the batch in one pass, beginning with the one numbered from.
func (b *Batch) Settle(from int, applied []member.Command) {
	if !b.Answered {
		for i := range applied {
			b.Done[from+i](applied[i].Result, nil)
		}
	}
	if from+len(applied) == len(b.Done) {
		b.Settled()
	}
}

func (b *Batch) Settled() {
	if b.Free != nil {
		b.Free(b)
	}
}

// TravelTime is how much longer a body may be on its way than a small batch. It goes to the leader,
// and from there to several followers, over one network card.
func (b *Batch) TravelTime() time.Duration {
	return 4 * time.Duration(b.Entry.BodySize) * time.Second / member.SlowestLink
}

// ProposedUnder reports whether a member was handed the batch.
func (b *Batch) ProposedUnder(to protocol.Route) bool {
	return b.ProposedTo == to.To && b.ProposedTerm == to.Term
}
