package history

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/internal/sim/world"
	"github.com/braidlog/braid/protocol"
)

var writesUnknown = count.New("writes_unknown", "writes unknown")

// History is the requests of all clients, their results, and their effects.
type History struct {
	Ops []*Operation // by number
	// Acked is the number of acknowledged writes.
	Acked int
	// Tokens are the last ones that clients got, with the operations that they name.
	Tokens []GivenToken

	base   *world.Base
	orders *machine.Orders
	record check.Recorder
	// ackedAt is the last acknowledged position, in each group of a keyed order.
	ackedAt map[protocol.InstanceID]protocol.Position
	// open are the operations that were accepted and had no effect at the last check. openAt is the last position of the
	// others.
	open   []*Operation
	openAt protocol.Position
}

// New returns the history of a run without requests so far.
func New(base *world.Base, orders *machine.Orders) *History {
	return &History{base: base, orders: orders, ackedAt: map[protocol.InstanceID]protocol.Position{}}
}

// Begin records an operation that a client begins now. It gets the next number.
func (h *History) Begin(op *Operation) {
	op.Call, op.after = int64(h.base.Now()), h.ackedAt[h.orders.Of(op.Key)]
	op.id, op.Number = h.record.Begin(op.Operation), len(h.Ops)
	h.Ops = append(h.Ops, op)
}

// Succeeded reports whether a client got the result of an operation.
func (h *History) Succeeded(op *Operation) bool { return h.record.Operation(op.id).Outcome == check.OK }

// Fail records that an operation has no effect, and never will have one.
func (h *History) Fail(op *Operation) { h.record.Fail(op.id) }

// Read records the result of a read that ends now.
func (h *History) Read(op *Operation, text string, v machine.Value) {
	h.record.End(op.id, int64(h.base.Now()), text, v.Found, v.Version)
}

// Wrote records that a write was acknowledged. If it ended before, its client no longer waits.
func (h *History) Wrote(op *Operation, a machine.Answer) {
	h.Acked++
	group := h.orders.Of(op.Key)
	h.ackedAt[group] = max(h.ackedAt[group], op.Position)
	if a != op.Answer {
		h.base.Violate(0, fmt.Errorf("command %d was answered by %v; it took effect with %v", op.Number, a, op.Answer))
	}
	if !op.Ended {
		h.record.End(op.id, int64(h.base.Now()), "", a.Done, a.Version)
	}
}

// Refuse records an error that excludes any effect of a command.
func (h *History) Refuse(op *Operation, err error) {
	op.refused = err
	h.judgeRefused(op)
}

// Applied records that a member applied a command. Its position must be after all commands that were acknowledged
// before the request, whatever their instances (N6). In a keyed order that holds in each group.
func (h *History) Applied(number int, at protocol.Position, a machine.Answer) {
	op := h.Ops[number]
	if op.Effective {
		return
	}
	op.Effective, op.Answer, op.tookEffect, op.Position = true, a, h.base.Now(), at
	h.judgeRefused(op)
	h.judgePiped(op)
	h.judgeFollows(op)
	if at <= op.after {
		h.base.Violate(0, fmt.Errorf("N6: command %d took effect at %d; when it was asked for %d was acknowledged", number, at, op.after))
	}
}

func (h *History) judgeRefused(op *Operation) {
	if op.Effective && op.refused != nil {
		h.base.Violate(0, fmt.Errorf("command %d took effect and was answered by: %w", op.Number, op.refused))
	}
}

// judgePiped checks that a command that takes effect now is after all commands that were proposed before it through
// the same pipe. So it also checks that no command takes effect after a failed one.
func (h *History) judgePiped(op *Operation) {
	for op.Before != nil && op.Before.Withdrawn {
		op.Before = op.Before.Before
	}
	if op.Before != nil && !op.Before.Effective {
		h.base.Violate(0, fmt.Errorf("command %d took effect; command %d, which was proposed before it by the same client, has not", op.Number, op.Before.Number))
	}
	op.Before = nil
}

