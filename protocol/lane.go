package protocol

import "encoding/binary"

// A lane is the sequence of batches, numbered from 1, that one incarnation of one member replicates by itself,
// without the leader (docs/internals/lcr.md). The leader only orders them in the log. Three kinds of entries are
// about lanes. An EntryLane opens a lane, and ends the one that an earlier incarnation of the same member had. An
// EntryGroup with a range contains a part of a lane. The ranges of a lane follow each other in the log without a gap.
// From an EntryGeneration on, members count acknowledgements of their lanes again, by the voters of that moment.

// Lane names a lane: the incarnation of its member. A member has one lane at a time.
type Lane = Session

// LaneRange is a part of a lane, from From to To, both included.
type LaneRange struct {
	Lane     Lane
	From, To uint64
}

// NewLane returns the entry that opens a lane, not yet sealed.
func NewLane(lane Lane) Entry {
	e := Entry{Kind: EntryLane, ID: ProposalID{Session: lane}}
	e.SealPayload()
	return e
}

// NewGeneration returns the entry that begins a generation, not yet sealed.
func NewGeneration(number uint64) Entry { return control(EntryGeneration, number) }

// Generation is the number of an EntryGeneration.
func (e *Entry) Generation() uint64 { return e.Low }

// NewRange returns the group of some batches of a lane, not yet sealed. They follow each other, and the
// Index of each is its number in the lane.
func NewRange(lane Lane, batches []Entry) Entry {
	e := NewGroup(batches)
	e.ID = ProposalID{Session: lane, Seq: uint64(batches[len(batches)-1].Index)}
	e.Low = uint64(batches[0].Index)
	return e
}

// Range returns the part of a lane that the entry contains; false if it contains none.
func (e *Entry) Range() (LaneRange, bool) {
	return LaneRange{Lane: e.ID.Session, From: e.Low, To: e.ID.Seq}, (e.Kind == EntryGroup || e.Kind == EntrySignal) &&
		e.ID.Seq > 0
}

// A signal replaces a group on the wire, and is on no disk. So it has no envelope, only a payload:
//
//	0 crc32c of the rest | 4 kind | then, as varints: index, term, member, incarnation, first number,
//	batches, commands, size of the group's payload | digest of that, 4 | with a body: k | size, 4 | digest, 4
//
// The kind has the same offset as in an envelope. The lowest bit of batches is set if the group has a body.
// signalFields are the varints, and signalLeast is the least number of bytes.
const (
	signalHead   = 4 + 1
	signalFields = 8
	signalLeast  = signalHead + signalFields + 4
	signalBody   = 1 + 4 + 4
)

// NewSignal returns the signal of the group at an index. A member that has the batches makes the group of them.
func NewSignal(group *Entry) Entry {
	e := Entry{Kind: EntrySignal, Index: group.Index, Term: group.Term, ID: group.ID, Low: group.Low, Count: group.Count}
	b := make([]byte, signalHead, signalHead+signalFields*binary.MaxVarintLen64+4+signalBody)
	b[4] = byte(EntrySignal)
	r, _ := e.Range()
	for _, v := range [signalFields]uint64{
		uint64(e.Index), uint64(e.Term), uint64(r.Lane.Member), r.Lane.Incarnation, r.From,
		(r.To-r.From)<<1 | uint64(bit(group.BodySize > 0)), uint64(e.Count), uint64(group.Size),
	} {
		b = binary.AppendUvarint(b, v)
	}
	le := binary.LittleEndian
	b = le.AppendUint32(b, group.Digest)
	if group.BodySize > 0 {
		b = le.AppendUint32(le.AppendUint32(append(b, group.K), group.BodySize), group.BodyDigest)
	}
	le.PutUint32(b, Digest(b[4:]))
	e.Payload, e.Size = b, uint32(len(b))
	return e
}

// isSignal reports whether the next bytes are a signal, and not an envelope.
func isSignal(b []byte) bool { return len(b) >= signalLeast && EntryKind(b[4]) == EntrySignal }

// decodeSignal reads a signal from the front of b and returns the rest. It aliases b.
func decodeSignal(b []byte) (e Entry, rest []byte, err error) {
	v, _, at, ok := signalParts(b)
	if !ok {
		return e, nil, &CorruptError{What: "signal", Detail: "its end lacks"}
	}
	if binary.LittleEndian.Uint32(b) != Digest(b[4:at]) {
		return e, nil, &CorruptError{What: "signal", Detail: "checksum mismatch"}
	}
	lane := Lane{Member: MemberID(v[2]), Incarnation: v[3]}
	e = Entry{
		Kind: EntrySignal, Index: Index(v[0]), Term: Term(v[1]), ID: ProposalID{Session: lane, Seq: v[4] + v[5]>>1},
		Low:   v[4],
		Count: uint32(v[6]), Size: uint32(at), Payload: b[:at:at],
	}
	return e, b[at:], nil
}

// signalParts finds the varints of the signal at the front of b, the start of the rest, and the end; false if it is
// incomplete.
func signalParts(b []byte) (v [signalFields]uint64, rest, end int, ok bool) {
	rest = signalHead
	for i := range v {
		n := 0
		if v[i], n = binary.Uvarint(b[min(rest, len(b)):]); n <= 0 {
			return v, 0, 0, false
		}
		rest += n
	}
	if end = rest + 4; v[5]&1 > 0 {
		end += signalBody
	}
	return v, rest, end, end <= len(b)
}

// stands returns the sizes and digests of the payload and the body of the group that a signal describes.
func (e *Entry) stands() (g Entry) {
	v, at, end, ok := signalParts(e.Payload)
	if !ok {
		return g
	}
	b, le := e.Payload[at:end], binary.LittleEndian
	g.Size, g.Digest = uint32(v[7]), le.Uint32(b)
	if b = b[4:]; len(b) > 0 {
		g.K, g.BodySize, g.BodyDigest = b[0], le.Uint32(b[1:]), le.Uint32(b[5:])
	}
	return g
}

// Means reports whether a signal describes that group, which need not be sealed. It seals the group at the signal's
// place.
func (e *Entry) Means(group *Entry) bool {
	g := e.stands()
	if group.Count != e.Count || group.ID != e.ID || group.Low != e.Low || group.Size != g.Size ||
		group.Digest != g.Digest ||
		group.K != g.K || group.BodySize != g.BodySize || group.BodyDigest != g.BodyDigest {
		return false
	}
	group.Seal(e.Index, e.Term, make([]byte, HeadSize))
	return true
}
