package protocol

import (
	"fmt"
	"slices"
	"time"
)

// Mode says when a proposal is answered.
type Mode uint8

const (
	// ModeConfirmed: with the result, once the commands are applied where they were proposed.
	ModeConfirmed Mode = iota
	// ModeAccepted: as soon as the core says so (Effects.Accepted), without a result. The commands
	// survive whatever the protocol survives, and take effect exactly once. They need not have taken
	// effect yet, and commands that are proposed after the answer may take effect before them. A
	// protocol without such answers answers when the commands are applied, which promises more.
	ModeAccepted
)

func (m Mode) String() string {
	if m == ModeAccepted {
		return "accepted"
	}
	return "confirmed"
}

// Limits of what a proposal says alongside its commands. They hold for one command, and for what all
// commands of a batch say together.
const (
	MaxKeys   = 256
	MaxTokens = 64
)

// ProposeOptions are options of a proposal. A core never sees options that its protocol does not
// use (see [Proposing]).
type ProposeOptions struct {
	Mode Mode
	// Blind: the commands' results are of no interest, and what they do does not depend on the state.
	// So they may take a lane. ModeAccepted implies it: who asks for an answer without a result is
	// not interested in the result, and accepts that other commands may take effect before.
	Blind bool
	// Keys are hashes of all keys that the commands read or write, in no order. Commands that have no
	// key in common may be executed in any order. None: the commands may touch any key.
	Keys []uint64
	// After are commands that take effect before these ones. Where the core does not see to that
	// (Proposing.Tokens), the member holds the commands back until those are applied on it.
	After []Token
	// Wait is how long a member holds commands back for After, at most; 0: as long as it tries to
	// propose. It never reaches a core.
	Wait time.Duration
	// Timeout is how long the proposer waits for the answer, at most, not counting what it waits for After; 0: until its
	// context ends. It costs less than a context with a deadline, and never reaches a core.
	Timeout time.Duration
}

// Validate reports options that no protocol takes. ModeAccepted without Blind is no mistake: see Blind.
func (o *ProposeOptions) Validate() error {
	switch {
	case o.Mode > ModeAccepted:
		return &OptionsError{fmt.Sprintf("unknown mode %d", o.Mode)}
	case len(o.Keys) > MaxKeys:
		return &OptionsError{fmt.Sprintf("%d keys, limit %d", len(o.Keys), MaxKeys)}
	case len(o.After) > MaxTokens:
		return &OptionsError{fmt.Sprintf("%d tokens, limit %d", len(o.After), MaxTokens)}
	case o.Wait < 0:
		return &OptionsError{fmt.Sprintf("wait %s", o.Wait)}
	case o.Timeout < 0:
		return &OptionsError{fmt.Sprintf("timeout %s", o.Timeout)}
	}
	return CheckTokens(o.After)
}

// Bytes is what the options cost in memory alongside their proposal.
func (o *ProposeOptions) Bytes() int { return 8*len(o.Keys) + 32*len(o.After) }

// OptionsError indicates that a proposal has options that no one takes. Nothing happened. Do not retry.
type OptionsError struct{ Detail string }

func (e *OptionsError) Error() string { return "braid: options of a proposal: " + e.Detail }

// Path is one of the ways that proposals take through a protocol: a lane, a bucket, a group of
// keys. A protocol numbers its paths from 0 on.
type Path uint16

// Route says where the proposals of a path go now.
type Route struct {
	// To is the member that takes them: this one, or the one to which the core forwards them. 0: no
	// one is known to take them.
	To MemberID
	// Term and To together say to whom a proposal was handed. When one of them changes, what was
	// handed over may be lost, and is proposed again.
	Term Term
}

// Proposing is what members know of how a protocol takes proposals. The zero value is that of a
// protocol with one path, whose leader takes everything and which answers nothing before it is
// applied.
type Proposing struct {
	// Accepted: there are answers in ModeAccepted (Effects.Accepted). Keys, Tokens: the core uses them.
	Accepted, Keys, Tokens bool
	// Path is the path that a command takes. Commands of different paths are never in one entry. It depends only on its
	// argument. Where the path leads to says Status.Routes. nil: all take path 0.
	Path func(o *ProposeOptions) Path
}

// Use returns what is left of the options if the protocol takes no notice of the rest. Blind only
// says which path a command takes, so it is dropped where there is one path.
func (p *Proposing) Use(o ProposeOptions) ProposeOptions {
	o.Wait = 0
	o.Blind = p.Path != nil && (o.Blind || o.Mode == ModeAccepted)
	if !p.Accepted {
		o.Mode = ModeConfirmed
	}
	if !p.Keys {
		o.Keys = nil
	}
	if !p.Tokens {
		o.After = nil
	}
	return o
}

// Held returns the commands for which a member withholds a proposal, because the core does not see
// to its order.
func (p *Proposing) Held(o *ProposeOptions) []Token {
	if p.Tokens {
		return nil
	}
	return o.After
}

// Barrier reports whether readers who want to see all that was accepted ask for more than others. Where
// nothing is answered before it is applied, they do not.
func (p *Proposing) Barrier(wanted bool) bool { return wanted && p.Accepted }

// Plain reports whether these are the options of a proposal that was made without any.
func (o *ProposeOptions) Plain() bool {
	return o.Mode == ModeConfirmed && !o.Blind && len(o.Keys) == 0 && len(o.After) == 0
}

// Takes reports whether what another command of the same mode and path says can be added.
func (o *ProposeOptions) Takes(more *ProposeOptions) bool {
	return o.Blind == more.Blind && (len(o.Keys) == 0) == (len(more.Keys) == 0) &&
		len(o.Keys)+len(more.Keys) <= MaxKeys && len(o.After)+len(more.After) <= MaxTokens
}

// Add adds what another command of the same mode and path says.
func (o *ProposeOptions) Add(more *ProposeOptions) {
	o.Keys, o.After = append(o.Keys, more.Keys...), append(o.After, more.After...)
}

// Clone returns a copy that shares nothing.
func (o *ProposeOptions) Clone() ProposeOptions {
	return ProposeOptions{Mode: o.Mode, Blind: o.Blind, Keys: slices.Clone(o.Keys), After: slices.Clone(o.After)}
}
