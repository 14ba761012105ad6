package protocol

import (
	"encoding/binary"
	"fmt"
)

// Form is the part of a body that is held: nothing, the whole, or one row of its Reed–Solomon code.
type Form uint8

// Forms that are not rows.
const (
	FormNone Form = iota
	FormWhole
	firstRow
	// FormCommitted, in an answer about uncommitted entries: the answering member has
	// compacted the entry, so it is committed (docs/internals/craft.md, 2.5). It is no form of a body.
	FormCommitted Form = 255
)

// Rows is the maximal number of distinct rows. Every member's slot is below it.
const Rows = int(FormCommitted - firstRow)

// RowForm is the form that holds row r, 0 ≤ r < Rows. Rows below k are pieces of the body
// itself; a row depends on k and r only, not on how many rows there are.
func RowForm(r uint8) Form { return firstRow + Form(r) }

// Row returns the row that the form holds; false if it holds none.
func (f Form) Row() (r uint8, ok bool) {
	return uint8(f - firstRow), f >= firstRow && f < FormCommitted
}

// Len is the length in bytes of a body of size bytes in that form, if coded with k.
func (f Form) Len(size uint32, k uint8) int {
	switch f {
	case FormNone, FormCommitted:
		return 0
	case FormWhole:
		return int(size)
	}
	return FragmentLen(size, k)
}

// FragmentLen is the length of each fragment of a body of size bytes: ⌈size/k⌉.
func FragmentLen(size uint32, k uint8) int { return (int(size) + int(k) - 1) / max(int(k), 1) }

// Better reports whether holding f is more than holding g: whole over a row over nothing.
func (f Form) Better(g Form) bool {
	rank := func(f Form) int {
		switch _, row := f.Row(); {
		case f == FormWhole:
			return 2
		case row:
			return 1
		}
		return 0
	}
	return rank(f) > rank(g)
}

func (f Form) String() string {
	switch f {
	case FormNone:
		return "none"
	case FormWhole:
		return "whole"
	case FormCommitted:
		return "committed"
	}
	return fmt.Sprintf("row %d", uint8(f-firstRow))
}

// BodyRef names the body of a committed entry, with the length and digest that the whole must
// have.
type BodyRef struct {
	Instance InstanceID `json:"instance"`
	Index    Index      `json:"index"`
	Term     Term       `json:"term"`
	K        uint8      `json:"k"`
	Size     uint32     `json:"size"`
	Digest   uint32     `json:"digest"`
}

// Holding is the form in which a member's disk holds the body of an entry.
type Holding struct {
	Index Index
	Term  Term
	Form  Form
	// Digest is the CRC-32C of a message's Blob, where there is one; else 0.
	Digest uint32
}

const holdingSize = 24

func (h *Holding) append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, uint64(h.Index))
	b = le.AppendUint64(b, uint64(h.Term))
	b = append(b, byte(h.Form), 0, 0, 0)
	return le.AppendUint32(b, h.Digest)
}

func decodeHolding(b []byte) Holding {
	le := binary.LittleEndian
	return Holding{Index: Index(le.Uint64(b)), Term: Term(le.Uint64(b[8:])), Form: Form(b[16]), Digest: le.Uint32(b[20:])}
}

// BodyHeadSize is the length in bytes of what comes before a body on the wire.
const BodyHeadSize = 12

// AppendBodyHead appends the header between an entry's payload and its body on the wire:
//
//	0 form | 1…3 zero | 4 length | 8 crc32c of the body in this form, mixed with the form
//
// An entry without a body (BodySize 0) has no such head. The entry must be resident.
func (e *Entry) AppendBodyHead(dst []byte) []byte {
	le := binary.LittleEndian
	dst = append(dst, byte(e.Form), 0, 0, 0)
	dst = le.AppendUint32(dst, uint32(len(e.Body)))
	crc, known := e.BodySum()
	switch {
	case e.Form == FormWhole:
		crc = e.BodyDigest
	case !known:
		crc = Digest(e.Body)
	}
	return le.AppendUint32(dst, mixed(crc, e.Form))
}

// mixed adds the form to a checksum, so that a whole body's checksum need not be computed again.
func mixed(crc uint32, f Form) uint32 { return crc ^ uint32(f)*0x9e3779b1 }

// DecodeBody reads what AppendBodyHead wrote and the body after it into e, and verifies it.
func (e *Entry) DecodeBody(b []byte) (rest []byte, err error) {
	corrupt := func(format string, args ...any) error {
		return &CorruptError{What: "entry body", Detail: fmt.Sprintf("index %d: ", e.Index) + fmt.Sprintf(format, args...)}
	}
	if len(b) < BodyHeadSize {
		return nil, corrupt("%d bytes, need %d", len(b), BodyHeadSize)
	}
	le := binary.LittleEndian
	form, n := Form(b[0]), int(le.Uint32(b[4:]))
	crc := mixed(le.Uint32(b[8:]), form)
	_, row := form.Row()
	switch {
	case form == FormCommitted, row && e.K < 2, b[1]|b[2]|b[3] != 0:
		return nil, corrupt("form %s with k=%d", form, e.K)
	case n != form.Len(e.BodySize, e.K) || n > len(b)-BodyHeadSize:
		return nil, corrupt("%d bytes at hand, %d announced, %s of %d with k=%d", len(b)-BodyHeadSize, n, form,
			e.BodySize, e.K)
	case form == FormWhole && crc != e.BodyDigest:
		return nil, corrupt("digest %08x, want %08x", crc, e.BodyDigest)
	}
	end := BodyHeadSize + n
	e.Form = form
	if n > 0 {
		e.Body = b[BodyHeadSize:end:end]
	}
	if got := Digest(e.Body); got != crc {
		return nil, corrupt("checksum %08x, want %08x", got, crc)
	}
	e.sum = sumOf(e.Body, crc)
	return b[end:], nil
}

// bodySum is the CRC-32C of a body in its form. It is that of the bytes that begin at a place, which do not change: an
// entry that gets another body has none.
type bodySum struct {
	at        *byte
	size, crc uint32
}

func sumOf(body []byte, crc uint32) bodySum {
	if len(body) == 0 {
		return bodySum{}
	}
	return bodySum{&body[0], uint32(len(body)), crc}
}

// BodySum returns the CRC-32C of Body in its form. known is false if it was not computed when the entry was sealed or
// decoded.
func (e *Entry) BodySum() (crc uint32, known bool) {
	known = len(e.Body) > 0 && e.sum == sumOf(e.Body, e.sum.crc)
	return e.sum.crc, known
}
