package apply

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/protocol"
)

// A token names a command that was accepted and need not be applied yet. Readers wait here until the
// commands of their tokens are applied on this member, and so do proposals that are to take effect
// after such commands, where the core does not see to that itself (protocol.Proposing.Tokens).

// maxTokenBytes bounds the tokens for which the readers of a member wait.
const maxTokenBytes = 16 << 20

// Token finds out what is known of the command of a token.
func (s *Sessions) Token(t protocol.Token) member.TokenState {
	instance := protocol.InstanceID(0)
	if !t.Session.Shared() {
		if instance = protocol.FirstInstance; s.over(t.Session) {
			return member.TokenApplied // that incarnation is over
		}
	}
	first, end := s.line(instance, t.Session)
	at := first
	for at < end && s.states[at].Session.Rank() < t.Session.Rank() {
		at++
	}
	switch {
	case first == end:
		return member.TokenUnknown
	case at < end && s.states[at].Session == t.Session:
		return s.states[at].Token(t.Seq)
	case at == first && s.states[first].Replaces():
		return member.TokenApplied // likewise
	}
	return member.TokenPending
}

// Token finds out what is known of the command of a token.
func (a *Applier) Token(t protocol.Token) member.TokenState {
	state := a.sessions.Token(t)
	if a.doubtful() {
		return member.TokenPending // the log says that it took effect, but perhaps not in this state
	}
	if state != member.TokenApplied && a.mutant == member.MutantTokensUnchecked {
		return member.TokenApplied
	}
	if state != member.TokenApplied && member.RemovedFromAll(a.Configs(), t.Session.Member) {
		return member.TokenGone
	}
	return state
}

// tokenReads are the readers that wait. Not safe for concurrent use.
type tokenReads struct {
	waiting []*intake.TokenRead
	bytes   int64 // of the tokens of waiting, as they were when they came; ≤ maxTokenBytes
}

// AwaitTokens lets a reader wait. Apply has to look then: see ApplyItem.Look.
func (p *Applied) AwaitTokens(r *intake.TokenRead) error {
	r.Bytes = r.After.Bytes()
	if p.tokens.bytes+r.Bytes > maxTokenBytes {
		return member.ErrOverloaded
	}
	p.tokens.bytes += r.Bytes
	p.tokens.waiting = append(p.tokens.waiting, r)
	return nil
}

// AbandonTokens ends a reader's wait. It reports false if that had ended.
func (p *Applied) AbandonTokens(r *intake.TokenRead) bool {
	return len(p.tokens.remove(func(o *intake.TokenRead) bool { return o == r })) > 0
}

// ExpiredTokens takes out the readers that have waited for too long. They are to be told why.
func (p *Applied) ExpiredTokens(now time.Duration) []*intake.TokenRead {
	return p.tokens.remove(func(r *intake.TokenRead) bool { return now >= r.After.Until })
}

// remove takes out readers.
func (s *tokenReads) remove(which func(*intake.TokenRead) bool) (out []*intake.TokenRead) {
	if len(s.waiting) == 0 {
		return nil
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(r *intake.TokenRead) bool {
		if !which(r) {
			return false
		}
		s.bytes -= r.Bytes
		out = append(out, r)
		return true
	})
	return out
}

// check verifies the invariants.
func (s *tokenReads) check() error {
	sum := int64(0)
	for _, r := range s.waiting {
		if sum += r.Bytes; len(r.After.Tokens) == 0 {
			return fmt.Errorf("tokens: a reader waits for nothing")
		}
	}
	if sum != s.bytes || sum > maxTokenBytes {
		return fmt.Errorf("tokens: readers wait for %d bytes of them, says %d", sum, s.bytes)
	}
	return nil
}
