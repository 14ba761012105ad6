package braid

import (
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/protocol"
)

// Errors of proposals, changes and reads. Compare with [errors.Is]: they are wrapped, and may be joined with a typed
// error that says more.
var (
	// ErrMaybeCommitted: no answer came in time. The command takes effect once or never, now or later. A retry is
	// another command, so it is safe only if the command is idempotent.
	ErrMaybeCommitted = member.ErrMaybeCommitted
	// ErrNotSent: the context ended before anything was sent. Nothing happened, and nothing will. A retry is safe.
	ErrNotSent = member.ErrNotSent
	// ErrResultUnknown: the command took effect exactly once, but this member was sent a snapshot that includes it, and
	// does not know its result. Do not retry.
	ErrResultUnknown = member.ErrResultUnknown
	// ErrNoLeader: no leader took the command until the timeout of [Node.Propose]. Nothing happened, and nothing will.
	// A retry is safe.
	ErrNoLeader = member.ErrNoLeader
	// ErrOverloaded: what waits on this member is at its limit in bytes. Nothing happened. A retry is safe, after a
	// pause.
	ErrOverloaded = member.ErrOverloaded
	// ErrTooLarge: the command, with its body, exceeds Limits.CommandBytes. Nothing happened. A retry gets the same
	// answer.
	ErrTooLarge = member.ErrTooLarge
	// ErrStopped: the member has stopped, or stops. Calls made after the stop had no effect; joined with their error is
	// why, if it stopped on its own. A command that was in progress may have been committed: then a retry, at another
	// member, is safe only if the command is idempotent, and [Node.Err] says why the member stopped.
	ErrStopped = member.ErrStopped
	// ErrReadTimeout: no leader is known, leadership was not confirmed in time, or not everything before the read was
	// applied. A read changes nothing: a retry is safe.
	ErrReadTimeout = member.ErrReadTimeout
	// ErrWithinApply: the state machine called, in Apply, Snapshot or Restore, and would wait for itself. Nothing
	// happened, unless it is joined with ErrMaybeCommitted. A retry from there never succeeds: let another goroutine
	// call, for which the state machine does not wait, or call ProposeAsync.
	ErrWithinApply = member.ErrWithinApply
)

// RefusedError indicates that a proposal, a membership change or a transfer was refused. Nothing happened, unless it is
// joined with [ErrMaybeCommitted].
//
//	What   string   // what was refused, in words
//	Reason Reason   // why
//	Leader MemberID // whom to ask instead, if known
//
// Retryable reports whether a retry makes sense, here or at Leader.
type RefusedError = member.RefusedError

// Reason is why a [RefusedError] was returned. String says it in words. Retryable reports whether the same request may
// succeed later.
type Reason = protocol.Reason

// Reasons of a [RefusedError] on which a program may act. Package protocol has all.
const (
	// ReasonPeerURLTaken: the change gives a member a peer URL of another one.
	ReasonPeerURLTaken = protocol.ReasonPeerURLTaken
	// ReasonLineage: the member that is to be added, or to become a voter, has a log that was founded apart from the
	// cluster's. It can be added with an empty directory.
	ReasonLineage = protocol.ReasonLineage
	// ReasonUnknownMember: the change removes or updates a member, or leadership is to go to one, that never was one.
	ReasonUnknownMember = protocol.ReasonUnknownMember
	// ReasonNoListener: the member that was asked to add another one was opened without Listen.
	ReasonNoListener = protocol.ReasonNoListener
	// ReasonRemoved: the member that was asked is not part of the cluster any more. Ask another one.
	ReasonRemoved = protocol.ReasonRemoved
)

// ProposeOptionsError indicates that a proposal has options that no protocol takes, or a read a token that no member
// gave. Nothing happened. Do not retry.
//
//	Detail string
type ProposeOptionsError = protocol.OptionsError

// TokenError indicates that the command of a token was not applied on this member in time. What was to wait for it did
// not happen: nothing was read or proposed. A retry is safe, here or on another member.
//
//	Token Token
//	State TokenState
type TokenError = member.TokenError

// TokenState is the member's view of the command of a token.
type TokenState = member.TokenState

