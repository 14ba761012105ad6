package wal

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/braidlog/braid/internal/vfs"
)

// A file of bodies begins with a page like a segment's, with another magic. Then come
// records, each
//
//	head 64 | the body's bytes | zeros up to a multiple of 64 | tail 64
//
// The tail repeats the head, so that a flip in one of them loses nothing.
const (
	bodyHeadSize = 64
	bodyAlign    = 64 // where heads and tails may be
	// bodyEndSize is reserved at the end of a file for the record that closes it.
	bodyEndSize = 2 * bodyHeadSize
)

var (
	bodyFileMagic = []byte("braidbod")
	bodyHeadMagic = []byte{0xB7, 'b', 'o', 'd'}
)

type bodyKind uint8

const (
	bodyData bodyKind = 1 + iota
	bodySeal          // everything before was durable; nothing else
	bodyEnd           // everything before was durable, and nothing follows in this file
)

// bodyHead stands before and behind a body's bytes:
//
//	magic 4 | crc 4 | offset 4 | durable 4 | number 8 | index 8 | term 8 | instance 4 |
//	form 1 | k 1 | kind 1 | tail 1 | size 4 | digest 4 | length 4 | crc of the bytes 4
type bodyHead struct {
	meta    Body // without bytes
	kind    bodyKind
	tail    bool
	offset  uint32 // of the head in its file
	durable uint32 // everything before it in the file was durable when this was written; ≤ offset
	number  uint64 // counts the bodies appended; a copy keeps it
	length  uint32
	crc     uint32 // of the bytes
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

func alignBody(n int64) int64 { return (n + bodyAlign - 1) &^ (bodyAlign - 1) }

// bodyRecordSize is the space that a body of this size takes in a file.
func bodyRecordSize(length int) int64 { return bodyEndSize + alignBody(int64(length)) }

func (h *bodyHead) dataAt() int64 { return int64(h.offset) + bodyHeadSize }

// tailAt is the offset of the record's tail, end that of the next record.
func (h *bodyHead) tailAt() int64 { return h.end() - bodyHeadSize }
func (h *bodyHead) end() int64    { return int64(h.offset) + bodyRecordSize(int(h.length)) }

func (h *bodyHead) encode(b []byte, tail bool, salt uint32) {
	_ = b[bodyHeadSize-1]
	le := binary.LittleEndian
	copy(b, bodyHeadMagic)
	le.PutUint32(b[8:], h.offset)
	le.PutUint32(b[12:], h.durable)
	le.PutUint64(b[16:], h.number)
	le.PutUint64(b[24:], h.meta.Index)
	le.PutUint64(b[32:], h.meta.Term)
	le.PutUint32(b[40:], h.meta.Instance)
	b[44], b[45], b[46], b[47] = h.meta.Form, h.meta.K, byte(h.kind), 0
	if tail {
		b[47] = 1
	}
	le.PutUint32(b[48:], h.meta.Size)
	le.PutUint32(b[52:], h.meta.Digest)
	le.PutUint32(b[56:], h.length)
	le.PutUint32(b[60:], h.crc)
	le.PutUint32(b[4:], crc32.Update(salt, castagnoli, b[8:bodyHeadSize]))
}

// decodeBodyHead decodes the head or tail at an offset of a file with this salt and capacity. ok is false if there is
// none that was written for exactly this place.
func decodeBodyHead(b []byte, salt uint32, at, capacity int64) (h bodyHead, ok bool) {
	if len(b) < bodyHeadSize || !bytes.Equal(b[:4], bodyHeadMagic) {
		return h, false
	}
	le := binary.LittleEndian
	h = bodyHead{
		offset: le.Uint32(b[8:]), durable: le.Uint32(b[12:]), number: le.Uint64(b[16:]),
		meta: Body{
			Index: le.Uint64(b[24:]), Term: le.Uint64(b[32:]), Instance: le.Uint32(b[40:]),
			Form: b[44], K: b[45], Size: le.Uint32(b[48:]), Digest: le.Uint32(b[52:]),
		},
		kind: bodyKind(b[46]), tail: b[47] == 1, length: le.Uint32(b[56:]), crc: le.Uint32(b[60:]),
	}
	place := int64(h.offset)
	if h.tail {
		place = h.tailAt()
	}
	ok = le.Uint32(b[4:]) == crc32.Update(salt, castagnoli, b[8:bodyHeadSize]) && b[47] <= 1 &&
		place == at && h.offset%bodyAlign == 0 && h.offset >= segmentHeaderSize && h.durable <= h.offset &&
		h.end() <= capacity && h.kind >= bodyData && h.kind <= bodyEnd && (h.kind == bodyData || h.length == 0)
	return h, ok
}

// bodyItem is a part of a file of bodies: a record, or other bytes.
type bodyItem struct {
	head bodyHead
	at   int64 // its offset
	// flaw describes the damage. lost: the owner of the bytes is unknown; otherwise it is known from the record's tail.
	flaw string
	lost bool
}

// bodyScanner reads the heads of one file.
type bodyScanner struct {
	buffer   *readBuffer // for heads
	ahead    *readBuffer // for searching
	file     *bodyFile
	salt     uint32
	capacity int64 // of the file, if it is shorter
	durable  int64 // the highest value in a head
}

// run calls visit for the items of the file, in order. It returns the end of the last good record, and whether that
// one closes the file. Bytes after it are not used.
func (s *bodyScanner) run(visit func(bodyItem) error) (end int64, closed bool, err error) {
	at := int64(segmentHeaderSize)
	for {
		h, ok, err := s.head(at)
		if err != nil {
			return 0, false, err
		}
		flaw := ""
		if !ok || h.tail {
			h, ok, err = s.search(at)
			if err != nil || !ok {
				return at, false, err
			}
			if flaw = "the head is damaged; the record's tail is read instead"; !h.tail {
				flaw = ""
			}
		}
		if int64(h.offset) > at {
			if err := visit(bodyItem{at: at, lost: true,
				flaw: "damaged: no head of a body here, but one follows"}); err != nil {
				return 0, false, err
			}
		}
		s.durable = max(s.durable, int64(h.durable))
		if err := visit(bodyItem{head: h, at: int64(h.offset), flaw: flaw}); err != nil {
			return 0, false, err
		}
		if at = h.end(); h.kind == bodyEnd {
			return at, true, nil
		}
	}
}

func (s *bodyScanner) head(at int64) (bodyHead, bool, error) {
	if at+bodyHeadSize > s.capacity {
		return bodyHead{}, false, nil
	}
	b, err := s.buffer.bytes(s.file.file, at, bodyHeadSize)
	if err != nil {
		return bodyHead{}, false, err
	}
	h, ok := decodeBodyHead(b, s.salt, at, s.capacity)
	return h, ok, nil
}

// search finds the first head, or tail of a record from at on, after bytes without one.
func (s *bodyScanner) search(at int64) (bodyHead, bool, error) {
	for p := at; ; {
		next := vfs.NextWritten(s.file.file, p)
		if next > s.capacity-bodyHeadSize {
			return bodyHead{}, false, nil
		}
		p += (next - p) / bodyAlign * bodyAlign
		hole := alignBody(min(max(vfs.NextHole(s.file.file, next), p+1), s.capacity))
		n := int(min(searchStep, s.capacity-p, hole-p))
		b, err := s.ahead.bytes(s.file.file, p, n)
		if err != nil {
			return bodyHead{}, false, err
		}
		for i := 0; i+bodyHeadSize <= len(b); i += bodyAlign {
			h, ok := decodeBodyHead(b[i:], s.salt, p+int64(i), s.capacity)
			if ok && int64(h.offset) >= at {
				return h, true, nil
			}
		}
		if len(b) < n {
			return bodyHead{}, false, nil
		}
		p += alignBody(int64(n))
	}
}

// searchStep is the size of reads in search of a head; a multiple of bodyAlign.
const searchStep = 256 << 10
