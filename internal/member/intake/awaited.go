package intake

import (
	"math"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// TokenBytes is what a token costs that is waited for.
const TokenBytes = 32

// Awaited are tokens whose commands someone waits for.
type Awaited struct {
	// Tokens are those not known to be applied. The last one is looked at first. None is waited for if
	// there are none.
	Tokens []protocol.Token
	state  member.TokenState // of the last one, when it was looked at last
	Until  time.Duration     // when no one waits any more; before begin: for how long, 0 if that has no limit here
}

// begin begins to wait.
func (w *Awaited) begin(now time.Duration) {
	if w.Until == 0 {
		w.Until = math.MaxInt64 - now
	}
	w.Until += now
}

func newAwaited(tokens []protocol.Token, until time.Duration) Awaited {
	return Awaited{Tokens: slices.Clone(tokens), state: member.TokenPending, Until: until}
}

// AllApplied asks of which commands it is known by now that they are applied. It reports whether all are.
func (w *Awaited) AllApplied(of func(protocol.Token) member.TokenState) bool {
	for n := len(w.Tokens); n > 0; n = len(w.Tokens) {
		if w.state = of(w.Tokens[n-1]); w.state != member.TokenApplied {
			return false
		}
		w.Tokens = w.Tokens[:n-1]
	}
	return true
}

// err is why the wait has ended without all commands.
func (w *Awaited) err() error {
	return &member.TokenError{Token: w.Tokens[len(w.Tokens)-1], State: w.state}
}

func (w *Awaited) Bytes() int64 { return TokenBytes * int64(len(w.Tokens)) }

// TokenRead is a reader that waits until the commands of tokens are applied.
type TokenRead struct {
	// Done is called once, unless the read is given up: with nil, or with a [member.TokenError].
	Done  func(error)
	After Awaited
	Bytes int64
}

// NewTokenRead makes a read that waits until some time at most.
func NewTokenRead(tokens []protocol.Token, until time.Duration, done func(error)) *TokenRead {
	return &TokenRead{Done: done, After: newAwaited(tokens, until)}
}

// Err is why the read was given up, as far as is known.
func (r *TokenRead) Err() error { return r.After.err() }
