package paxos

import (
	"math"

	"github.com/braidlog/braid/protocol"
)

// Segment is a set of slots with ballots of its own: those of a leader in an epoch, or all slots.
type Segment struct {
	// Share are the slots that belong to it; nil: all slots do.
	Share Share
	// First and Last are its first and last slots.
	First, Last protocol.Index
}

// Share is a part of the slots, a comparable value.
type Share interface {
	// After is the first of its slots after i. It is called only if there is one.
	After(i protocol.Index) protocol.Index
}

// All is the segment of multi-Paxos.
var All = Segment{First: 1, Last: Beyond - 1}

// Beyond is a slot after all segments.
const Beyond = protocol.Index(math.MaxInt64)

// After is the segment's first slot after i; beyond if there is none.
func (g *Segment) After(i protocol.Index) protocol.Index {
	switch {
	case i >= g.Last:
		return Beyond
	case g.Share == nil:
		return i + 1
	}
	return g.Share.After(i)
}

// Before is the slot before the segment's first one.
func (g *Segment) Before() protocol.Index { return g.First - 1 }

// Has reports whether a slot is one of the segment's.
func (g *Segment) Has(i protocol.Index) bool { return i >= g.First && g.After(i-1) == i }

// PromiseCell is the number of the cell that has what is promised in a segment. Slots have the numbers from 1 on.
// The segment of all slots has number 0, and the others have numbers that no slot has.
func (g *Segment) PromiseCell() uint64 {
	if g.Share == nil {
		return 0
	}
	return SegmentCell | uint64(g.First)
}

// SegmentCell marks the numbers of cells that are not about a slot.
const SegmentCell = 1 << 63
