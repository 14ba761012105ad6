package raft

import (
	"encoding/binary"

	"github.com/braidlog/braid/protocol"
)

// Old envelopes are hardly ever looked at, but a log of small commands has millions of
// them. A packed chunk keeps them as differences, about a dozen bytes each. Payloads stay
// behind, on disk, but for configurations, which are always at hand.

// pack encodes entries without their payloads. For each:
//
//	kind | uvarint term − the last one's | uvarint seq − low | zigzag seq − the last one's
//	uvarint count | uvarint size | 4 bytes digest | k | a configuration's payload
//
// and where k is not 0: the body's size, digest and form, 4 + 4 + 1 bytes.
//
// with the high bit of kind set, and 16 bytes of session after it, where the session is
// another than the last one's.
func pack(entries []protocol.Entry) []byte {
	b := make([]byte, 0, 16*len(entries))
	var last protocol.Entry
	last.Term = entries[0].Term
	for i := range entries {
		e := &entries[i]
		if e.ID.Session == last.ID.Session {
			b = append(b, byte(e.Kind))
		} else {
			b = append(b, byte(e.Kind)|0x80)
			b = binary.LittleEndian.AppendUint64(b, uint64(e.ID.Session.Member))
			b = binary.LittleEndian.AppendUint64(b, e.ID.Session.Incarnation)
		}
		b = binary.AppendUvarint(b, uint64(e.Term-last.Term))
		b = binary.AppendUvarint(b, e.ID.Seq-e.Low)
		b = binary.AppendVarint(b, int64(e.ID.Seq-last.ID.Seq))
		b = binary.AppendUvarint(b, uint64(e.Count))
		b = binary.AppendUvarint(b, uint64(e.Size))
		b = append(binary.LittleEndian.AppendUint32(b, e.Digest), e.K)
		if e.K > 0 {
			b = binary.LittleEndian.AppendUint32(b, e.BodySize)
			b = append(binary.LittleEndian.AppendUint32(b, e.BodyDigest), byte(e.Form))
		}
		if e.Kind == protocol.EntryConfig {
			b = append(b, e.Payload...)
		}
		last = *e
	}
	return append(make([]byte, 0, len(b)), b...)
}

// unpack makes entries of a packed chunk again. Sealing gives the very same heads.
func unpack(c *chunk) []protocol.Entry {
	entries := make([]protocol.Entry, c.n)
	heads := make([]byte, c.n*protocol.HeadSize)
	b := c.packed
	uvarint := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[n:]
		return v
	}
	var last protocol.Entry
	last.Term = c.loT
	for i := range entries {
		e := &entries[i]
		e.Kind, e.ID.Session = protocol.EntryKind(b[0]&0x7f), last.ID.Session
		other := b[0]&0x80 != 0
		b = b[1:]
		if other {
			e.ID.Session.Member = protocol.MemberID(binary.LittleEndian.Uint64(b))
			e.ID.Session.Incarnation = binary.LittleEndian.Uint64(b[8:])
			b = b[16:]
		}
		term := last.Term + protocol.Term(uvarint())
		below := uvarint()
		delta, n := binary.Varint(b)
		b = b[n:]
		e.ID.Seq = last.ID.Seq + uint64(delta)
		e.Low = e.ID.Seq - below
		e.Count, e.Size = uint32(uvarint()), uint32(uvarint())
		e.Digest, e.K = binary.LittleEndian.Uint32(b), b[4]
		if b = b[5:]; e.K > 0 {
			e.BodySize, e.BodyDigest = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
			e.Form = protocol.Form(b[8])
			b = b[9:]
		}
		if e.Kind == protocol.EntryConfig {
			e.Payload = b[:e.Size:e.Size]
			b = b[e.Size:]
		}
		e.Seal(c.lo+protocol.Index(i), term, heads[i*protocol.HeadSize:])
		last = *e
	}
	return entries
}
