package protocol

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// EntryKind is the type of an entry's payload.
type EntryKind uint8

const (
	// EntryNoop has no payload; a new leader appends one to commit its predecessors' entries.
	EntryNoop EntryKind = 1 + iota
	// EntryBatch carries commands (see batch.go).
	EntryBatch
	// EntryConfig carries a whole [Config].
	EntryConfig
	// EntrySkip indicates that its instance has nothing for the rounds up to Round (SkipTo of
	// docs/internals/niagara.md, 3.1). It is absolute: a late or repeated one has no effect.
	EntrySkip
	// EntryReshape changes how many instances the global log is merged from.
	EntryReshape
	// EntryGroup stands for several batches (see group.go).
	EntryGroup
	// EntryLane opens a lane (see lane.go).
	EntryLane
	// EntryGeneration begins a generation of acknowledgements (see lane.go).
	EntryGeneration
	// EntrySignal takes the place of a lane's group in a message (see lane.go). It is in no log.
	EntrySignal
	// EntryEmpty is a leader's empty value: the leader serves, and has no commands.
	EntryEmpty
	// EntryNote is a core's own data about the following batches of a group (see group.go). It is in no log.
	EntryNote
	// EntrySeal carries a [Seal]. Low is the index up to which its instance fills the old order, if that is a later one
	// than the entry's own: see SealedAt.
	EntrySeal
	entryKinds
)

