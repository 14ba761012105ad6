package member

import (
	"math"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// tokenBytes is what a token costs that is waited for.
const tokenBytes = 32

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

// look asks of which commands it is known by now that they are applied. It reports whether all are.
func (w *awaited) look(of func(protocol.Token) TokenState) bool {
	for n := len(w.tokens); n > 0; n = len(w.tokens) {
		if w.state = of(w.tokens[n-1]); w.state != TokenApplied {
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
