package member

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// A token names a command that was accepted and need not be applied yet. Readers wait here until the
// commands of their tokens are applied on this member, and so do proposals that are to take effect
// after such commands, where the core does not see to that itself (protocol.Proposing.Tokens).

// maxTokenBytes bounds the tokens for which the readers of a member wait.
const maxTokenBytes = 16 << 20

// Token finds out what is known of the command of a token.
func (s *Sessions) Token(t protocol.Token) TokenState {
	instance := protocol.InstanceID(0)
	if !t.Session.Shared() {
		if instance = protocol.FirstInstance; s.over(t.Session) {
			return TokenApplied // that life is over
		}
	}
	first, end := s.line(instance, t.Session)
	at := first
	for at < end && s.states[at].Session.Life() < t.Session.Life() {
		at++
	}
	switch {
	case first == end:
		return TokenUnknown
	case at < end && s.states[at].Session == t.Session:
		return s.states[at].token(t.Seq)
	case at == first && s.states[first].replaces():
		return TokenApplied // likewise
	}
	return TokenPending
}

// Token finds out what is known of the command of a token.
func (a *Applier) Token(t protocol.Token) TokenState {
	state := a.sessions.Token(t)
	if a.doubtful() {
		return TokenPending // the log says that it took effect, but perhaps not in this state
	}
	if state != TokenApplied && a.mutant == MutantTokensUnchecked {
		return TokenApplied
	}
	if state != TokenApplied && goneFrom(a.Configs(), t.Session.Member) {
		return TokenGone
	}
	return state
}

// tokenReads are the readers that wait. Not safe for concurrent use.
type tokenReads struct {
	waiting []*TokenRead
	bytes   int64 // of the tokens of waiting, as they were when they came; ≤ maxTokenBytes
}

// AwaitTokens lets a reader wait. Apply has to look then: see ApplyItem.Look.
func (p *Applied) AwaitTokens(r *TokenRead) error {
	r.bytes = r.after.bytes()
	if p.tokens.bytes+r.bytes > maxTokenBytes {
		return ErrOverloaded
	}
	p.tokens.bytes += r.bytes
	p.tokens.waiting = append(p.tokens.waiting, r)
	return nil
}

// GiveUpTokens ends a reader's wait. It reports false if that had ended.
func (p *Applied) GiveUpTokens(r *TokenRead) bool {
	return len(p.tokens.take(func(o *TokenRead) bool { return o == r })) > 0
}

// ExpiredTokens takes out the readers that have waited for too long. They are to be told why.
func (p *Applied) ExpiredTokens(now time.Duration) []*TokenRead {
	return p.tokens.take(func(r *TokenRead) bool { return now >= r.after.until })
}

// take takes out readers.
func (s *tokenReads) take(which func(*TokenRead) bool) (out []*TokenRead) {
	if len(s.waiting) == 0 {
		return nil
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(r *TokenRead) bool {
		if !which(r) {
			return false
		}
		s.bytes -= r.bytes
		out = append(out, r)
		return true
	})
	return out
}

// check verifies the invariants.
func (s *tokenReads) check() error {
	sum := int64(0)
	for _, r := range s.waiting {
		if sum += r.bytes; len(r.after.tokens) == 0 {
			return fmt.Errorf("tokens: a reader waits for nothing")
		}
	}
	if sum != s.bytes || sum > maxTokenBytes {
		return fmt.Errorf("tokens: readers wait for %d bytes of them, says %d", sum, s.bytes)
	}
	return nil
}
