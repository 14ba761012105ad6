package multipaxos

import (
	"encoding/binary"

	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// How a part of a message of ISS is encoded: which of its numbers there are, two bytes; flags, a byte; those numbers; then the
// lists. Numbers take as many bytes as they need (binary.AppendUvarint). Slots are counted from the segment's first one, because
// most are near it.

// issNumbers are the numbers of a part in the order in which they are encoded.
const issNumbers = 14

// numbers are those of a part. Where lists are is how many are in them.
func (p *ISSPart) numbers() [issNumbers]uint64 {
	return [issNumbers]uint64{
		uint64(p.Segment), uint64(p.Slot), uint64(p.Hint), uint64(p.Upto), uint64(p.Ballot), p.Round,
		uint64(p.ID.Session.Member), p.ID.Session.Incarnation, p.ID.Seq, uint64(p.Reason),
		uint64(len(p.Nil)), uint64(len(p.Never)), uint64(len(p.Ballots)), uint64(len(p.Members) + len(p.Held)),
	}
}

// near reports whether a number is a slot that is counted from the segment's first one.
func near(number int) bool { return number >= 1 && number <= 3 }

// fold makes a small number of a small difference, whichever sign it has. unfold is its inverse.
func fold(d uint64) uint64   { return d<<1 ^ uint64(int64(d)>>63) }
func unfold(v uint64) uint64 { return v>>1 ^ -(v & 1) }

// Append implements protocol.Part.
func (p *ISSPart) Append(dst []byte) []byte {
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
	for _, list := range [...]spans{p.Nil, p.Never} {
		last := v[0]
		for _, x := range list {
			dst = binary.AppendUvarint(dst, uint64(x.from)-last)
			dst = binary.AppendUvarint(dst, uint64(x.to-x.from))
			last = uint64(x.to)
		}
	}
	for _, b := range p.Ballots {
		dst = binary.AppendUvarint(dst, uint64(b)+1) // known is 0
	}
	for _, id := range p.Members {
		dst = binary.AppendUvarint(dst, uint64(id))
	}
	for _, h := range p.Held {
		dst = binary.AppendUvarint(dst, uint64(h.id))
		dst = binary.AppendUvarint(dst, h.number())
	}
	return dst
}

// issReader reads numbers of a part. bad: there was none, or one that is not as it is written.
type issReader struct {
	b   []byte
	bad bool
}

func (r *issReader) number() uint64 {
	v, rest, ok := slots.Varint(r.b)
	r.b, r.bad = rest, r.bad || !ok
	return v
}

// room reports whether a list of so many may follow, each of least bytes or more.
func (r *issReader) room(n uint64, least int) bool {
	r.bad = r.bad || n > uint64(len(r.b)/least)
	return !r.bad && n > 0
}

func (r *issReader) spans(n, last uint64) (out spans) {
	if !r.room(n, 2) {
		return nil
	}
	out = make(spans, n)
	for i := range out {
		from := last + r.number()
		last = from + r.number()
		out[i] = span{from: protocol.Index(from), to: protocol.Index(last)}
	}
	return out
}

// numbers are the numbers that there are.
func (r *issReader) numbers(which uint16) (v [issNumbers]uint64) {
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

// decodeISS is the codec's. A message and its part are one piece of memory.
func decodeISS(t protocol.MessageType, b []byte) (*protocol.Message, error) {
	if len(b) < 3 {
		return nil, slots.CorruptPart(t, b)
	}
	m := &struct {
		protocol.Message
		part ISSPart
	}{}
	which, flags, r := binary.LittleEndian.Uint16(b), b[2], issReader{b: b[3:]}
	v := r.numbers(which)
	m.part = ISSPart{
		Segment: protocol.Index(v[0]), Slot: protocol.Index(v[1]), Hint: protocol.Index(v[2]), Upto: protocol.Index(v[3]),
		Ballot: Ballot(v[4]), Round: v[5],
		ID:     protocol.ProposalID{Session: protocol.Session{Member: protocol.MemberID(v[6]), Incarnation: v[7]}, Seq: v[8]},
		Reason: protocol.Reason(v[9]), More: slots.Flag(flags, 0), Serving: slots.Flag(flags, 1), Lacking: slots.Flag(flags, 2),
		Nil: r.spans(v[10], v[0]), Never: r.spans(v[11], v[0]),
	}
	if r.room(v[12], 1) {
		m.part.Ballots = make([]Ballot, v[12])
		for i := range m.part.Ballots {
			m.part.Ballots[i] = Ballot(r.number() - 1)
		}
	}
	r.relays(t, v[13], &m.part)
	if r.bad || len(r.b) > 0 || which>>issNumbers != 0 || flags>>3 != 0 || uint64(m.part.Reason) != v[9] {
		return nil, slots.CorruptPart(t, b)
	}
	m.Part = &m.part
	return &m.Message, nil
}

// relays reads what relays are told, or tell.
func (r *issReader) relays(t protocol.MessageType, n uint64, p *ISSPart) {
	r.bad = r.bad || n > mostRelays(t)
	switch {
	case !r.room(n, 1):
	case t == MsgISSGathered:
		for range n {
			p.Held = append(p.Held, heldOf(r.number(), r.number()))
		}
	default:
		for range n {
			p.Members = append(p.Members, protocol.MemberID(r.number()))
		}
	}
}

// mostRelays is how many members a part of a type may name.
func mostRelays(t protocol.MessageType) uint64 {
	if t == MsgISSRelay || t == MsgISSRelayed || t == MsgISSGathered {
		return 2 * mostHeld
	}
	return 0
}
