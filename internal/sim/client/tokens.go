package client

import (
	"errors"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Clients use the tokens of accepted writes: for reads at any member, which must see these writes, and for writes
// that must take effect after them. All draws are from earlyWrites, so clusters without early responses are not
// affected.

var (
	ReadsWithToken    = count.New("reads_with_a_token", "reads with a token", count.Staged)
	WritesAfterTokens = count.New("writes_after_those_of_tokens", "writes after those of tokens", count.Staged)
	TokensExpired     = count.New("tokens_that_did_not_come", "tokens that did not come", count.Staged)
)

// noteToken records a client's token. Sometimes a client soon reads with it.
func (w *Clients) noteToken(op *history.Operation, t protocol.Token) {
	w.History.Accept(op, t)
	if w.Calm || !w.From(earlyWrites).Yes(0.5) {
		return
	}
	m, used := w.Members[w.From(earlyWrites).Below(len(w.Members))], w.drawTokens()
	w.After(w.From(earlyWrites).Duration(0, w.Set.Heartbeat), func() {
		if m.Up && !w.Calm {
			w.readAfter(m, used)
		}
	})
}

// drawTokens draws tokens to be used together, seldom one that comes from no member.
func (w *Clients) drawTokens() (out []history.GivenToken) {
	for range 1 + w.From(earlyWrites).Below(3) {
		out = append(out, w.History.Tokens[w.From(earlyWrites).Below(len(w.History.Tokens))])
	}
	if w.From(earlyWrites).Yes(0.03) {
		t := out[0].Token
		t.Session.Member += 1 << 40
		out = append(out, history.GivenToken{Token: t})
	}
	return out
}

// drawAfter draws the tokens of the commands that an operation must follow.
func (w *Clients) drawAfter(op *history.Operation) (after []protocol.Token) {
	if len(w.History.Tokens) == 0 || !w.From(earlyWrites).Yes(0.3) {
		return nil
	}
	w.Count(WritesAfterTokens)
	for _, t := range w.drawTokens() {
		after = append(after, t.Token)
		op.Follows = append(op.Follows, t.Op)
	}
	return after
}

// drawBarrier draws whether a reader needs to see everything that was accepted.
func (w *Clients) drawBarrier() bool {
	return w.own.Load.Early > 0 && w.Set.Proposing().Barrier(w.From(earlyWrites).Yes(0.3))
}

// readAfter reads with tokens: the result of the read must include their writes.
func (w *Clients) readAfter(m *node.Member, used []history.GivenToken) {
	tokens := make([]protocol.Token, len(used))
	for i, t := range used {
		tokens[i] = t.Token
	}
	m.Admit(func() {
		r := intake.NewTokenRead(tokens, m.Clock()+w.From(earlyWrites).Duration(time.Millisecond, w.Set.GiveUp), func(err error) { w.judgeTokens(m, used, err) })
		if err := m.Progress.AwaitTokens(r); err != nil {
			w.Violate(m.ID, err)
			return
		}
		m.Look()
	})
}

func (w *Clients) judgeTokens(m *node.Member, used []history.GivenToken, err error) {
	if err != nil {
		w.Tracef("%s   has not applied: %v", m.ID, err)
		if w.Count(TokensExpired); !errors.As(err, new(*member.TokenError)) {
			w.Violate(m.ID, err)
		}
		return
	}
	w.Count(ReadsWithToken)
	for i := range used {
		w.Violate(m.ID, used[i].Seen(m.Machines.First.Position()))
	}
}