// judgeFollows checks that an operation that takes effect now is after the operations of its tokens.
func (h *History) judgeFollows(op *Operation) {
	for _, before := range op.Follows {
		if before == nil || !before.Effective || before.Position >= op.Position {
			h.base.Violate(0, fmt.Errorf("command %d took effect, and one after which it was to take effect has not", op.Number))
		}
	}
	op.Follows = nil
}

// JudgeTold checks, when everything is applied, that all operations that were reported to take effect did.
func (h *History) JudgeTold() error {
	for _, op := range h.Ops {
		if op.Told && !op.Effective {
			return fmt.Errorf("command %d took no effect, and the client was told that it did or will", op.Number)
		}
	}
	return nil
}

// Resolve returns the history of all operations. It completes those without a response, because their outcome is
// known. An operation took effect when it was first applied. The others never will, because the run is over.
func (h *History) Resolve() []check.Operation {
	for _, op := range h.Ops {
		switch {
		case op.Kind == check.Get:
		case h.record.Operation(op.id).Outcome == check.Unknown && op.Effective:
			h.base.Count(writesUnknown)
			h.record.End(op.id, int64(op.tookEffect), "", op.Answer.Done, op.Answer.Version)
		case !op.Effective:
			h.record.Fail(op.id)
		}
	}
	return h.record.History()
}

// GivenToken is a client's token, and the operation that it names, or nil if the token comes from no member.
type GivenToken struct {
	protocol.Token
	Op *Operation
}

// keptTokens is the number of tokens that clients remember.
const keptTokens = 12

// Accept records that a client's write was reported as accepted, with its token.
func (h *History) Accept(op *Operation, t protocol.Token) {
	h.Tokens, h.open = append(h.Tokens, GivenToken{t, op}), append(h.open, op)
	if len(h.Tokens) > keptTokens {
		h.Tokens = slices.Delete(h.Tokens, 0, 1)
	}
}

// AcceptedWrites are writes that were reported as accepted: those without effect so far, and the last position of the
// others.
type AcceptedWrites struct {
	open []*Operation
	last protocol.Position
}

// Accepted returns the writes that have been accepted until now.
func (h *History) Accepted() *AcceptedWrites {
	h.open = slices.DeleteFunc(h.open, func(op *Operation) bool {
		if op.Effective {
			h.openAt = max(h.openAt, op.Position)
		}
		return op.Effective
	})
	return &AcceptedWrites{slices.Clone(h.open), h.openAt}
}

// Seen checks that a read at a position sees all these writes (L11).
func (a *AcceptedWrites) Seen(at protocol.Position) error {
	if at < a.last {
		return fmt.Errorf("a barrier read is answered at position %d; a write at %d was accepted before", at, a.last)
	}
	for _, op := range a.open {
		if !op.Effective || at < op.Position {
			return fmt.Errorf("a barrier read is answered at position %d, without command %d, which was accepted before", at, op.Number)
		}
	}
	return nil
}

// Seen checks that a read with the token, at a position, sees the token's write.
func (t *GivenToken) Seen(at protocol.Position) error {
	switch {
	case t.Op == nil:
		return fmt.Errorf("a read is answered with token %s, which nobody gave", protocol.FormatToken(t.Token))
	case !t.Op.Effective || at < t.Op.Position:
		return fmt.Errorf("a read with the token of command %d is answered at position %d, without that command", t.Op.Number, at)
	}
	return nil
}

// ProposedAt checks that a member that proposes a command at a position has applied everything that the command must
// follow.
func (h *History) ProposedAt(number int, at protocol.Position) error {
	if number >= len(h.Ops) {
		return nil // not a token of a member
	}
	for _, before := range h.Ops[number].Follows {
		if before == nil || !before.Effective || at < before.Position {
			return fmt.Errorf("command %d is proposed at position %d, without one after which it is to take effect", number, at)
		}
	}
	return nil
}
