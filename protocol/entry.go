package protocol

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// EntryKind says what an entry's payload is.
type EntryKind uint8

const (
	// EntryNoop has no payload; a new leader appends one to commit its predecessors' entries.
	EntryNoop EntryKind = 1 + iota
	// EntryBatch carries commands (see batch.go).
	EntryBatch
	// EntryConfig carries a whole [Config], in force as soon as it is in a member's log.
	EntryConfig
)

func (k EntryKind) String() string {
	switch k {
	case EntryNoop:
		return "noop"
	case EntryBatch:
		return "batch"
	case EntryConfig:
		return "config"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Entry is one slot of an instance's log: an envelope and its payload.
//
// Entries are values; Payload and the encoded head are shared between all holders and
// never written to after the entry was sealed.
type Entry struct {
	Index Index
	Term  Term
	// ID is the first command's id; the others follow with consecutive sequence numbers.
	// Zero for entries that the leader makes itself.
	ID ProposalID
	// Low promises that the session will never again propose a sequence number below it,
	// so that at-most-once bookkeeping for them may be forgotten. Low ≤ ID.Seq.
	Low uint64
	// Count is the number of commands in the payload (0 unless Kind is EntryBatch).
	Count uint32
	// Size is the payload's length in bytes, also where the payload is not held.
	Size uint32
	// Digest is the payload's CRC-32C.
	Digest uint32
	Kind   EntryKind
	// Payload is nil where it is not held in memory (Size > 0) or empty (Size == 0).
	Payload []byte

	// head is the encoded envelope; nil until Seal or decoding.
	head []byte
}

// HeadSize is the length in bytes of an encoded envelope.
const HeadSize = 72

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

// Bytes is what the entry costs on disk and on the wire: envelope and payload.
func (e *Entry) Bytes() int { return HeadSize + int(e.Size) }

// Resident reports whether the payload's bytes are at hand.
func (e *Entry) Resident() bool { return len(e.Payload) == int(e.Size) }

// Head returns the encoded envelope; nil if the entry was not sealed yet.
func (e *Entry) Head() []byte { return e.head }

// SealPayload sets Size and Digest from Payload. The proposing member calls it once;
// leaders and followers keep what it computed.
func (e *Entry) SealPayload() {
	e.Size = uint32(len(e.Payload))
	e.Digest = Digest(e.Payload)
}

// Seal stamps the envelope with its place in the log and encodes it into buf, which must
// have at least HeadSize bytes and belongs to the entry from then on.
func (e *Entry) Seal(index Index, term Term, buf []byte) {
	e.Index, e.Term = index, term
	e.head = buf[:HeadSize:HeadSize]
	e.encodeHead(e.head)
}

// The envelope, little-endian:
//
//	0 crc32c of bytes 4…71 | 4 kind | 5 form (0 = whole) | 6,7 reserved for fragments
//	8 index | 16 term | 24 member | 32 incarnation | 40 seq | 48 low
//	56 count | 60 size | 64 digest | 68 bytes that follow on this medium
func (e *Entry) encodeHead(b []byte) {
	le := binary.LittleEndian
	b[4], b[5], b[6], b[7] = byte(e.Kind), 0, 0, 0
	le.PutUint64(b[8:], uint64(e.Index))
	le.PutUint64(b[16:], uint64(e.Term))
	le.PutUint64(b[24:], uint64(e.ID.Session.Member))
	le.PutUint64(b[32:], e.ID.Session.Incarnation)
	le.PutUint64(b[40:], e.ID.Seq)
	le.PutUint64(b[48:], e.Low)
	le.PutUint32(b[56:], e.Count)
	le.PutUint32(b[60:], e.Size)
	le.PutUint32(b[64:], e.Digest)
	le.PutUint32(b[68:], e.Size)
	le.PutUint32(b[0:], Digest(b[4:HeadSize]))
}

// DecodeEntry reads one entry from the front of b and returns the rest. The entry aliases
// b. With verify, the payload is checked against its digest; a head is always checked.
func DecodeEntry(b []byte, verify bool) (e Entry, rest []byte, err error) {
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
	body := int(le.Uint32(b[68:]))
	if body != int(e.Size) || len(b)-HeadSize < body {
		return e, nil, &CorruptError{What: "entry payload",
			Detail: fmt.Sprintf("index %d: %d bytes at hand, %d announced, size %d", e.Index, len(b)-HeadSize, body, e.Size)}
	}
	e.head = b[:HeadSize:HeadSize]
	end := HeadSize + body
	if body > 0 {
		e.Payload = b[HeadSize:end:end]
	}
	if verify && Digest(e.Payload) != e.Digest {
		return e, nil, &CorruptError{What: "entry payload",
			Detail: fmt.Sprintf("index %d: digest %08x, want %08x", e.Index, Digest(e.Payload), e.Digest)}
	}
	return e, b[end:], nil
}
