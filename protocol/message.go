package protocol

import (
	"encoding/binary"
	"fmt"
)

// MessageType says what a message asks or answers.
type MessageType uint8

// The messages of Raft and its placements. An answer has the type after its question.
const (
	MsgPreVote MessageType = 1 + iota
	MsgPreVoteResp
	MsgVote
	MsgVoteResp
	MsgAppend
	MsgAppendResp
	MsgHeartbeat
	MsgHeartbeatResp
	// MsgPropose forwards sealed batches to the leader. It is answered only when refused.
	MsgPropose
	MsgProposeResp
	// MsgRead asks the leader for a read point on behalf of a follower.
	MsgRead
	MsgReadResp
	// MsgTimeoutNow tells a member to stand for election at once (leadership transfer).
	MsgTimeoutNow
	messageTypes
)

var messageNames = [messageTypes]string{
	MsgPreVote: "PreVote", MsgPreVoteResp: "PreVoteResp", MsgVote: "Vote", MsgVoteResp: "VoteResp",
	MsgAppend: "Append", MsgAppendResp: "AppendResp", MsgHeartbeat: "Heartbeat", MsgHeartbeatResp: "HeartbeatResp",
	MsgPropose: "Propose", MsgProposeResp: "ProposeResp", MsgRead: "Read", MsgReadResp: "ReadResp",
	MsgTimeoutNow: "TimeoutNow",
}

func (t MessageType) String() string {
	if t < messageTypes && messageNames[t] != "" {
		return messageNames[t]
	}
	return fmt.Sprintf("message(%d)", uint8(t))
}

// Message is what one member's instance tells the same instance on another member.
// Which fields mean something depends on the type; unused ones are zero.
type Message struct {
	Type     MessageType
	Reject   bool
	Force    bool // a vote asked for by a leadership transfer: stickiness does not apply
	Reason   Reason
	Instance InstanceID
	From, To MemberID
	Term     Term

	// Index and LogTerm: Append: the entry before Entries. AppendResp: the highest index
	// known to match, or, if Reject, the refused Index. Votes: the candidate's last entry.
	// ReadResp: the read point.
	Index   Index
	LogTerm Term
	// Hint and HintTerm: AppendResp with Reject: where the follower's log may match.
	Hint     Index
	HintTerm Term
	Commit   Index
	// Round numbers the leader's confirmations of its leadership; answers repeat it.
	Round uint64
	// Context names the question in the sender's own terms; answers repeat it.
	Context uint64
	// ID is the refused proposal's id (ProposeResp).
	ID      ProposalID
	Entries []Entry
}

// MessageHeadSize is the length in bytes of an encoded message before its entries.
const MessageHeadSize = 128

// AppendHead appends the message's encoded head to dst. The entries follow it on the
// wire as head, payload, head, payload …; the caller writes them from where they are.
func (m *Message) AppendHead(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, MessageHeadSize)...)
	b := dst[at:]
	le := binary.LittleEndian
	b[4] = byte(m.Type)
	b[5] = bit(m.Reject) | bit(m.Force)<<1
	b[6] = byte(m.Reason)
	le.PutUint32(b[8:], uint32(m.Instance))
	le.PutUint32(b[12:], uint32(len(m.Entries)))
	for i, v := range [...]uint64{
		uint64(m.From), uint64(m.To), uint64(m.Term), uint64(m.Index), uint64(m.LogTerm), uint64(m.Hint),
		uint64(m.HintTerm), uint64(m.Commit), m.Round, m.Context,
		uint64(m.ID.Session.Member), m.ID.Session.Incarnation, m.ID.Seq,
	} {
		le.PutUint64(b[16+8*i:], v)
	}
	// 16 + 13·8 = 120; bytes 120…127 are reserved.
	le.PutUint32(b, Digest(b[4:]))
	return dst
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// DecodeMessage reads a message; its entries alias b and their payloads are verified.
// It returns a [CorruptError] if anything about b is not as a member would send it.
func DecodeMessage(b []byte) (*Message, error) {
	if len(b) < MessageHeadSize {
		return nil, &CorruptError{What: "message", Detail: fmt.Sprintf("%d bytes, need %d", len(b), MessageHeadSize)}
	}
	le := binary.LittleEndian
	if le.Uint32(b) != Digest(b[4:MessageHeadSize]) {
		return nil, &CorruptError{What: "message head", Detail: "checksum mismatch"}
	}
	u := func(i int) uint64 { return le.Uint64(b[16+8*i:]) }
	m := &Message{
		Type: MessageType(b[4]), Reject: b[5]&1 != 0, Force: b[5]&2 != 0, Reason: Reason(b[6]),
		Instance: InstanceID(le.Uint32(b[8:])),
		From:     MemberID(u(0)), To: MemberID(u(1)), Term: Term(u(2)), Index: Index(u(3)), LogTerm: Term(u(4)),
		Hint: Index(u(5)), HintTerm: Term(u(6)), Commit: Index(u(7)), Round: u(8), Context: u(9),
		ID: ProposalID{Session: Session{Member: MemberID(u(10)), Incarnation: u(11)}, Seq: u(12)},
	}
	if m.Type == 0 || m.Type >= messageTypes {
		return nil, &CorruptError{What: "message", Detail: "unknown type " + m.Type.String()}
	}
	count := int(le.Uint32(b[12:]))
	rest := b[MessageHeadSize:]
	if count > len(rest)/HeadSize {
		return nil, &CorruptError{What: "message", Detail: fmt.Sprintf("%d entries in %d bytes", count, len(rest))}
	}
	if count > 0 {
		m.Entries = make([]Entry, count)
	}
	var err error
	for i := range m.Entries {
		if m.Entries[i], rest, err = DecodeEntry(rest, true); err != nil {
			return nil, err
		}
	}
	if len(rest) != 0 {
		return nil, &CorruptError{What: "message", Detail: fmt.Sprintf("%d bytes too many", len(rest))}
	}
	return m, nil
}
