package protocol

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol/setting"
)

// Mode determines when a proposal is answered.
type Mode uint8

const (
	// ModeConfirmed: with the result, once the commands are applied where they were proposed.
	ModeConfirmed Mode = iota
	// ModeAccepted: as soon as the core guarantees it (Effects.Accepted), without a result. The commands survive
	// whatever the protocol tolerates, and take effect exactly once. They may take effect after the answer, and after
	// commands that are proposed later. A protocol without such answers answers when the commands are applied, a
	// stronger guarantee.
	ModeAccepted
)

func (m Mode) String() string {
	if m == ModeAccepted {
		return "accepted"
	}
	return "confirmed"
}

// Limits of a proposal's options. They hold for one command, and for all commands of a batch together.
const (
	MaxKeys   = 256
	MaxTokens = 64
)

// ProposeOptions are options of a proposal. A core gets only the options that its protocol uses (see [Proposing]).
type ProposeOptions struct {
	Mode Mode
	// Blind: the commands' results are not needed, and their effect does not depend on the state. So they may take a
	// lane. ModeAccepted implies it: a client that wants an answer without a result does not need the result, and
	// accepts that other commands may take effect before.
	Blind bool
	// Keys are hashes of all keys that the commands read or write, in any order. Commands without a common key may be
	// executed in any order. None: the commands may touch any key.
	Keys []uint64
	// After are commands that take effect before these ones. If the core does not ensure that (Proposing.Tokens), the
	// member holds the commands back until those are applied on it.
	After []Token
	// Wait bounds the time for which a member holds commands back for After; 0: as long as it tries to propose. A core
	// never gets it.
	Wait time.Duration
	// Timeout bounds the proposer's wait for the answer, without the wait for After; 0: until its context ends. It is
	// cheaper than a context with a deadline. A core never gets it.
	Timeout time.Duration
	// Stages is set to when the command passed its stages, before the proposer has the answer; nil: no one wants to
	// know. Without a result at most Stages.Proposed is set. A core never gets it.
	Stages *Stages
}

// Validate returns an error for options that no protocol accepts. ModeAccepted without Blind is valid: see Blind.
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

// Bytes is the memory that the options take alongside their proposal.
func (o *ProposeOptions) Bytes() int { return 8*len(o.Keys) + 32*len(o.After) }

// OptionsError indicates that a proposal has options that no protocol accepts. Nothing happened. Do not retry.
type OptionsError struct{ Detail string }

func (e *OptionsError) Error() string { return "braid: options of a proposal: " + e.Detail }

// Path is one of a protocol's paths for proposals: a lane, a bucket, a group of keys. A protocol numbers its paths
// from 0 on.
type Path uint16

// Route is the current destination of a path's proposals.
type Route struct {
	// To is the member that takes them: this one, or the one to which the core forwards them. 0: none is known.
	To MemberID
	// Term and To together identify the receiver of a proposal. When one of them changes, forwarded proposals may be
	// lost, and are proposed again.
	Term Term
}

// Proposing describes to members how a protocol takes proposals. The zero value is a protocol with one path, whose
// leader takes all proposals and whose answers come after they are applied.
type Proposing struct {
	// If reports whether all this holds from the beginning on in a cluster with these settings; nil: always. If not,
	// there is one path, and answers come after commands are applied, until the settings change.
	If func(own setting.Values) bool
	// Accepted: ModeAccepted has answers of its own (Effects.Accepted). Keys, Tokens: the core uses them.
	Accepted, Keys, Tokens bool
	// Path returns the path of a command. Commands of different paths are never in one entry. It depends only on its
	// argument. Status.Routes has the destinations of paths. nil: all take path 0.
	Path func(o *ProposeOptions) Path
}

// With describes proposals to a cluster that has these settings.
func (p Proposing) With(own setting.Values) Proposing {
	if p.If != nil && !p.If(own) {
		return Proposing{}
	}
	return p
}

// Use returns the options without those that the protocol ignores. Blind only selects the path of a command, so it is
// dropped if there is one path.
func (p *Proposing) Use(o ProposeOptions) ProposeOptions {
	o.Wait, o.Stages = 0, nil
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

// Held returns the commands for which a member withholds a proposal, because the core does not order it after them.
func (p *Proposing) Held(o *ProposeOptions) []Token {
	if p.Tokens {
		return nil
	}
	return o.After
}

// Barrier reports whether reads that must see everything accepted need more than other reads. They do not if every
// answer comes after applying.
func (p *Proposing) Barrier(wanted bool) bool { return wanted && p.Accepted }

// Plain reports whether these are the options of a proposal without any.
func (o *ProposeOptions) Plain() bool {
	return o.Mode == ModeConfirmed && !o.Blind && len(o.Keys) == 0 && len(o.After) == 0
}

// Takes reports whether the options of another command of the same mode and path can be added.
func (o *ProposeOptions) Takes(more *ProposeOptions) bool {
	return o.Blind == more.Blind && (len(o.Keys) == 0) == (len(more.Keys) == 0) &&
		len(o.Keys)+len(more.Keys) <= MaxKeys && len(o.After)+len(more.After) <= MaxTokens
}

// Add adds the options of another command of the same mode and path.
func (o *ProposeOptions) Add(more *ProposeOptions) {
	o.Keys, o.After = append(o.Keys, more.Keys...), append(o.After, more.After...)
}

// Clone returns a copy that shares nothing.
func (o *ProposeOptions) Clone() ProposeOptions {
	return ProposeOptions{Mode: o.Mode, Blind: o.Blind, Keys: slices.Clone(o.Keys), After: slices.Clone(o.After)}
}
