package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/protocol"
)

// Clients use the tokens of writes that were accepted: for reads at any member, which are to see these
// writes, and for writes that are to take effect after them. All draws are of earlyWrites, so clusters
// without early answers do not notice.

var (
	readsWithToken    = count.New("reads_with_a_token", "reads with a token", count.Staged)
	writesAfterTokens = count.New("writes_after_those_of_tokens", "writes after those of tokens", count.Staged)
	tokensExpired     = count.New("tokens_that_did_not_come", "tokens that did not come", count.Staged)
	barrierReads      = count.New("barrier_reads", "barrier reads", count.Staged)
)

// givenToken is a token that a client was given, and the operation that it names.
type givenToken struct {
	protocol.Token
	op *operation
}

// keptTokens is how many tokens clients remember.
const keptTokens = 12

// noteToken notes a token that a client was given. Sometimes somebody soon reads with it.
func (w *World) noteToken(op *operation, t protocol.Token) {
	w.tokens, w.acceptedOps = append(w.tokens, givenToken{t, op}), append(w.acceptedOps, op)
	if len(w.tokens) > keptTokens {
		w.tokens = slices.Delete(w.tokens, 0, 1)
	}
	if w.calm || !w.From(earlyWrites).Yes(0.5) {
		return
	}
	m, used := w.members[w.From(earlyWrites).Below(len(w.members))], w.drawTokens()
	w.After(w.From(earlyWrites).Duration(0, w.set.Heartbeat), func() {
		if m.up && !w.calm {
			m.readAfter(used)
		}
	})
}

// drawTokens draws tokens to be used together, seldom one that no member gave.
func (w *World) drawTokens() (out []givenToken) {
	for range 1 + w.From(earlyWrites).Below(3) {
		out = append(out, w.tokens[w.From(earlyWrites).Below(len(w.tokens))])
	}
	if w.From(earlyWrites).Yes(0.03) {
		t := out[0].Token
		t.Session.Member += 1 << 40
		out = append(out, givenToken{Token: t})
	}
	return out
}

// drawAfter draws the tokens after whose commands an operation is to take effect.
func (w *World) drawAfter(op *operation) (after []protocol.Token) {
	if len(w.tokens) == 0 || !w.From(earlyWrites).Yes(0.3) {
		return nil
	}
	w.Count(writesAfterTokens)
	for _, t := range w.drawTokens() {
		after = append(after, t.Token)
		op.follows = append(op.follows, t.op)
	}
	return after
}

// judgeFollows judges that an operation which takes effect now comes after those of its tokens.
func (w *World) judgeFollows(op *operation) {
	for _, before := range op.follows {
		if before == nil || !before.effective || before.position >= op.position {
			w.Violate(0, fmt.Errorf("command %d took effect, and one after which it was to take effect has not", op.number))
		}
	}
	op.follows = nil
}

// judgeHeld judges that the member has applied all that the commands of a batch are to follow, where the
// member sees to that and not the core. By what takes effect alone it could not be judged: in some protocols
// what is accepted takes effect before all that is proposed later anyway.
func (m *Member) judgeHeld(b *intake.Batch) {
	if b == nil || m.w.set.Load.Early == 0 || m.w.set.protocol.Core.Proposing.Tokens {
		return
	}
	for rest := b.Entry.Payload; len(rest) > 0; {
		command, next, err := protocol.NextCommand(rest)
		if err != nil {
			return
		}
		if rest = next; len(command) == 0 {
			continue
		}
		number, _, err := machine.ParseCommand(command)
		if err != nil || number >= len(m.w.ops) {
			continue // nonsense
		}
		for _, before := range m.w.ops[number].follows {
			if before == nil || !before.effective || m.machines.First.Position() < before.position {
				m.w.Violate(m.id, fmt.Errorf("command %d is proposed at position %d, without one after which it is to take effect", number, m.machines.First.Position()))
			}
		}
	}
}

// readAfter reads with tokens: the state must include their writes when the read is answered.
func (m *Member) readAfter(used []givenToken) {
	tokens := make([]protocol.Token, len(used))
	for i, t := range used {
		tokens[i] = t.Token
	}
	m.admit(func() {
		r := intake.NewTokenRead(tokens, m.clock()+m.w.From(earlyWrites).Duration(time.Millisecond, m.w.set.GiveUp), func(err error) { m.judgeTokens(used, err) })
		if err := m.progress.AwaitTokens(r); err != nil {
			m.w.Violate(m.id, err)
			return
		}
		m.look()
	})
}

// look makes Apply look who waits for what is applied already.
func (m *Member) look() { m.push(apply.ApplyItem{Look: true}) }

func (m *Member) judgeTokens(used []givenToken, err error) {
	w := m.w
	if err != nil {
		w.Tracef("%s   has not applied: %v", m.id, err)
		if w.Count(tokensExpired); !errors.As(err, new(*member.TokenError)) {
			w.Violate(m.id, err)
		}
		return
	}
	w.Count(readsWithToken)
	for _, t := range used {
		switch {
		case t.op == nil:
			w.Violate(m.id, fmt.Errorf("a read is answered with token %s, which nobody gave", protocol.FormatToken(t.Token)))
		case !t.op.effective || m.machines.First.Position() < t.op.position:
			w.Violate(m.id, fmt.Errorf("a read with the token of command %d is answered at position %d, without that command", t.op.number, m.machines.First.Position()))
		}
	}
}

// acceptedWrites are writes that clients were told are accepted: those without effect so far, and where
// the last of the others stands.
type acceptedWrites struct {
	open []*operation
	last protocol.Position
}

// acceptedNow is what has been accepted until now.
func (w *World) acceptedNow() *acceptedWrites {
	w.acceptedOps = slices.DeleteFunc(w.acceptedOps, func(op *operation) bool {
		if op.effective {
			w.acceptedAt = max(w.acceptedAt, op.position)
		}
		return op.effective
	})
	return &acceptedWrites{slices.Clone(w.acceptedOps), w.acceptedAt}
}

// drawBarrier draws whether a reader wants to see all that was accepted.
func (w *World) drawBarrier() bool {
	return w.set.Load.Early > 0 && w.set.protocol.Core.Proposing.Barrier(w.From(earlyWrites).Yes(0.3))
}

// judgeBarrier judges that a read sees all that was accepted before it was asked for (L11).
func (m *Member) judgeBarrier(r *reader) {
	if r.accepted == nil {
		return
	}
	m.w.Count(barrierReads)
	at := m.machines.First.Position()
	if at < r.accepted.last {
		m.w.Violate(m.id, fmt.Errorf("a barrier read is answered at position %d; a write at %d was accepted before", at, r.accepted.last))
	}
	for _, op := range r.accepted.open {
		if !op.effective || at < op.position {
			m.w.Violate(m.id, fmt.Errorf("a barrier read is answered at position %d, without command %d, which was accepted before", at, op.number))
		}
	}
}
