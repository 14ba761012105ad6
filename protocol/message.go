package protocol

import (
	"encoding/binary"
	"fmt"
)

// Message goes from one member's instance to the same instance on another member. The head is the
// same in all protocols. Fields that only one protocol has are in its part.
type Message struct {
	Type   MessageType
	Reject bool // the answer is no
	// Lazy: no one waits for the message. A link may hold it back for a moment, to send it together with the next one to
	// the same member. The receiver does not see it.
	Lazy bool
	// Aside: a message of a type that goes BothWays leaves only alongside the stream, and does not wait behind bodies
	// there. The receiver does not see it.
	Aside    bool
	Instance InstanceID
	From, To MemberID
	Term     Term // 0: it means the same in every term
	// Commit is the index up to which the sender knows the log to be committed; 0: not given. Bodies of entries up to
	// there may be omitted.
	Commit Index
	// Context identifies the request for its sender; answers repeat it.
	Context uint64
	// Part is the protocol's own part; nil: none.
	Part    Part
	Entries []Entry
	// Holdings are the forms in which a disk holds the bodies of entries, or a request for them. Fetch, FetchResp: the
	// body.
	Holdings []Holding
	// Blob is the body that a FetchResp brings, in the form of Holdings[0].
	Blob []byte
}

// MessageHeadSize is the length in bytes of an encoded message before its part. The head is: a checksum of the rest
// and of the part; the type; Reject; the part's length; the instance; the number of entries; sender, receiver, term,
// commit index and context; the number of holdings; the blob's length.
const MessageHeadSize = 64

// AppendHead appends the message's encoded head to dst, and its part. The caller writes the rest in place, without a
// copy: for each entry its head, its payload and, if it has a body, [Entry.AppendBodyHead] and the body; then
// [Message.AppendHoldings]; then Blob.
func (m *Message) AppendHead(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, MessageHeadSize)...)
	if m.Part != nil {
		dst = m.Part.Append(dst)
	}
	b := dst[at:]
	if len(b)-MessageHeadSize > MaxPartBytes {
		panic(fmt.Sprintf("message of type %d: a part of %d bytes", m.Type, len(b)-MessageHeadSize))
	}
	le := binary.LittleEndian
	b[4], b[5] = byte(m.Type), bit(m.Reject)
	le.PutUint16(b[6:], uint16(len(b)-MessageHeadSize))
	le.PutUint32(b[8:], uint32(m.Instance))
	le.PutUint32(b[12:], uint32(len(m.Entries)))
	for i, v := range [...]uint64{uint64(m.From), uint64(m.To), uint64(m.Term), uint64(m.Commit), m.Context} {
		le.PutUint64(b[16+8*i:], v)
	}
	le.PutUint32(b[56:], uint32(len(m.Holdings)))
	le.PutUint32(b[60:], uint32(len(m.Blob)))
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

// Frame is an encoded message whose head and part are verified. What follows them may be damaged.
type Frame []byte

// OpenFrame verifies the head of an encoded message. The frame aliases b. It returns a [CorruptError] if no member
// would send such a head.
func OpenFrame(b []byte) (Frame, error) {
	if len(b) < MessageHeadSize {
		return nil, &CorruptError{What: "message", Detail: fmt.Sprintf("%d bytes, need %d", len(b), MessageHeadSize)}
	}
	f := Frame(b)
	if end := f.partEnd(); len(b) < end || binary.LittleEndian.Uint32(b) != Digest(b[4:end]) {
		return nil, &CorruptError{What: "message head", Detail: "checksum mismatch"}
	}
	return f, nil
}

// Type is the message's type, as the methods below return other fields of the head.
func (f Frame) Type() MessageType { return MessageType(f[4]) }

// Instance is the instance that the message is for.
func (f Frame) Instance() InstanceID { return InstanceID(binary.LittleEndian.Uint32(f[8:])) }

// From is the sender.
func (f Frame) From() MemberID { return MemberID(f.word(0)) }

// To is the receiver.
func (f Frame) To() MemberID { return MemberID(f.word(1)) }

// Common reports whether the message is of a type that means the same in every protocol.
func (f Frame) Common() bool { return f.Type() < FirstOwnType }

// word is the i-th of the numbers in the head that have eight bytes.
func (f Frame) word(i int) uint64 { return binary.LittleEndian.Uint64(f[16+8*i:]) }

func (f Frame) partEnd() int { return MessageHeadSize + int(binary.LittleEndian.Uint16(f[6:])) }

// Decode reads the message, which is of a protocol with this codec; nil: of a common type. Its entries alias the frame,
// and their payloads are verified. It returns a [CorruptError] if no member of that protocol would send the frame.
func (f Frame) Decode(c *Codec) (*Message, error) {
	le, end := binary.LittleEndian, f.partEnd()
	m, err := c.decode(f.Type(), f[MessageHeadSize:end])
	if err != nil {
		return nil, err
	}
	m.Type, m.Reject, m.Instance, m.From, m.To = f.Type(), f[5] != 0, f.Instance(), f.From(), f.To()
	m.Term, m.Commit, m.Context = Term(f.word(2)), Index(f.word(3)), f.word(4)
	rest, err := m.decodeEntries(f[end:], int(le.Uint32(f[12:])))
	if err != nil {
		return nil, err
	}
	if rest, err = m.decodeHoldings(rest, int(le.Uint32(f[56:]))); err != nil {
		return nil, err
	}
	if err := m.decodeBlob(rest, int(le.Uint32(f[60:]))); err != nil {
		return nil, err
	}
	return m, nil
}

// DecodeMessage is [OpenFrame] and [Frame.Decode].
func DecodeMessage(b []byte, c *Codec) (*Message, error) {
	f, err := OpenFrame(b)
	if err != nil {
		return nil, err
	}
	return f.Decode(c)
}

func (m *Message) decodeEntries(rest []byte, count int) (_ []byte, err error) {
	if count > len(rest)/signalLeast {
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
			if rest, err = e.DecodeBody(rest); err != nil {
				return nil, err
			}
		}
	}
	return rest, nil
}
