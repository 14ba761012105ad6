package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/braidlog/braid/internal/format"
)

// Kind is the type of a record.
type Kind uint8

const (
	// KindEntry is an entry of an instance's log; it replaces all entries that the instance wrote before at its index
	// and after it.
	KindEntry Kind = 1 + iota
	// KindState replaces the instance's last state.
	KindState
	// KindBase restarts the instance's log: entries written before it are void, the next one has the
	// index after it.
	KindBase
	// KindMark is a record of the log itself: seals, incarnations, and the segments that are needed.
	KindMark
	// KindBody replaces the stored body of an entry. The log has no bytes of it.
	KindBody
	// KindCell sets the instance's cell Index. Only a later write under the same number replaces it.
	KindCell
	// KindDrop empties the instance's cell Index.
	KindDrop
)

func (k Kind) String() string {
	switch k {
	case KindEntry:
		return "entry"
	case KindState:
		return "state"
	case KindBase:
		return "base"
	case KindMark:
		return "mark"
	case KindBody:
		return "body"
	case KindCell:
		return "cell"
	case KindDrop:
		return "drop"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Record is one thing to make durable. Its parts are written one after the other. The log keeps the parts of a cell
// in memory as long as the cell is not empty: they must not be modified.
type Record struct {
	Instance uint32
	Kind     Kind
	Index    uint64 // of an entry, a base, a body or a cell; a state has none
	Parts    [2][]byte
	// Grows: the entry makes several instances of one, see Options.BeforeGrowth.
	Grows bool
	// Seals: the entry seals the log, or the base begins an instance behind a seal, see Options.BeforeSeal.
	Seals bool
	// Body, with an entry or alone, is for the Bodies next to the log, and durable before the record is written: see
	// Writer. The log itself ignores it.
	Body *Body
}

func (r *Record) size() int { return len(r.Parts[0]) + len(r.Parts[1]) }

// The flag of a record: the kind of a mark; for a state, base or cell, whether it is a copy of a record in a segment
// that is dropped.
const (
	flagCarried = 1 // the record repeats an older one and voids nothing

	markIncarnation = 1 // a new incarnation of the log begins
	markSeal        = 2 // everything before was durable; nothing else
	markNext        = 3 // the log continues in segment Index
	markFirst       = 4 // segments before Index are dropped
	markFloor       = 5 // entries of Instance up to and including Index are dropped
	markCells       = 6 // all cells of Instance were written from Index on, see cellsFrom
	markGone        = 7 // everything of Instance is dropped
)

// A segment's version is 1 in the first format, and one more in each later one.
const firstVersion = 1

// versionOf is the version of segments in a format.
func versionOf(f int) uint32 { return firstVersion + uint32(format.Above(f)) }

const (
	// A segment's header has a page of its own, which is never written again.
	segmentHeaderSize = 4096
	maxIdentity       = 1024
	batchHeaderSize   = 48
	recordHeaderSize  = 24
	batchAlign        = 8
	// nextMarkSize is reserved at the end of a segment for the batch with the number of the next one.
	nextMarkSize = batchHeaderSize + recordHeaderSize

	maxRecordBytes  = 1 << 30
	maxSegmentBytes = 1<<32 - 1<<16 // offsets are 32 bits
)

var (
	segmentMagic = []byte("braidwal")
	batchMagic   = []byte{0xB7, 'b', 'a', 't'}
	castagnoli   = crc32.MakeTable(crc32.Castagnoli)
)

// salt seeds the checksums of batches that one incarnation writes into a segment.
func salt(identity []byte, seq uint64, life uint32) uint32 {
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:], seq)
	binary.LittleEndian.PutUint32(b[8:], life)
	return crc32.Update(crc32.Update(0, castagnoli, identity), castagnoli, b[:])
}

func align(n int64) int64 { return (n + batchAlign - 1) &^ (batchAlign - 1) }

// segmentHeader is the first page of a segment:
//
//	magic 8 | version 4 | crc 4 | seq 8 | capacity 8 | identity length 4 | identity | 0 …
type segmentHeader struct {
	version  uint32
	seq      uint64
	capacity int64 // bytes of the file
	identity []byte
}

func (h *segmentHeader) encode() []byte { return h.page(segmentMagic) }

// page is the header of a file that begins with magic.
func (h *segmentHeader) page(magic []byte) []byte {
	b := make([]byte, segmentHeaderSize)
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], max(h.version, firstVersion))
	binary.LittleEndian.PutUint64(b[16:], h.seq)
	binary.LittleEndian.PutUint64(b[24:], uint64(h.capacity))
	binary.LittleEndian.PutUint32(b[32:], uint32(len(h.identity)))
	copy(b[36:], h.identity)
	binary.LittleEndian.PutUint32(b[12:], segmentHeaderCRC(b))
	return b
}

func segmentHeaderCRC(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:12], castagnoli), castagnoli, b[16:segmentHeaderSize])
}

// decodeSegmentHeader decodes a header of a version up to newest. The error describes the damage.
func decodeSegmentHeader(b []byte, newest uint32) (segmentHeader, error) {
	return decodePage(b, segmentMagic, newest)
}

