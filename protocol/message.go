package protocol

import (
	"encoding/binary"
	"fmt"
)

// The messages of Raft and its placements. An answer has the type after its question.
const (
	MsgPreVote = FirstOwnType + iota
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
	// MsgHoldings: a leader that was just elected asks in what form each member holds the
	// bodies of the Holdings' entries (docs/craft.md, 2.5).
	MsgHoldings
	MsgHoldingsResp
	// MsgBodies brings a follower more of the bodies of entries that it has: the whole in place of
	// a row. It is answered by MsgAppendResp.
	MsgBodies
)

// Message is what one member's instance tells the same instance on another member.
// Which fields mean something depends on the type; unused ones are zero.
type Message struct {
	Type    MessageType
	Reject  bool
	Force   bool // a vote asked for by a leadership transfer: stickiness does not apply
	Lacking bool // AppendResp, HeartbeatResp: bodies of committed entries are still missing here
	Reason  Reason
	// Partial and Restripes: AppendResp, HeartbeatResp: as in [Bodies].
	Partial   uint8
	Restripes uint32
	Instance  InstanceID
	From, To  MemberID
	Term      Term

	// Index and LogTerm: Append: the entry before Entries. AppendResp: the highest index
	// known to match, or, if Reject, the refused Index. Votes: the candidate's last entry.
	// ReadResp: the read point. Heartbeat: up to where the receiver acknowledged in this term.
	Index   Index
	LogTerm Term
	// Hint and HintTerm: AppendResp with Reject: where the follower's log may match.
	Hint     Index
	HintTerm Term
	// Commit is the sender's commit index. HeartbeatResp: as Applied in [Tick].
	Commit Index
	// Round numbers the leader's confirmations of its leadership; answers repeat it. Tail: the
	// round of the global log.
	Round uint64
	// Context names the question in the sender's own terms; answers repeat it.
	Context uint64
	// ID is the refused proposal's id (ProposeResp).
	ID ProposalID
	// Part is what only the protocol understands; nil: nothing.
	Part    Part
	Entries []Entry
	// Holdings: AppendResp: in which form the disk holds the coded entries that it acknowledges.
	// Holdings, HoldingsResp: the entries asked about. Fetch, FetchResp: the body.
	Holdings []Holding
	// Blob is the body that a FetchResp brings, in the form of Holdings[0].
	Blob []byte
}

// MessageHeadSize is the length in bytes of an encoded message before its entries.
const MessageHeadSize = 132

// AppendHead appends the message's encoded head to dst, and its part. The caller writes the rest from where it
// is, without a copy: for each entry its head, its payload and, if it has a body,
// [Entry.AppendBodyHead] and the body; then [Message.AppendHoldings]; then Blob.
func (m *Message) AppendHead(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, MessageHeadSize)...)
	b := dst[at:]
	le := binary.LittleEndian
	b[4] = byte(m.Type)
	b[5] = bit(m.Reject) | bit(m.Force)<<1 | bit(m.Lacking)<<2 | bit(m.Part != nil)<<3
	b[6], b[7] = byte(m.Reason), m.Partial
	le.PutUint32(b[8:], uint32(m.Instance))
	le.PutUint32(b[12:], uint32(len(m.Entries)))
	for i, v := range [...]uint64{
		uint64(m.From), uint64(m.To), uint64(m.Term), uint64(m.Index), uint64(m.LogTerm), uint64(m.Hint),
		uint64(m.HintTerm), uint64(m.Commit), m.Round, m.Context,
		uint64(m.ID.Session.Member), m.ID.Session.Incarnation, m.ID.Seq,
	} {
		le.PutUint64(b[16+8*i:], v)
	}
	le.PutUint32(b[120:], uint32(len(m.Holdings)))
	le.PutUint32(b[124:], uint32(len(m.Blob)))
	le.PutUint32(b[128:], m.Restripes)
	if m.Part != nil {
		dst = m.Part.Append(append(dst, 0, 0, 0, 0))
		b = dst[at:]
		le.PutUint32(b[MessageHeadSize:], uint32(len(b)-MessageHeadSize-4))
	}
	le.PutUint32(b, Digest(b[4:]))
	return dst
}

// AppendHoldings appends the message's encoded holdings to dst.
func (m *Message) AppendHoldings(dst []byte) []byte {
	if len(m.Holdings) == 0 {
		return dst
	}
	from := len(dst)
	for i := range m.Holdings {
		dst = m.Holdings[i].append(dst)
	}
	return binary.LittleEndian.AppendUint32(dst, Digest(dst[from:]))
}

