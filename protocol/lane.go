package protocol

import "encoding/binary"

// A lane is what one life of one member brings to the others by itself, without the leader: batches,
// numbered from 1 (docs/lcr.md). The leader only says in the log which of them take effect, and where.
// Three kinds of entries are about lanes. An EntryLane opens a lane, and ends the one that an earlier
// life of the same member had. An EntryGroup that has a range stands for a part of a lane. The ranges
// of a lane follow each other in the log without a gap. From an EntryGeneration on, members count
// acknowledgements of their lanes anew, by the voters of that moment.

// Lane names a lane: the life of the member whose it is. A member has one lane at a time.
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

// Range is which part of which lane the entry stands for; false if for none.
func (e *Entry) Range() (LaneRange, bool) {
	return LaneRange{Lane: e.ID.Session, From: e.Low, To: e.ID.Seq}, (e.Kind == EntryGroup || e.Kind == EntrySignal) && e.ID.Seq > 0
}

// signalBytes is the length of a signal's payload: size and digest of the group's payload.
const signalBytes = 8

// NewSignal returns the signal that says which group stands at an index. Who has the batches makes the
// group of them.
func NewSignal(group *Entry) Entry {
	buf := make([]byte, HeadSize+signalBytes)
	e := Entry{Kind: EntrySignal, ID: group.ID, Low: group.Low, Count: group.Count, Payload: buf[HeadSize:]}
	binary.LittleEndian.PutUint32(e.Payload, group.Size)
	binary.LittleEndian.PutUint32(e.Payload[4:], group.Digest)
	e.SealPayload()
	e.Seal(group.Index, group.Term, buf)
	return e
}

// Means reports whether a signal stands for that group, which need not be sealed. It seals the group at
// the signal's place.
func (e *Entry) Means(group *Entry) bool {
	if len(e.Payload) != signalBytes || group.Count != e.Count || group.ID != e.ID || group.Low != e.Low ||
		group.Size != binary.LittleEndian.Uint32(e.Payload) || group.Digest != binary.LittleEndian.Uint32(e.Payload[4:]) {
		return false
	}
	group.Seal(e.Index, e.Term, make([]byte, HeadSize))
	return true
}
