package member

import (
	"fmt"

	"github.com/braidlog/braid/protocol"
)

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
