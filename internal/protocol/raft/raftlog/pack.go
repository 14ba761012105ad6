package raftlog

import (
	"encoding/binary"

	"github.com/braidlog/braid/protocol"
)

// Old envelopes are rarely used, but a log of small commands has millions of them. A packed chunk
// keeps them as differences, about a dozen bytes each. Payloads are on disk only, except those of
// configurations.

// pack encodes entries without their payloads. For each:
//
//	kind | uvarint term − the last one's | uvarint seq − low | zigzag seq − the last one's |
//	uvarint count | uvarint size | 4 bytes digest | k | a configuration's payload
//
// and where k is not 0: the body's size, digest and form, 4 + 4 + 1 bytes.
//
// If the session is another than the last entry's, the high bit of kind is set and 16 bytes of
// session follow it. If there is no id, the next bit is set, a uvarint low takes the place of the
// two about seq, and the last id stays for the next entry.
func pack(entries []protocol.Entry) []byte {
	b := make([]byte, 0, 16*len(entries))
	var last protocol.Entry
	last.Term = entries[0].Term
	for i := range entries {
		e := &entries[i]
		b = packID(b, e, &last)
		b = binary.AppendUvarint(b, uint64(e.Count))
		b = binary.AppendUvarint(b, uint64(e.Size))
		b = append(binary.LittleEndian.AppendUint32(b, e.Digest), e.K)
		if e.K > 0 {
			b = binary.LittleEndian.AppendUint32(b, e.BodySize)
			b = append(binary.LittleEndian.AppendUint32(b, e.BodyDigest), byte(e.Form))
		}
		if !e.Kind.Commands() {
			b = append(b, e.Payload...)
		}
		last.Term = e.Term
	}
	return append(make([]byte, 0, len(b)), b...)
}

const (
	packOther = 0x80 // another session than the last one's
	packNoID  = 0x40
)

// packID appends an entry's kind, term and id, as differences from the last one's term and id, and
// continues to its id.
func packID(b []byte, e, last *protocol.Entry) []byte {
	le := binary.LittleEndian
	switch {
	case e.ID == protocol.ProposalID{}:
		b = append(b, byte(e.Kind)|packNoID)
		b = binary.AppendUvarint(b, uint64(e.Term-last.Term))
		return binary.AppendUvarint(b, e.Low)
	case e.ID.Session == last.ID.Session:
		b = append(b, byte(e.Kind))
	default:
		b = append(b, byte(e.Kind)|packOther)
		b = le.AppendUint64(b, uint64(e.ID.Session.Member))
		b = le.AppendUint64(b, e.ID.Session.Incarnation)
	}
	b = binary.AppendUvarint(b, uint64(e.Term-last.Term))
	b = binary.AppendUvarint(b, e.ID.Seq-e.Low)
	b = binary.AppendVarint(b, int64(e.ID.Seq-last.ID.Seq))
	last.ID = e.ID
	return b
}

// unpackID reads what packID appended and returns the rest.
func unpackID(b []byte, e, last *protocol.Entry) []byte {
	le := binary.LittleEndian
	kind := b[0]
	e.Kind, b = protocol.EntryKind(kind&^(packOther|packNoID)), b[1:]
	uvarint := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[n:]
		return v
	}
	if kind&packNoID != 0 {
		e.Term, e.Low = last.Term+protocol.Term(uvarint()), uvarint()
		return b
	}
	if e.ID.Session = last.ID.Session; kind&packOther != 0 {
		e.ID.Session.Member, e.ID.Session.Incarnation = protocol.MemberID(le.Uint64(b)), le.Uint64(b[8:])
		b = b[16:]
	}
	e.Term = last.Term + protocol.Term(uvarint())
	below := uvarint()
	delta, n := binary.Varint(b)
	b = b[n:]
	e.ID.Seq = last.ID.Seq + uint64(delta)
	e.Low = e.ID.Seq - below
	last.ID = e.ID
	return b
}

// unpack makes entries of a packed chunk again. Sealing gives the very same heads.
func unpack(c *chunk) []protocol.Entry {
	entries := make([]protocol.Entry, c.n)
	heads := make([]byte, c.n*protocol.HeadSize)
	u := newUnpacker(c)
	for i := range entries {
		e := &entries[i]
		u.next(e)
		e.Seal(e.Index, e.Term, heads[i*protocol.HeadSize:])
	}
	return entries
}

// unpacker reads the entries of a packed chunk, one after the other.
type unpacker struct {
	b    []byte         // what is left
	last protocol.Entry // its index and term are the last entry's, and its id is the one that differences count from
}

func newUnpacker(c *chunk) unpacker {
	return unpacker{b: c.packed, last: protocol.Entry{Index: c.lo - 1, Term: c.loT}}
}

// next makes the next entry, not sealed, in e.
func (u *unpacker) next(e *protocol.Entry) {
	*e = protocol.Entry{Index: u.last.Index + 1}
	b := unpackID(u.b, e, &u.last)
	uvarint := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[n:]
		return v
	}
	e.Count, e.Size = uint32(uvarint()), uint32(uvarint())
	e.Digest, e.K = binary.LittleEndian.Uint32(b), b[4]
	if b = b[5:]; e.K > 0 {
		e.BodySize, e.BodyDigest = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		e.Form = protocol.Form(b[8])
		b = b[9:]
	}
	if !e.Kind.Commands() {
		e.Payload = b[:e.Size:e.Size]
		b = b[e.Size:]
	}
	u.b, u.last.Index, u.last.Term = b, e.Index, e.Term
}
