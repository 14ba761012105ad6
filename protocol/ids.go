package protocol

import (
	"fmt"
	"strconv"
)

// Term numbers the terms of leaders in one instance; at most one leader per term.
type Term uint64

// BallotText returns the term as ballots are written, NUMBER.SLOT. The low byte of a ballot is the slot of the member
// that leads by it; the number above grows with each ballot.
func (t Term) BallotText() string { return fmt.Sprintf("%d.%d", uint64(t)>>8, uint64(t)&0xff) }

// Index numbers the entries of one instance's log, from 1. 0 is "before the first".
type Index uint64

// Position numbers the commands of the global log, from 1, over all instances.
// It is equal on every member: it is the state machine's consistent index.
type Position uint64

// Round numbers the rounds in which instances are merged into the global log, from 1. In
// each round every instance has one slot, for one batch (docs/internals/niagara.md, 3.1: a virtual slot).
type Round uint64

// MemberID names a member of the cluster. 0 is no one. An id is never reused.
type MemberID uint64

// String writes the id as etcd writes member ids, in hexadecimal.
func (id MemberID) String() string { return strconv.FormatUint(uint64(id), 16) }

// InstanceID numbers the protocol instances that a member hosts, from 1.
type InstanceID uint32

// FirstInstance is the first instance of a log that was not sealed. Only a seal retires it.
const FirstInstance InstanceID = 1

// Session names one incarnation of one member as an origin of proposals: the member and its incarnation, a number
// that the member makes durable and raises at every start. It identifies the log, the incarnation of that log, and
// whether all instances share the numbers of the proposals: see [NewSession].
type Session struct {
	Member      MemberID
	Incarnation uint64
}

// ProposalID identifies a command permanently: the session that proposed it and its sequence number there, from 1. If
// the session's numbers are not shared, the instance belongs to it too. By it a command takes effect at most once,
// however often it is forwarded or proposed again.
type ProposalID struct {
	Session Session
	Seq     uint64
}
