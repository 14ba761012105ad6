package iss

import (
	"encoding/binary"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// The encoding of a message's part: two bytes that show which of its numbers are present; a byte of flags; those
// numbers; then the lists. Numbers have variable length (binary.AppendUvarint). Slots are encoded relative to the
// segment's first one, because most are near it.

// numbersInPart are the numbers of a part in the order in which they are encoded.
const numbersInPart = 14

// numbers are those of a part. In place of a list is its length.
func (p *Part) numbers() [numbersInPart]uint64 {
	return [numbersInPart]uint64{
		uint64(p.Segment), uint64(p.Slot), uint64(p.Hint), uint64(p.Upto), uint64(p.Ballot), p.Round,
		uint64(p.ID.Session.Member), p.ID.Session.Incarnation, p.ID.Seq, uint64(p.Reason),
		uint64(len(p.Nil)), uint64(len(p.Never)), uint64(len(p.Ballots)), uint64(len(p.Members) + len(p.Held)),
	}
}

// near reports whether a number is a slot that is encoded relative to the segment's first one.
func near(number int) bool { return number >= 1 && number <= 3 }

// fold maps a small signed difference to a small number. unfold is its inverse.
func fold(d uint64) uint64   { return d<<1 ^ uint64(int64(d)>>63) }
func unfold(v uint64) uint64 { return v>>1 ^ -(v & 1) }

// Append implements protocol.Part.
func (p *Part) Append(dst []byte) []byte {
	at, which, v := len(dst), uint16(0), p.numbers()
	dst = append(dst, 0, 0, slots.Flags(p.More, p.Serving, p.Lacking))
	for i, n := range v {
		if n == 0 {
			continue
		}
		which |= 1 << i
		if near(i) {
			n = fold(n - v[0])
		}
		dst = binary.AppendUvarint(dst, n)
	}
	binary.LittleEndian.PutUint16(dst[at:], which)
	for _, list := range [...]paxos.Spans{p.Nil, p.Never} {
		last := v[0]
		for _, x := range list {
			dst = binary.AppendUvarint(dst, uint64(x.From)-last)
			dst = binary.AppendUvarint(dst, uint64(x.To-x.From))
			last = uint64(x.To)
		}
	}
	for _, b := range p.Ballots {
		dst = binary.AppendUvarint(dst, uint64(b)+1) // known is 0
	}
	for _, id := range p.Members {
		dst = binary.AppendUvarint(dst, uint64(id))
	}
	for _, h := range p.Held {
		dst = binary.AppendUvarint(dst, uint64(h.ID))
		dst = binary.AppendUvarint(dst, h.Number())
	}
	return dst
}

// partReader reads the numbers of a part. bad: a number was missing, or not encoded as Append does.
type partReader struct {
	b   []byte
	bad bool
}

func (r *partReader) number() uint64 {
	v, rest, ok := slots.Varint(r.b)
	r.b, r.bad = rest, r.bad || !ok
	return v
}

// fits reports whether a list of n items may follow, each of at least some bytes.
func (r *partReader) fits(n uint64, least int) bool {
	r.bad = r.bad || n > uint64(len(r.b)/least)
	return !r.bad && n > 0
}

func (r *partReader) spans(n, last uint64) (out paxos.Spans) {
	if !r.fits(n, 2) {
		return nil
	}
	out = make(paxos.Spans, n)
	for i := range out {
		from := last + r.number()
		last = from + r.number()
		out[i] = paxos.Span{From: protocol.Index(from), To: protocol.Index(last)}
	}
	return out
}

// numbers reads the numbers that are present.
func (r *partReader) numbers(which uint16) (v [numbersInPart]uint64) {
	for i := range v {
		if which>>i&1 == 0 {
			continue
		}
		if v[i] = r.number(); near(i) {
			v[i] = v[0] + unfold(v[i])
		}
		r.bad = r.bad || v[i] == 0
	}
	return v
}

// decode is the codec's. A message and its part are one piece of memory.
func decode(t protocol.MessageType, b []byte) (*protocol.Message, error) {
	if len(b) < 3 {
		return nil, slots.CorruptPart(t, b)
	}
	m := &struct {
		protocol.Message
		part Part
	}{}
	which, flags, r := binary.LittleEndian.Uint16(b), b[2], partReader{b: b[3:]}
	v := r.numbers(which)
	m.part = Part{
		Segment: protocol.Index(v[0]), Slot: protocol.Index(v[1]), Hint: protocol.Index(v[2]), Upto: protocol.Index(v[3]),
		Ballot: paxos.Ballot(v[4]), Round: v[5],
		ID:     protocol.ProposalID{Session: protocol.Session{Member: protocol.MemberID(v[6]), Incarnation: v[7]}, Seq: v[8]},
		Reason: protocol.Reason(v[9]), More: slots.Flag(flags, 0), Serving: slots.Flag(flags, 1),
		Lacking: slots.Flag(flags, 2),
		Nil:     r.spans(v[10], v[0]), Never: r.spans(v[11], v[0]),
	}
	if r.fits(v[12], 1) {
		m.part.Ballots = make([]paxos.Ballot, v[12])
		for i := range m.part.Ballots {
			m.part.Ballots[i] = paxos.Ballot(r.number() - 1)
		}
	}
	r.relays(t, v[13], &m.part)
	if r.bad || len(r.b) > 0 || which>>numbersInPart != 0 || flags>>3 != 0 || uint64(m.part.Reason) != v[9] {
		return nil, slots.CorruptPart(t, b)
	}
	m.Part = &m.part
	return &m.Message, nil
}

// relays reads the lists of messages to and from relays.
func (r *partReader) relays(t protocol.MessageType, n uint64, p *Part) {
	r.bad = r.bad || n > mostRelays(t)
	switch {
	case !r.fits(n, 1):
	case t == MsgGathered:
		for range n {
			p.Held = append(p.Held, relay.HeldOf(r.number(), r.number()))
		}
	default:
		for range n {
			p.Members = append(p.Members, protocol.MemberID(r.number()))
		}
	}
}

// mostRelays is how many members a part of a type may name.
func mostRelays(t protocol.MessageType) uint64 {
	if t == MsgRelay || t == MsgRelayed || t == MsgGathered {
		return 2 * relay.MaxMembers
	}
	return 0
}