func decodePage(b, magic []byte, newest uint32) (h segmentHeader, err error) {
	switch {
	case len(b) < segmentHeaderSize:
		return h, fmt.Errorf("the segment's header has %d of %d bytes", len(b), segmentHeaderSize)
	case !bytes.Equal(b[:8], magic):
		return h, fmt.Errorf("not a segment: it begins with %x", b[:8])
	case binary.LittleEndian.Uint32(b[12:]) != segmentHeaderCRC(b):
		return h, fmt.Errorf("the segment header's checksum is wrong")
	}
	h.version = binary.LittleEndian.Uint32(b[8:])
	if h.version < firstVersion || h.version > newest {
		return h, &VersionError{Have: h.version, Want: newest}
	}
	n := binary.LittleEndian.Uint32(b[32:])
	if n > maxIdentity {
		return h, fmt.Errorf("an identity of %d bytes", n)
	}
	h.seq = binary.LittleEndian.Uint64(b[16:])
	h.capacity = int64(binary.LittleEndian.Uint64(b[24:]))
	h.identity = append([]byte(nil), b[36:36+n]...)
	return h, nil
}

// batchHeader precedes the records of one flush:
//
//	magic 4 | crc 4 | seq 8 | number 8 | durable 8 | incarnation 4 | offset 4 | length 4 | count 4
type batchHeader struct {
	seq         uint64
	number      uint64 // counts the log's batches, without gaps
	durable     uint64 // the last batch known to be durable when this one was written; < number
	incarnation uint32
	offset      uint32 // of the header in its segment
	length      uint32 // bytes of records after the header, without padding
	count       uint32 // records
}

// end is the offset where the next batch begins.
func (h *batchHeader) end() int64 {
	return align(int64(h.offset) + batchHeaderSize + int64(h.length))
}

func (h *batchHeader) encode(b []byte, salt uint32) {
	_ = b[batchHeaderSize-1]
	copy(b, batchMagic)
	binary.LittleEndian.PutUint64(b[8:], h.seq)
	binary.LittleEndian.PutUint64(b[16:], h.number)
	binary.LittleEndian.PutUint64(b[24:], h.durable)
	binary.LittleEndian.PutUint32(b[32:], h.incarnation)
	binary.LittleEndian.PutUint32(b[36:], h.offset)
	binary.LittleEndian.PutUint32(b[40:], h.length)
	binary.LittleEndian.PutUint32(b[44:], h.count)
	binary.LittleEndian.PutUint32(b[4:], crc32.Update(salt, castagnoli, b[8:batchHeaderSize]))
}

// decodeBatchHeader reads the header at an offset of segment seq. ok is false if there is none that was written for
// exactly this place.
func decodeBatchHeader(b []byte, identity []byte, seq uint64, offset int64) (h batchHeader, ok bool) {
	if len(b) < batchHeaderSize || !bytes.Equal(b[:4], batchMagic) {
		return h, false
	}
	h = batchHeader{
		seq:         binary.LittleEndian.Uint64(b[8:]),
		number:      binary.LittleEndian.Uint64(b[16:]),
		durable:     binary.LittleEndian.Uint64(b[24:]),
		incarnation: binary.LittleEndian.Uint32(b[32:]),
		offset:      binary.LittleEndian.Uint32(b[36:]),
		length:      binary.LittleEndian.Uint32(b[40:]),
		count:       binary.LittleEndian.Uint32(b[44:]),
	}
	crc := binary.LittleEndian.Uint32(b[4:])
	ok = h.seq == seq && int64(h.offset) == offset && h.durable < h.number &&
		crc == crc32.Update(salt(identity, seq, h.incarnation), castagnoli, b[8:batchHeaderSize])
	return h, ok
}

// recordHeader precedes a record's bytes:
//
//	crc 4 | length 4 | instance 4 | kind 1 | flag 1 | 0 2 | index 8
type recordHeader struct {
	crc      uint32 // of the header after it, and of the bytes
	length   uint32
	instance uint32
	kind     Kind
	flag     uint8
	index    uint64
}

// encode fills b and leaves the checksum to the caller.
func (h *recordHeader) encode(b []byte) {
	_ = b[recordHeaderSize-1]
	binary.LittleEndian.PutUint32(b[4:], h.length)
	binary.LittleEndian.PutUint32(b[8:], h.instance)
	b[12], b[13], b[14], b[15] = byte(h.kind), h.flag, 0, 0
	binary.LittleEndian.PutUint64(b[16:], h.index)
}

func decodeRecordHeader(b []byte) recordHeader {
	_ = b[recordHeaderSize-1]
	return recordHeader{
		crc:      binary.LittleEndian.Uint32(b),
		length:   binary.LittleEndian.Uint32(b[4:]),
		instance: binary.LittleEndian.Uint32(b[8:]),
		kind:     Kind(b[12]),
		flag:     b[13],
		index:    binary.LittleEndian.Uint64(b[16:]),
	}
}

// decodeRecord reads the record at the start of b; rest is what follows it.
func decodeRecord(b []byte, salt uint32) (h recordHeader, data, rest []byte, err error) {
	if len(b) < recordHeaderSize {
		return h, nil, nil, fmt.Errorf("%d bytes where a record's header should be", len(b))
	}
	h = decodeRecordHeader(b)
	if uint64(h.length) > uint64(len(b)-recordHeaderSize) {
		return h, nil, nil, fmt.Errorf("a record of %d bytes where %d are left", h.length, len(b)-recordHeaderSize)
	}
	end := recordHeaderSize + int(h.length)
	if h.crc != crc32.Update(salt, castagnoli, b[4:end]) {
		return h, nil, nil, fmt.Errorf("the checksum of a record of %d bytes is wrong", h.length)
	}
	return h, b[recordHeaderSize:end], b[end:], nil
}