// decodeHoldings reads what AppendHoldings wrote.
func (m *Message) decodeHoldings(b []byte, count int) (rest []byte, err error) {
	if count == 0 {
		return b, nil
	}
	if count > len(b)/holdingSize || len(b) < count*holdingSize+4 {
		return nil, &CorruptError{What: "message", Detail: fmt.Sprintf("%d holdings in %d bytes", count, len(b))}
	}
	end := count * holdingSize
	if Digest(b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		return nil, &CorruptError{What: "message", Detail: "checksum of holdings"}
	}
	m.Holdings = make([]Holding, count)
	for i := range m.Holdings {
		m.Holdings[i] = decodeHolding(b[i*holdingSize:])
	}
	return b[end+4:], nil
}

// decodeBlob takes the rest of a message as its blob, of n bytes.
func (m *Message) decodeBlob(b []byte, n int) error {
	if len(b) != n {
		return &CorruptError{What: "message", Detail: fmt.Sprintf("%d bytes after the entries, %d announced", len(b), n)}
	}
	if n == 0 {
		return nil
	}
	if len(m.Holdings) != 1 || m.Holdings[0].Digest != Digest(b) {
		return &CorruptError{What: "message", Detail: "checksum of a body"}
	}
	m.Blob = b
	return nil
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// splitHead returns the part of a message, nil if it has none, and what follows it. The head and the
// part are verified.
func splitHead(b []byte) (part, rest []byte, err error) {
	if len(b) < MessageHeadSize {
		return nil, nil, &CorruptError{What: "message", Detail: fmt.Sprintf("%d bytes, need %d", len(b), MessageHeadSize)}
	}
	le := binary.LittleEndian
	end := MessageHeadSize
	if b[5]&8 != 0 {
		if len(b) < end+4 {
			return nil, nil, &CorruptError{What: "message", Detail: fmt.Sprintf("%d bytes, need %d", len(b), end+4)}
		}
		n := le.Uint32(b[end:])
		if n > MaxPartBytes || int(n) > len(b)-end-4 {
			return nil, nil, &CorruptError{What: "message", Detail: fmt.Sprintf("a part of %d bytes in %d", n, len(b))}
		}
		part = b[end+4 : end+4+int(n)]
		end += 4 + int(n)
	}
	if le.Uint32(b) != Digest(b[4:end]) {
		return nil, nil, &CorruptError{What: "message head", Detail: "checksum mismatch"}
	}
	return part, b[end:], nil
}

// DecodeMessage reads a message of a protocol; with nil only of the common types. Its entries alias b
// and their payloads are verified. It returns a [CorruptError] if b is not what a member would send.
func DecodeMessage(b []byte, c *Codec) (*Message, error) {
	part, rest, err := splitHead(b)
	if err != nil {
		return nil, err
	}
	m, err := c.decode(MessageType(b[4]), part)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	u := func(i int) uint64 { return le.Uint64(b[16+8*i:]) }
	m.Type, m.Reject, m.Force, m.Lacking, m.Reason = MessageType(b[4]), b[5]&1 != 0, b[5]&2 != 0, b[5]&4 != 0, Reason(b[6])
	m.Partial, m.Restripes, m.Instance = b[7], le.Uint32(b[128:]), InstanceID(le.Uint32(b[8:]))
	m.From, m.To, m.Term, m.Index, m.LogTerm = MemberID(u(0)), MemberID(u(1)), Term(u(2)), Index(u(3)), Term(u(4))
	m.Hint, m.HintTerm, m.Commit, m.Round, m.Context = Index(u(5)), Term(u(6)), Index(u(7)), u(8), u(9)
	m.ID = ProposalID{Session: Session{Member: MemberID(u(10)), Incarnation: u(11)}, Seq: u(12)}
	if rest, err = m.decodeEntries(rest, int(le.Uint32(b[12:]))); err != nil {
		return nil, err
	}
	if rest, err = m.decodeHoldings(rest, int(le.Uint32(b[120:]))); err != nil {
		return nil, err
	}
	if err := m.decodeBlob(rest, int(le.Uint32(b[124:]))); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Message) decodeEntries(rest []byte, count int) (_ []byte, err error) {
	if count > len(rest)/HeadSize {
		return nil, &CorruptError{What: "message", Detail: fmt.Sprintf("%d entries in %d bytes", count, len(rest))}
	}
	if count > 0 {
		m.Entries = make([]Entry, count)
	}
	for i := range m.Entries {
		e := &m.Entries[i]
		if *e, rest, err = DecodeEntry(rest, true); err != nil {
			return nil, err
		}
		if e.BodySize > 0 {
			if rest, err = e.decodeBody(rest); err != nil {
				return nil, err
			}
		}
	}
	return rest, nil
}
