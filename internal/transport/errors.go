package transport

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed indicates that the transport was closed. Retrying is of no use.
	ErrClosed = errors.New("transport: closed")
	// ErrUnknownPeer indicates that the peer is not among those given to SetPeers.
	ErrUnknownPeer = errors.New("transport: no such peer")
	// ErrRemoved indicates that the link was ended because SetPeers no longer lists the peer.
	ErrRemoved = errors.New("transport: peer removed")
	// ErrReplaced indicates that the peer opened the same stream again.
	ErrReplaced = errors.New("transport: replaced by a newer connection")
	// ErrForgotten indicates that Forget ended the stream.
	ErrForgotten = errors.New("transport: the stream is not used any more")
	// ErrDropped indicates that Drop ended the connection.
	ErrDropped = errors.New("transport: link ended by this member")
	// ErrCut indicates that SetLink or the emulation has cut the link.
	ErrCut = errors.New("transport: the link is cut")
	// ErrBusy indicates that the limit of what may be in progress with a peer is reached. The call did
	// nothing; a retry is safe.
	ErrBusy = errors.New("transport: too much under way with this peer")
)

// Reason explains why one side of a handshake refused the other.
type Reason uint8

// The reasons of a refusal.
const (
	_               Reason = iota
	ReasonGarbage          // what came is not braid's handshake
	ReasonVersion          // another version of the links' format
	ReasonCluster          // a member of another cluster
	ReasonMember           // the address belongs to another member than expected
	ReasonSettings         // settings that must be equal everywhere differ
	ReasonUnknown          // the dialer is not a member
	ReasonBusy             // a bound on connections is reached
	ReasonReplaced         // the same stream was opened again
	ReasonMalformed        // the connection carried what a member would not send
	ReasonClosing          // the member is stopping
	ReasonIdentity         // another data directory, or an earlier incarnation, than was known of the member
	ReasonRemoved          // the dialer was a member, and was removed
	ReasonLineage          // the logs of the two members were founded apart
)

var reasonTexts = [...]string{
	ReasonGarbage:   "not a braid member's handshake",
	ReasonVersion:   "another version of braid's links",
	ReasonCluster:   "a member of another cluster",
	ReasonMember:    "not the member expected at this address",
	ReasonSettings:  "settings that must be equal on all members differ",
	ReasonUnknown:   "not a member of the cluster",
	ReasonBusy:      "too many connections",
	ReasonReplaced:  "the same stream was opened again",
	ReasonMalformed: "malformed frame",
	ReasonClosing:   "the member is stopping",
	ReasonIdentity:  "a member is not the one that was known under its id",
	ReasonRemoved:   "removed from the cluster",
	ReasonLineage:   "the members have two logs, which were founded apart",
}

// String describes the reason.
func (r Reason) String() string {
	if int(r) < len(reasonTexts) && reasonTexts[r] != "" {
		return reasonTexts[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Final reports whether the refused member should stop: the refusing one knows a decision of the cluster that is never
// undone. Such a refusal counts only if the same answer shows that it comes from the member that was dialed, in the
// same cluster.
func (r Reason) Final() bool { return r == ReasonRemoved }

// HandshakeError indicates that two members did not agree to talk. Nothing was exchanged; retrying
// is safe but useless until the configuration of one of them changes, except for ReasonBusy,
// ReasonReplaced and ReasonClosing.
type HandshakeError struct {
	Peer   uint64 // the member expected (dialing) or claimed (accepting); 0 if unknown
	Addr   string // the other side's address
	Reason Reason
	ByPeer bool   // the other side refused, not this one
	Detail string // what was found and what was expected, if known
}

func (e *HandshakeError) Error() string {
	who := "refused"
	if e.ByPeer {
		who = "refused by the peer"
	}
	s := fmt.Sprintf("transport: link with member %x at %s %s: %s", e.Peer, e.Addr, who, e.Reason)
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	return s
}

// FrameError indicates that a connection carried something that is not a frame of a member.
type FrameError struct {
	Detail string
}

func (e *FrameError) Error() string { return "transport: malformed frame: " + e.Detail }

// RemoteError is an error that the peer's handler returned, as text. Whether a retry is
// safe depends on what was asked.
type RemoteError struct {
	Peer uint64
	Text string
}

func (e *RemoteError) Error() string { return fmt.Sprintf("member %x: %s", e.Peer, e.Text) }

// LinkError indicates that a connection with a peer could not be made or broke. Unless Sent,
// nothing reached the peer and a retry is safe; if Sent, the peer may have acted.
type LinkError struct {
	Peer uint64
	Op   string // dial, send, receive
	Sent bool
	Err  error
}

func (e *LinkError) Error() string {
	return fmt.Sprintf("transport: member %x: %s: %v", e.Peer, e.Op, e.Err)
}

func (e *LinkError) Unwrap() error { return e.Err }

// ListenerError indicates that a listener was closed by something else than the transport: no member can connect there
// any more. A retry needs another listener.
type ListenerError struct {
	Addr string
	Err  error
}

func (e *ListenerError) Error() string {
	return fmt.Sprintf("transport: the listener at %s was closed: %v", e.Addr, e.Err)
}

// Unwrap returns the listener's error.
func (e *ListenerError) Unwrap() error { return e.Err }

// SizeError indicates that something is larger than a member may send. Retrying is useless.
type SizeError struct {
	What        string
	Size, Limit int
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("transport: %s of %d bytes is larger than the limit of %d", e.What, e.Size, e.Limit)
}
