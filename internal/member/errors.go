package member

import (
	"errors"
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/protocol"
)

// Errors of proposals and reads. Each says whether a retry is safe.
var (
	// ErrMaybeCommitted: no answer came in time. The command takes effect once or never, now or
	// later. A retry is another command, so it is safe only if the command is idempotent.
	ErrMaybeCommitted = errors.New("braid: no answer in time, the command may have been committed")
	// ErrNotSent: the context ended before anything was sent. Nothing happened, and nothing will.
	// A retry is safe.
	ErrNotSent = errors.New("braid: the context ended before anything was sent, nothing happened")
	// ErrResultUnknown: the command took effect exactly once, but this member skipped over
	// it with a snapshot and does not know its result. Do not retry.
	ErrResultUnknown = errors.New("braid: committed, but the result is not known on this member")
	// ErrNoLeader: no leader took the command until the timeout. Nothing happened, and nothing will. A retry
	// is safe.
	ErrNoLeader = errors.New("braid: no leader")
	// ErrOverloaded: the member's queue for what was called is at its limit in bytes. Nothing happened. A
	// retry is safe, after a pause.
	ErrOverloaded = errors.New("braid: overloaded, too many bytes pending")
	// ErrTooLarge: the command, with its body, exceeds the limit. Nothing happened. A retry gets the same
	// answer.
	ErrTooLarge = errors.New("braid: command too large")
	// ErrStopped: the member is stopped or stopping. Calls made after the stop had no effect; joined with their
	// error is why, if the member stopped by itself. A command that was in progress may have been committed: then a
	// retry, at another member, is safe only if the command is idempotent. Its error has no reason, because that
	// may wrap an error of the program that says that nothing happened.
	ErrStopped = errors.New("braid: member stopped")
	// ErrWithinApply: the state machine called, in Apply, Snapshot or Restore, and would wait for itself.
	// Nothing happened, unless it is joined with ErrMaybeCommitted. A retry from there never succeeds; let
	// another goroutine call, for which the state machine does not wait, or call ProposeAsync.
	ErrWithinApply = errors.New("braid: called by the state machine, which would wait for itself")
	// ErrReadTimeout: leadership was not confirmed, or not everything before the read was applied, in time.
	// Reads change nothing: a retry is safe.
	ErrReadTimeout = errors.New("braid: read not confirmed in time")
)

// RefusedError says that a proposal, a membership change or a transfer was refused. Nothing
// happened, unless it is joined with ErrMaybeCommitted.
type RefusedError struct {
	What   string
	Reason protocol.Reason
	Leader protocol.MemberID // who to ask instead, if known
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("braid: %s refused: %s", e.What, e.Reason)
}

// Retryable reports whether the same request may succeed later.
func (e *RefusedError) Retryable() bool { return e.Reason.Retryable() }

// ExpelledError says why a member stopped and does not start again: the cluster continues without it. Starting it again
// does not help. Error says what does.
type ExpelledError struct {
	Member protocol.MemberID
	By     protocol.MemberID // who refused to talk to it; 0: its own log says so
	Reason transport.Reason
}

// NewRemoved is the error of a member whose own log says that it was removed.
func NewRemoved(id protocol.MemberID) *ExpelledError {
	return &ExpelledError{Member: id, Reason: transport.ReasonRemoved}
}

func (e *ExpelledError) Error() string {
	who := "its own log says so"
	if e.By != 0 {
		who = fmt.Sprintf("member %s says so", e.By)
	}
	if e.Reason == transport.ReasonRemoved {
		return fmt.Sprintf("braid: member %s was removed from the cluster (%s); "+
			"to have it back, add a new member and start that one with an empty data directory", e.Member, who)
	}
	return fmt.Sprintf("braid: member %s cannot go on with its data: %s (%s)", e.Member, e.Reason, who)
}

// MachineError says that the state machine cannot continue, which stops the member. What was acknowledged
// is in the log. A start applies it again, if the state machine can continue then.
type MachineError struct {
	Op  string // what failed: apply, snapshot, sync, restore, live bodies
	Err error
}

func (e *MachineError) Error() string { return "braid: state machine: " + e.Op + ": " + e.Err.Error() }

// Unwrap returns the state machine's own error.
func (e *MachineError) Unwrap() error { return e.Err }

// DirError is a data directory that cannot be used. Nothing in it was changed. A retry does not help before
// what Detail says is mended.
type DirError struct {
	Dir    string
	Detail string
}

func (e *DirError) Error() string {
	return fmt.Sprintf("braid: data directory %s: %s", e.Dir, e.Detail)
}

// StalledError says that something on the member itself stalled for longer than its timeout.
type StalledError struct {
	What string
	For  time.Duration
}

func (e *StalledError) Error() string { return fmt.Sprintf("braid: %s stalled for %s", e.What, e.For) }

// NoStateError says why a member cannot send its state to one whose state is damaged. Nothing
// happened. Another member may have it, and this one later.
type NoStateError struct{ Detail string }

func (e *NoStateError) Error() string { return "braid: the member cannot send its state: " + e.Detail }
