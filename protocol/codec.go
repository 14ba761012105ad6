package protocol

import (
	"fmt"
	"slices"
)

// MessageType says what a message asks or answers. Types below FirstOwnType mean the same in every
// protocol. Those from there on are the protocol's own: its [Codec] says what they are.
type MessageType uint8

// The common types concern no core: members answer them. An answer has the type after its question.
const (
	// MsgFetch asks any member for what it holds of a body: Holdings[0].
	MsgFetch MessageType = 1 + iota
	MsgFetchResp
	// MsgTail tells an instance's leader that another instance waits for it to fill the rounds
	// up to Round. Members answer it by proposing to skip.
	MsgTail
	commonTypes

	// FirstOwnType is the first type that is a protocol's own.
	FirstOwnType MessageType = 16
)

var commonTraits = [commonTypes]Traits{MsgFetch: {Name: "Fetch"}, MsgFetchResp: {Name: "FetchResp"}, MsgTail: {Name: "Tail"}}

func (t MessageType) String() string {
	if t < commonTypes && t > 0 {
		return commonTraits[t].Name
	}
	return fmt.Sprintf("message(%d)", uint8(t))
}

// Part is what only the protocol understands of a message.
type Part interface {
	// Append appends the part's encoding to dst, at most MaxPartBytes.
	Append(dst []byte) []byte
}

// Codec is what members know of a protocol's messages. All members of a cluster have the same: the
// protocol's core is compared when they connect.
type Codec struct {
	// Types are the protocol's own, the first one being FirstOwnType.
	Types []Traits
	// Decode reads a part of a type of Types, of which it keeps nothing. It returns a message that
	// has only that part, so that both can be one piece of memory. What no member would send is an
	// error. nil: there are no parts.
	Decode func(t MessageType, part []byte) (*Message, error)
}

// Traits are what members must know of a type without knowing what its messages mean.
type Traits struct {
	Name   string
	Way    Way
	Brings Brings
}

// Way says whether a message may leave its instance's stream. It does as long as bodies in the
// stream may take longer than an election timeout.
type Way uint8

const (
	// InStream: the order within the stream matters.
	InStream Way = iota
	// Urgent: it goes beside the stream.
	Urgent
	// BothWays: it goes in the stream, and without Context beside it. The one in the stream also
	// asks what of the stream has arrived.
	BothWays
	// SameWay: it answers what goes both ways, where it was asked: beside the stream if it has no
	// Context.
	SameWay
)

// Brings says what entries in a message are. If too many entries wait to be applied on a member, it
// drops some messages that would add to them. The sender must be prepared to send them again.
type Brings uint8

const (
	// BringsNothing: no entries that would have to wait.
	BringsNothing Brings = iota
	// BringsLog: entries of the log, perhaps decided ones.
	BringsLog
	// BringsProposals: entries that this member is to put into the log.
	BringsProposals
)

// Of is what is known of a type. Nothing is known of what is not one of the protocol's types. The
// caller must not change it.
func (c *Codec) Of(t MessageType) *Traits {
	switch {
	case c.own(t):
		return &c.Types[t-FirstOwnType]
	case t < commonTypes:
		return &commonTraits[t]
	}
	return &commonTraits[0]
}

func (c *Codec) own(t MessageType) bool {
	return c != nil && t >= FirstOwnType && int(t-FirstOwnType) < len(c.Types)
}

// Name is a type's name.
func (c *Codec) Name(t MessageType) string {
	if name := c.Of(t).Name; name != "" {
		return name
	}
	return t.String()
}

// decode reads a message's part, nil if it has none.
func (c *Codec) decode(t MessageType, part []byte) (*Message, error) {
	switch {
	case (t == 0 || t >= commonTypes) && !c.own(t):
		return nil, &CorruptError{What: "message", Detail: "unknown type " + t.String()}
	case part == nil:
		return &Message{}, nil
	case t < commonTypes || c.Decode == nil:
		return nil, &CorruptError{What: "message", Detail: c.Name(t) + " with a part"}
	}
	return c.Decode(t, slices.Clip(part))
}