// States in a [TokenError].
const (
	// TokenPending: the command is not applied here yet.
	TokenPending = member.TokenPending
	// TokenUnknown: nothing of the member that gave the token was applied here since that member started.
	TokenUnknown = member.TokenUnknown
	// TokenGone: the command is not applied here, and the member that gave the token was removed.
	TokenGone = member.TokenGone
)

// BrokenError indicates that a command of a [Client] was not proposed, because an earlier one failed and may still take
// effect. The command has no effect. Go on with a new client.
//
//	Cause error // the fate of the earlier command
//
// Unwrap returns Cause.
type BrokenError = intake.BrokenError

// BodyError indicates that a body could not be made whole in time: fewer than Need good fragments were found. A later
// call may succeed, when more members can be reached.
//
//	Ref             BodyRef
//	Found, Need     int   // fragments
//	Asked, Answered int   // members
//	Bad             int   // fragments that do not fit the body's digest
//	Waited          bool  // the question never began, because others took all the memory for it
//	Unread          error // why this member could not read what it holds of the body itself
//
// Certain reports whether all members answered, and together hold too little: then only a member that is not part of
// the cluster now can help, or a repaired disk. Unwrap returns Unread.
type BodyError = body.BodyError

// MachineError indicates that the state machine cannot continue, which stopped the member. Acknowledged commands are
// in the log: a start applies it, if the state machine can continue then.
//
//	Op  string // what failed: apply, snapshot, sync, restore, live bodies
//	Err error
//
// Unwrap returns Err.
type MachineError = member.MachineError

// DirError indicates that a directory cannot be used. Nothing in it was changed. A retry does not help before what
// Detail says is mended.
//
//	Dir    string
//	Detail string
type DirError = member.DirError

// LogKind is the kind of a log: the settings that never change after its creation: what was written by one kind cannot
// be read by another.
//
//	Core      string // the protocol that decides its entries
//	Order     string // how the log is made of instances, as Status.Order has it
//	Fragments int    // how many fragments make a body whole, where quorums depend on it; else 0
//
// IsZero reports that nothing is known. Shares reports whether two logs have the same core, so that only their profiles
// differ. String names the kind.
type LogKind = member.LogKind

// LogKindError indicates that a directory holds a log of another kind than the one with which it was to be opened.
// Nothing was changed. A retry does not help: open the directory with the protocol and the order that it has.
//
//	Dir    string
//	Has    []LogKind // what it holds; of a directory of an early version: all kinds that may have written it
//	Wanted LogKind
type LogKindError = member.LogKindError

// StateAheadError indicates that a state on disk includes commands that the log does not have. The member stops, or
// does not start. What was proposed through it since its start may have been committed without taking effect in its
// state: it was not acknowledged. Put back the state machine and the directory of one and the same moment, or start a
// new member in its place.
//
//	State Position // how far the state is
//	Log   Position // how far the log is
type StateAheadError = apply.StateAheadError

// LineageError indicates that two logs are not one, although they are of clusters with one id. Nothing of the other log
// was taken. A retry does not help: remove one of the members, and add it with an empty directory.
//
//	Member    MemberID // whose log has the other lineage; 0: this member's own, so that this member stops
//	Known, Is uint64   // the lineage that this member knew, and the other one
type LineageError = member.LineageError

// ExpelledError indicates that a member stopped permanently, because the cluster continues without it. It is in the
// error of [Node.Err] and of calls after the stop, or Open returns it. Starting the member again does not help. Error
// says what does.
//
//	Member MemberID
//	By     MemberID // which member refused to talk to it; 0: its own log says that it was removed
//	Reason          // why, as a number; its String says it in words
type ExpelledError = member.ExpelledError

// ForgottenError indicates that this member is not the one that others know under its id: its directory is new, or an
// old copy. Its promises are lost, so it must not vote, and stops. A retry does not help: remove the member, and add
// another one.
//
//	Self, By     MemberID         // the member, and who said so; By 0: the cluster's membership
//	Known, Is    protocol.Who     // who the others take it for, and who it is
//	Acknowledged *protocol.Forgot // what the leader of a term found it to have forgotten, if that is the reason
type ForgottenError = cluster.ForgottenError

// GroupError indicates that a command has no group, where the log is divided by keys ([NewGroups]). Nothing happened.
// Do not retry.
//
//	Detail string
type GroupError = intake.GroupError