func (k EntryKind) String() string {
	switch k {
	case EntryNoop:
		return "noop"
	case EntryBatch:
		return "batch"
	case EntryConfig:
		return "config"
	case EntrySkip:
		return "skip"
	case EntryReshape:
		return "reshape"
	case EntryGroup:
		return "group"
	case EntryLane:
		return "lane"
	case EntryGeneration:
		return "generation"
	case EntrySignal:
		return "signal"
	case EntryEmpty:
		return "empty"
	case EntryNote:
		return "note"
	case EntrySeal:
		return "seal"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Commands reports whether entries of this kind contain commands.
func (k EntryKind) Commands() bool { return k == EntryBatch || k == EntryGroup }

// bare reports whether entries of this kind are only an envelope.
func (k EntryKind) bare() bool {
	switch k {
	case EntryNoop, EntrySkip, EntryReshape, EntryLane, EntryGeneration, EntryEmpty:
		return true
	}
	return false
}

// Entry is one item of an instance's log: an envelope and its payload.
//
// Entries are values; Payload and the encoded head are shared between all holders and
// never written to after the entry was sealed.
type Entry struct {
	Index Index
	Term  Term
	// ID is the first command's id; the others follow with consecutive sequence numbers.
	// Zero for entries that the leader makes itself, except those about lanes (see lane.go), and an
	// EntryEmpty, where it names the leader.
	ID ProposalID
	// Low: no command of the session with a lower number is pending, in any instance. So a member may forget which of
	// those numbers took effect, and refuses later ones below Low. The same holds for all earlier incarnations, except
	// if Low is 0 and the instances share the session's numbers: then a command of an earlier incarnation may still
	// take effect. Low ≤ ID.Seq. In an EntrySkip and an EntryReshape it is their number: see Round and Instances. So it
	// is in an EntryGeneration. In a group of a lane it is where its range begins: see Range.
	Low uint64
	// Count is the number of commands in the payload (0 unless the kind has commands).
	Count uint32
	// Size is the payload's length in bytes, also where the payload is not held.
	Size uint32
	// Digest is the payload's CRC-32C.
	Digest uint32
	Kind   EntryKind
	// K is the number of fragments that make the body whole: k of docs/internals/craft.md, 2.3. 1 if the body is not
	// coded; 0 if there is none. The leader that appends the entry chooses it, and it never changes.
	K uint8
	// Form is the form in which the body is held, or, in a message, the form that the receiver is to get.
	Form Form
	// BodySize and BodyDigest (CRC-32C) describe the whole body, in any form.
	BodySize, BodyDigest uint32
	// Payload is nil where it is not held in memory (Size > 0) or empty (Size == 0). Every
	// member holds all of it: applying needs nothing else.
	Payload []byte
	// Body is the large part of a command, in some form. Applying does not need it. It is nil if it is not available.
	// In a message that is not sent yet it may be whole although Form is a fragment: the sender encodes that.
	Body []byte

	// head is the encoded envelope; nil until Seal or decoding.
	head *[HeadSize]byte
	sum  bodySum
}

// HeadSize is the length in bytes of an encoded envelope.
const HeadSize = 80

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Digest is the checksum of payloads and heads, CRC-32C.
func Digest(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Width is the number of positions of the global log that the entry covers.
func (e *Entry) Width() uint64 {
	if e.Count > 1 {
		return uint64(e.Count)
	}
	return 1
}

// Lighten makes e release the memory in which it arrived, which other entries and bodies may share. It drops its body
// and its encoding, and copies its payload or drops that too.
func (e *Entry) Lighten(keepPayload bool) {
	payload := e.Payload
	e.Payload, e.Body, e.head = nil, nil, nil
	if keepPayload {
		e.Payload = bytes.Clone(payload)
	}
}

// Bytes is the size of the entry on disk and on the wire: envelope, payload, and the held form of the body.
func (e *Entry) Bytes() int {
	if e.Kind == EntrySignal {
		return int(e.Size)
	}
	return HeadSize + int(e.Size) + e.BodyLen()
}

// BodyLen is the length in bytes of the held form of the body.
func (e *Entry) BodyLen() int { return e.Form.Len(e.BodySize, e.K) }

// Resident reports whether payload and body are available, the body in the entry's form.
func (e *Entry) Resident() bool { return len(e.Payload) == int(e.Size) && len(e.Body) == e.BodyLen() }

// Applicable reports whether the payload is available, which is all that applying needs.
func (e *Entry) Applicable() bool { return len(e.Payload) == int(e.Size) }

// Coded reports whether the body is cut into rows.
func (e *Entry) Coded() bool { return e.K > 1 }

// Ref names the entry's body.
func (e *Entry) Ref(instance InstanceID) BodyRef {
	return BodyRef{Instance: instance, Index: e.Index, Term: e.Term, K: e.K, Size: e.BodySize, Digest: e.BodyDigest}
}

// NewSkip returns the entry that skips the rounds of its instance up to round, not yet
// sealed.
func NewSkip(round Round) Entry { return control(EntrySkip, uint64(round)) }

// NewReshape returns the entry that changes the number of instances, not yet sealed.
func NewReshape(instances int) Entry { return control(EntryReshape, uint64(instances)) }

// NewEmpty returns the empty value of a leader, not yet sealed.
func NewEmpty(leader MemberID) Entry {
	e := Entry{Kind: EntryEmpty, ID: ProposalID{Session: Session{Member: leader}}}
	e.SealPayload()
	return e
}

// NewConfig returns the entry of a configuration, not yet sealed.
func NewConfig(id ProposalID, c Config) Entry {
	e := Entry{Kind: EntryConfig, ID: id, Payload: EncodeConfig(c)}
	e.SealPayload()
	return e
}

// TargetEntry returns the membership to change to, as an entry for the member that may propose it. That member may not
// know the membership: the instance that has it may have left the member out.
func (p *ProposeChange) TargetEntry() Entry {
	e := NewConfig(p.ID, *p.Target)
	e.Seal(0, 0, make([]byte, HeadSize))
	return e
}

// control returns an entry of the global log itself: no session, no payload, one number.
func control(kind EntryKind, number uint64) Entry {
	e := Entry{Kind: kind, Low: number}
	e.SealPayload()
	e.Seal(0, 0, make([]byte, HeadSize))
	return e
}

// Round is the last round that an EntrySkip skips.
func (e *Entry) Round() Round { return Round(e.Low) }

// Instances is how many instances there are after an EntryReshape.
func (e *Entry) Instances() int { return int(e.Low) }

// Head returns the encoded envelope; nil if the entry was not sealed yet, or is a signal.
func (e *Entry) Head() []byte {
	if e.head == nil {
		return nil
	}
	return e.head[:]
}

// SealPayload sets sizes and digests from Payload and the whole Body. The proposing member calls
// it once. Leaders and followers keep what it computed.
func (e *Entry) SealPayload() {
	e.Size = uint32(len(e.Payload))
	e.Digest = Digest(e.Payload)
	e.K, e.Form, e.BodySize, e.BodyDigest = 0, FormNone, 0, 0
	if len(e.Body) > 0 {
		e.K, e.Form, e.BodySize, e.BodyDigest = 1, FormWhole, uint32(len(e.Body)), Digest(e.Body)
		e.sum = sumOf(e.Body, e.BodyDigest)
	}
}

// Seal sets index and term and encodes the envelope into buf, which must have at least HeadSize bytes and belongs to
// the entry from then on.
func (e *Entry) Seal(index Index, term Term, buf []byte) {
	e.Index, e.Term = index, term
	e.head = (*[HeadSize]byte)(buf)
	e.encodeHead(e.head[:])
}

// The envelope, little-endian:
//
//	0 crc32c of bytes 4…79 | 4 kind | 5 k | 6,7 reserved
//	8 index | 16 term | 24 member | 32 incarnation | 40 seq | 48 low
//	56 count | 60 size | 64 digest | 68 body size | 72 body digest | 76 reserved
//
// The held form of the body is not part of it: the envelope is the same on all members.
func (e *Entry) encodeHead(b []byte) {
	le := binary.LittleEndian
	b[4], b[5], b[6], b[7] = byte(e.Kind), e.K, 0, 0
	le.PutUint64(b[8:], uint64(e.Index))
	le.PutUint64(b[16:], uint64(e.Term))
	le.PutUint64(b[24:], uint64(e.ID.Session.Member))
	le.PutUint64(b[32:], e.ID.Session.Incarnation)
	le.PutUint64(b[40:], e.ID.Seq)
	le.PutUint64(b[48:], e.Low)
	le.PutUint32(b[56:], e.Count)
	le.PutUint32(b[60:], e.Size)
	le.PutUint32(b[64:], e.Digest)
	le.PutUint32(b[68:], e.BodySize)
	le.PutUint32(b[72:], e.BodyDigest)
	le.PutUint32(b[76:], 0)
	le.PutUint32(b[0:], Digest(b[4:HeadSize]))
}

// checkKind reports fields of a head that its kind of entry must not have.
func (e *Entry) checkKind() error {
	switch {
	case e.Kind == 0 || e.Kind >= entryKinds:
	case (e.BodySize == 0) != (e.K == 0):
		return &CorruptError{What: "entry head", Detail: fmt.Sprintf("body of %d bytes in %d fragments", e.BodySize, e.K)}
	case e.Kind == EntrySignal:
	case e.Kind == EntryEmpty && (e.ID.Session.Member == 0 || e.ID.Session.Incarnation|e.ID.Seq|e.Low > 0):
		return &CorruptError{What: "entry head", Detail: fmt.Sprintf("empty value of %s with numbers %d, %d", e.ID.Session,
			e.ID.Seq, e.Low)}
	case e.Kind == EntryBatch, e.Kind == EntryGroup, e.Count|e.BodySize == 0 && !(e.Kind.bare() && e.Size > 0):
		return nil
	}
	return &CorruptError{What: "entry head", Detail: fmt.Sprintf("%s with %d commands, %d and %d bytes", e.Kind, e.Count,
		e.Size, e.BodySize)}
}

// DecodeEntry reads one entry, envelope and payload, from the front of b and returns the
// rest. The entry aliases b, and holds nothing of its body. With verify, the payload is
// checked against its digest; a head is always checked.
func DecodeEntry(b []byte, verify bool) (e Entry, rest []byte, err error) {
	if isSignal(b) {
		return decodeSignal(b)
	}
	if len(b) < HeadSize {
		return e, nil, &CorruptError{What: "entry head", Detail: fmt.Sprintf("%d bytes, need %d", len(b), HeadSize)}
	}
	le := binary.LittleEndian
	if got, want := Digest(b[4:HeadSize]), le.Uint32(b); got != want {
		return e, nil, &CorruptError{What: "entry head", Detail: fmt.Sprintf("checksum %08x, want %08x", got, want)}
	}
	e.Kind = EntryKind(b[4])
	e.Index = Index(le.Uint64(b[8:]))
	e.Term = Term(le.Uint64(b[16:]))
	e.ID.Session.Member = MemberID(le.Uint64(b[24:]))
	e.ID.Session.Incarnation = le.Uint64(b[32:])
	e.ID.Seq = le.Uint64(b[40:])
	e.Low = le.Uint64(b[48:])
	e.Count = le.Uint32(b[56:])
	e.Size = le.Uint32(b[60:])
	e.Digest = le.Uint32(b[64:])
	e.K, e.BodySize, e.BodyDigest = b[5], le.Uint32(b[68:]), le.Uint32(b[72:])
	if err := e.checkKind(); err != nil {
		return e, nil, err
	}
	if len(b)-HeadSize < int(e.Size) {
		return e, nil, &CorruptError{What: "entry payload",
			Detail: fmt.Sprintf("index %d: %d bytes at hand, size %d", e.Index, len(b)-HeadSize, e.Size)}
	}
	e.head = (*[HeadSize]byte)(b)
	end := HeadSize + int(e.Size)
	if e.Size > 0 {
		e.Payload = b[HeadSize:end:end]
	}
	if verify && Digest(e.Payload) != e.Digest {
		return e, nil, &CorruptError{What: "entry payload",
			Detail: fmt.Sprintf("index %d: digest %08x, want %08x", e.Index, Digest(e.Payload), e.Digest)}
	}
	return e, b[end:], nil
}
