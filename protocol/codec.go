package protocol

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// MessageType is the type of a message: which question or answer it is. Types below FirstOwnType
// mean the same in every protocol. Those from there on are the protocol's own: its [Codec] says
// what they are.
type MessageType uint8

// The common types concern no core: members answer them. An answer has the type after its question.
const (
	// MsgFetch asks any member for what it holds of a body: Holdings[0].
	MsgFetch MessageType = 1 + iota
	MsgFetchResp
	// MsgTail tells an instance's leader that another instance waits for it to fill the rounds
	// up to a slot: its part is a [Wanted]. Members answer it by proposing to skip.
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

// Codec is what members know of a protocol's messages. All members of a cluster have the same: the
// protocol's core is compared when they connect.
type Codec struct {
	// Types are the protocol's own, the first one being FirstOwnType.
	Types []Traits
	// Decode reads the part, perhaps an empty one, of a message of a type of Types. It keeps nothing
	// of it. It returns a message that has only that part, so that both can be one piece of memory. A
	// message that no member would send is a [CorruptError]. nil: there are no parts.
	Decode func(t MessageType, part []byte) (*Message, error)
	// Describe says for a person what is in a message of Types, alongside the common things. Claims
	// says for judges what must be so if a member sends it. Both may be nil.
	Describe func(*Message) string
	Claims   func(*Message) Claims
}

// Traits are what members must know of a type without knowing what its messages mean.
type Traits struct {
	Name     string
	Delivery Delivery
	Brings   Brings
	// Forwarded: the sender passes on what another member made, as large as that one made it.
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
	// BothWays: it goes in the stream, and without Context alongside it. The one in the stream also
	// asks what of the stream has arrived.
	BothWays
	// SameWay: it answers what goes both ways, where it was asked: alongside the stream if it has no
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

// Claims is what a message says that judges can find to be wrong. Members do not need it. Most
// messages claim nothing.
type Claims struct {
	// Term: the sender has the message's term, durably.
	Term bool
	// Vote is whom the sender has voted for in the term, durably; 0: it does not say.
	Vote MemberID
	// Stored: the sender's disk holds the log of the term's leader up to here.
	Stored Index
	// Holds: the sender's disk holds the bodies that Holdings names, in these forms. Asked: a new
	// leader asked in the message's term.
	Holds, Asked bool
	// Moves: the receiver is to lead in the sender's place.
	Moves bool
	// Acked: the receiver acknowledged, in this term, the log up to here.
	Acked Index
}

// ClaimsOf is what a message claims.
func (c *Codec) ClaimsOf(m *Message) Claims {
	if !c.own(m.Type) || c.Claims == nil {
		return Claims{}
	}
	return c.Claims(m)
}

// PartOf is what a message says that only its protocol understands, for a person.
func (c *Codec) PartOf(m *Message) string {
	if !c.own(m.Type) || c.Describe == nil {
		return ""
	}
	return c.Describe(m)
}

// Of is the known state of a type. Nothing is known of what is not one of the protocol's types. The
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

// Wanted is the part of a MsgTail: the slot of the global log that is waited for.
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
