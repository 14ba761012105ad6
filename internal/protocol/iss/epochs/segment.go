package epochs

import (
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Segment is the slots of one leader in an epoch. It is a small value that never changes, and its methods
// allocate nothing. The zero Segment has none of them.
type Segment struct {
	epoch *Epoch
	at    int // the leader's place
}

// Segment returns a leader's segment; false: the member does not lead in the epoch.
func (e *Epoch) Segment(leader protocol.MemberID) (s Segment, ok bool) {
	at, ok := slices.BinarySearch(e.Leaders, leader)
	if !ok {
		return s, false
	}
	return Segment{e, at}, true
}

// SegmentOf returns the segment of a slot of the epoch.
func (e *Epoch) SegmentOf(i protocol.Index) Segment { return Segment{e, e.Place(i)} }

// Epoch is the segment's epoch.
func (s Segment) Epoch() *Epoch { return s.epoch }

// Leader is the segment's leader.
func (s Segment) Leader() protocol.MemberID { return s.epoch.Leaders[s.at] }

// Has reports whether a slot belongs to the segment.
func (s Segment) Has(i protocol.Index) bool {
	return i >= s.epoch.First && i <= s.epoch.Last && s.epoch.Place(i) == s.at
}

// First is its first slot.
func (s Segment) First() protocol.Index { return s.After(0) }

// Last is its last slot. It may not be skipped: if nothing is decided there, the leader is suspected
// (docs/reports/iss-models.md, S9).
func (s Segment) Last() protocol.Index { return s.epoch.ends[s.at] }

// After is its first slot after i, which may be any slot; 0: there is none. After one of its own slots it takes
// constant time, otherwise as many steps as there are turns.
func (s Segment) After(i protocol.Index) protocol.Index {
	e := s.epoch
	if i >= s.Last() {
		return 0
	}
	i = max(i, e.First-1)
	if i >= e.First {
		if t := e.turn(i); int(e.turns[t]) == s.at {
			return i + protocol.Index(e.gaps[t])
		}
	}
	for i++; e.Place(i) != s.at; {
		i++
	}
	return i
}

// Len is the number of its slots.
func (s Segment) Len() int { return s.Before(s.epoch.Last + 1) }

// Before is the number of its slots before i.
func (s Segment) Before(i protocol.Index) int {
	e := s.epoch
	if i <= e.First {
		return 0
	}
	passed := int(min(i, e.Last+1) - e.First)
	rounds, rest := passed/len(e.turns), passed%len(e.turns)
	n := 0
	for at, turn := range e.turns {
		if int(turn) != s.at {
			continue
		}
		if n += rounds; at < rest {
			n++
		}
	}
	return n
}
