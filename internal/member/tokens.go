package member

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// A token names a command that was accepted and need not be applied yet. Readers wait here until the
// commands of their tokens are applied on this member, and so do proposals that are to take effect
// after such commands, where the core does not see to that itself (protocol.Proposing.Tokens).

// TokenState is what a member knows of the command of a token.
type TokenState uint8

const (
	// TokenApplied: the command is applied here, or it never takes effect. It was accepted, so it is
	// applied.
	TokenApplied TokenState = iota
	// TokenPending: the command is not applied here. Others of its session are, or may be.
	TokenPending
	// TokenUnknown: nothing of the token's session was applied here.
	TokenUnknown
	// TokenGone: the command is not applied here, and the member that gave the token was removed.
	TokenGone
)

func (s TokenState) String() string {
	return [...]string{
		"its command is applied", "its command is not applied yet", "nothing of its session is known here",
		"its member was removed, and its command is not applied",
	}[s]
}

// TokenError says that the command of a token was not applied on this member in time. What was to
// wait for it did not happen: nothing was read or proposed. A retry is safe, here or on another member.
type TokenError struct {
	Token protocol.Token
	State TokenState
}

func (e *TokenError) Error() string {
	return fmt.Sprintf("braid: token %s: %s", protocol.FormatToken(e.Token), e.State)
}

// tokenBytes is what a token costs that is waited for.
const tokenBytes = 32

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

func (st *SessionState) token(seq uint64) TokenState {
	if seq < st.Low || slices.ContainsFunc(st.Done, func(s Span) bool { return s.From <= seq && seq < s.To }) {
		return TokenApplied
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

// awaited are tokens whose commands somebody waits for.
type awaited struct {
	// tokens are those not known to be applied. The last one is looked at first. None is waited for if
	// there are none.
	tokens []protocol.Token
	state  TokenState    // of the last one, when it was looked at last
	until  time.Duration // when nobody waits any more; before begin: for how long, 0 if that has no limit here
}

// begin begins to wait.
func (w *awaited) begin(now time.Duration) {
	if w.until == 0 {
		w.until = math.MaxInt64 - now
	}
	w.until += now
}

func newAwaited(tokens []protocol.Token, until time.Duration) awaited {
	return awaited{tokens: slices.Clone(tokens), state: TokenPending, until: until}
}

// look looks which commands are applied by now. It reports whether all are.
func (w *awaited) look(a *Applier) bool {
	for n := len(w.tokens); n > 0; n = len(w.tokens) {
		if w.state = a.Token(w.tokens[n-1]); w.state != TokenApplied {
			return false
		}
		w.tokens = w.tokens[:n-1]
	}
	return true
}

// err is why the wait has ended without all commands.
func (w *awaited) err() error { return &TokenError{w.tokens[len(w.tokens)-1], w.state} }

func (w *awaited) bytes() int64 { return tokenBytes * int64(len(w.tokens)) }

// TokenRead is a reader that waits until the commands of tokens are applied.
type TokenRead struct {
	// Done is called once, unless the read is given up: with nil, or with a [TokenError].
	Done  func(error)
	after awaited
	bytes int64
}

// NewTokenRead makes a read that waits until some time at most.
func NewTokenRead(tokens []protocol.Token, until time.Duration, done func(error)) *TokenRead {
	return &TokenRead{Done: done, after: newAwaited(tokens, until)}
}

// Err is why the read was given up, as far as is known.
func (r *TokenRead) Err() error { return r.after.err() }

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
