package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// A large value is not in the database. In its place is a record, which identifies the value: equal values have equal
// records, so that values can be compared for being equal without having them. A record is
//
//	magic (12 bytes) | version 1 | size (8 bytes, big endian) | SHA-256 of the value
//
// A client may store a value that looks like a record. Therefore every value that begins with the magic, a record or
// not, has an entry in the bucket of [refs] that shows which it is.
const (
	recordMagic   = "\x93braid/val\xe2\x0d"
	recordVersion = 1
	recordSize    = len(recordMagic) + 1 + 8 + sha256.Size
)

// record names a value by its content.
type record struct {
	size uint64
	sum  [sha256.Size]byte
}

func recordOf(value []byte) record { return record{uint64(len(value)), sha256.Sum256(value)} }

func (r record) encode() []byte {
	b := append(make([]byte, 0, recordSize), recordMagic...)
	b = binary.BigEndian.AppendUint64(append(b, recordVersion), r.size)
	return append(b, r.sum[:]...)
}

// marked reports whether a value begins like a record. No other value needs more checks.
func marked(value []byte) bool {
	return len(value) >= len(recordMagic) && value[0] == recordMagic[0] && string(value[:len(recordMagic)]) == recordMagic
}

// parseRecord reads a record; false if the value only begins like one.
func parseRecord(value []byte) (r record, ok bool) {
	if len(value) != recordSize || !marked(value) || value[len(recordMagic)] != recordVersion {
		return r, false
	}
	value = value[len(recordMagic)+1:]
	r.size = binary.BigEndian.Uint64(value)
	copy(r.sum[:], value[8:])
	return r, true
}

// BodyRef names the large part of a command, see [Command]. It is the log's; the store only keeps it, and counts K
// fragments as one in the size of what is stored (1: not coded).
type BodyRef struct {
	Instance    uint32
	Index, Term uint64
	K           uint8
	Size        uint32
	Digest      uint32
}

const refSize = 4 + 8 + 8 + 1 + 4 + 4

// share is how many bytes of the body a member keeps: one of K fragments.
func (r BodyRef) share() int64 {
	k := int64(max(r.K, 1))
	return (int64(r.Size) + k - 1) / k
}

// place is where a value that begins like a record, or its bytes, are.
type place struct {
	sub    int64 // of the revision
	record record
	body   *body  // nil: the value is in the database, it only looks like a record
	offset uint32 // in the body
}

// body is a command's body and how many revisions have their value in it.
type body struct {
	ref   BodyRef
	count int
	// waiting is how often it is in the queue of what was dropped.
	waiting int
}

const (
	placeInBody  = 1
	placeLiteral = 2
)

var errBadPlace = errors.New("malformed entry of a large value")

// encodePlace makes the entry of a place: its kind, the value's size and SHA-256, and for
// one in a body the offset and the reference.
func encodePlace(p place) []byte {
	be := binary.BigEndian
	b := append(make([]byte, 0, 1+8+sha256.Size+4+refSize), placeLiteral)
	b = be.AppendUint64(b, p.record.size)
	b = append(b, p.record.sum[:]...)
	if p.body == nil {
		return b
	}
	b[0] = placeInBody
	r := &p.body.ref
	b = be.AppendUint32(b, p.offset)
	b = be.AppendUint32(b, r.Instance)
	b = be.AppendUint64(b, r.Index)
	b = be.AppendUint64(b, r.Term)
	b = append(b, r.K)
	b = be.AppendUint32(b, r.Size)
	return be.AppendUint32(b, r.Digest)
}

// decodePlace reads an entry; ref is zero for a literal.
func decodePlace(b []byte) (p place, ref BodyRef, literal bool, err error) {
	const head = 1 + 8 + sha256.Size
	if len(b) < head || b[0] != placeInBody && b[0] != placeLiteral || b[0] == placeInBody && len(b) != head+4+refSize {
		return p, ref, false, fmt.Errorf("%w: %d bytes", errBadPlace, len(b))
	}
	be := binary.BigEndian
	p.record.size = be.Uint64(b[1:])
	copy(p.record.sum[:], b[9:])
	if b[0] == placeLiteral {
		return p, ref, true, nil
	}
	b = b[head:]
	p.offset = be.Uint32(b)
	ref = BodyRef{
		Instance: be.Uint32(b[4:]), Index: be.Uint64(b[8:]), Term: be.Uint64(b[16:]), K: b[24],
		Size: be.Uint32(b[25:]), Digest: be.Uint32(b[29:]),
	}
	if !fits(ref, p.offset, p.record.size) {
		return p, ref, false, fmt.Errorf("%w: %d bytes at %d of %d", errBadPlace, p.record.size, p.offset, ref.Size)
	}
	return p, ref, false, nil
}

// fits reports whether size bytes from offset on lie within a body.
func fits(ref BodyRef, offset uint32, size uint64) bool {
	return size <= uint64(ref.Size) && uint64(offset) <= uint64(ref.Size)-size
}

// verify reports whether bytes are the value that the record names.
func (r record) verify(value []byte) bool {
	if uint64(len(value)) != r.size {
		return false
	}
	sum := sha256.Sum256(value)
	return bytes.Equal(sum[:], r.sum[:])
}
