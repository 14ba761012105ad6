package protocol

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// MessageType is the type of a message: a kind of request or answer. Types below FirstOwnType mean the same in every
// protocol. The others are the protocol's own, and described by its [Codec].
type MessageType uint8

// The common types concern no core: members answer them. The type of an answer follows that of its request.
const (
	// MsgFetch requests the body of Holdings[0], in any form that the receiver holds.
	MsgFetch MessageType = 1 + iota
	MsgFetchResp
	// MsgTail informs an instance's leader that another instance waits for it to fill the rounds up to a slot: its part
	// is a [Wanted]. The member proposes skips in answer.
	MsgTail
	commonTypes

	// FirstOwnType is the first type that is a protocol's own.
	FirstOwnType MessageType = 16
)

var commonTraits = [commonTypes]Traits{MsgFetch: {Name: "Fetch"}, MsgFetchResp: {Name: "FetchResp"},
	MsgTail: {Name: "Tail"}}

func (t MessageType) String() string {
	if t < commonTypes && t > 0 {
		return commonTraits[t].Name
	}
	return fmt.Sprintf("message(%d)", uint8(t))
}

// Part is the part of a message that only its protocol understands.
type Part interface {
	// Append appends the part's encoding to dst, at most MaxPartBytes.
	Append(dst []byte) []byte
}

// WithPart returns a message with its part, in one allocation.
func WithPart[P any, T interface {
	*P
	Part
}](m Message, p P) *Message {
	both := &struct {
		m Message
		p P
	}{m, p}
	both.m.Part = T(&both.p)
	return &both.m
}

// Codec describes a protocol's messages to members. All members of a cluster have the same: they compare the
// protocol's core when they connect.
type Codec struct {
	// Types are the protocol's own, the first one being FirstOwnType.
	Types []Traits
	// Decode reads the part, perhaps an empty one, of a message of a type of Types. It keeps nothing
	// of it. It returns a message that has only that part, so that both can be one piece of memory. A
	// message that no member would send is a [CorruptError]. nil: there are no parts.
	Decode func(t MessageType, part []byte) (*Message, error)
	// Describe returns the contents of a message of Types, without the common fields, as text. Claims returns what a
	// checker may conclude from it. Both may be nil.
	Describe func(*Message) string
	Claims   func(*Message) Claims
	// Replaces reports whether a message of Types has all that an earlier one to the same member had. When both have
	// waited for the disk and leave at the same time, only the later one is sent. nil: none does.
	Replaces func(later, earlier *Message) bool
}

// Traits are the properties of a type that members need, without its meaning.
type Traits struct {
	Name     string
	Delivery Delivery
	Brings   Brings
	// Forwarded: the sender passes on another member's message, in its original size.
	Forwarded bool
}

// Delivery determines whether a message may leave its instance's stream. It does as long as bodies in the stream may
// take longer than an election timeout.
type Delivery uint8

const (
	// InStream: the order within the stream matters.
	InStream Delivery = iota
	// Urgent: it goes alongside the stream.
	Urgent
	// BothWays: it goes in the stream, and without Context alongside it. The one in the stream also asks how much of
	// the stream has arrived. One that is marked Aside goes alongside only.
	BothWays
	// SameWay: it answers a BothWays message by the same path: alongside the stream if it has no Context.
	SameWay
)

// Brings describes the entries in a message. If too many entries wait to be applied on a member, it drops some
// messages that would add to them. The sender must be prepared to send them again.
type Brings uint8

const (
	// BringsNothing: no entries that would have to wait.
	BringsNothing Brings = iota
	// BringsLog: entries of the log, perhaps decided ones.
	BringsLog
	// BringsProposals: entries that the receiver is to append to the log.
	BringsProposals
)

// Claims are the facts in a message that checkers can find to be wrong. Members do not need them. Most messages claim
// nothing.
type Claims struct {
	// Term: the sender has the message's term, durably.
	Term bool
	// Vote is the sender's durable vote in the term; 0: the message has none.
	Vote MemberID
	// Stored: the sender's disk holds the log of the term's leader up to here.
	Stored Index
	// Holds: the sender's disk holds the bodies that Holdings names, in these forms. Asked: the request was a new
	// leader's, in the message's term.
	Holds, Asked bool
	// Moves: the receiver is to become leader in the sender's place.
	Moves bool
	// Acked: the receiver acknowledged, in this term, the log up to here.
	Acked Index
}

// ClaimsOf returns the claims of a message.
func (c *Codec) ClaimsOf(m *Message) Claims {
	if !c.own(m.Type) || c.Claims == nil {
		return Claims{}
	}
	return c.Claims(m)
}

// PartOf describes the protocol's own part of a message, as text.
func (c *Codec) PartOf(m *Message) string {
	if !c.own(m.Type) || c.Describe == nil {
		return ""
	}
	return c.Describe(m)
}

// Of returns the traits of a type, and those of an unknown one if it is not one of the protocol's types. The caller
// must not change them.
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

// decode reads a message's part.
func (c *Codec) decode(t MessageType, part []byte) (*Message, error) {
	switch {
	case (t == 0 || t >= commonTypes) && !c.own(t):
		return nil, &CorruptError{What: "message", Detail: "unknown type " + t.String()}
	case t == MsgTail:
		return decodeTail(part)
	case t >= FirstOwnType && c.Decode != nil:
		return c.Decode(t, slices.Clip(part))
	case len(part) > 0:
		return nil, &CorruptError{What: "message", Detail: c.Name(t) + " with a part"}
	}
	return &Message{}, nil
}

// Wanted is the part of a MsgTail: the slot of the global log that another instance waits for.
type Wanted struct {
	Round    Round
	Instance InstanceID
}

// Append implements Part.
func (w Wanted) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(w.Round))
	return binary.LittleEndian.AppendUint32(dst, uint32(w.Instance))
}

func decodeTail(b []byte) (*Message, error) {
	if len(b) != 12 {
		return nil, &CorruptError{What: "message", Detail: fmt.Sprintf("a tail of %d bytes", len(b))}
	}
	le := binary.LittleEndian
	return &Message{Part: Wanted{Round(le.Uint64(b)), InstanceID(le.Uint32(b[8:]))}}, nil
}
