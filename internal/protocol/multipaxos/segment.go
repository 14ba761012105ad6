package multipaxos

import (
	"math"

	"github.com/braidlog/braid/protocol"
)

// segment is a set of slots that have ballots of their own: those of a leader in an epoch, or all slots, of which
// multi-Paxos has one segment.
type segment struct {
	// share says which slots belong to it; nil: all slots do.
	share share
	// first and last are its first and its last slot.
	first, last protocol.Index
}

// share is a part of the slots, a comparable value.
type share interface {
	// After is the first of its slots after i. It is called only if there is one.
	After(i protocol.Index) protocol.Index
}

// all is the segment of multi-Paxos.
var all = segment{first: 1, last: beyond - 1}

// beyond is a slot after all segments.
const beyond = protocol.Index(math.MaxInt64)

// after is the segment's first slot after i; beyond if there is none.
func (g *segment) after(i protocol.Index) protocol.Index {
	switch {
	case i >= g.last:
		return beyond
	case g.share == nil:
		return i + 1
	}
	return g.share.After(i)
}

// before is the slot before the segment's first one.
func (g *segment) before() protocol.Index { return g.first - 1 }

// has reports whether a slot is one of the segment's.
func (g *segment) has(i protocol.Index) bool { return i >= g.first && g.after(i-1) == i }

// promiseCell is the number of the cell that has what is promised in a segment. Slots have the numbers from 1 on.
// The segment of all slots has number 0, and the others have numbers that no slot has.
func (g *segment) promiseCell() uint64 {
	if g.share == nil {
		return 0
	}
	return noSlot | uint64(g.first)
}

// noSlot marks the numbers of cells that are not about a slot.
const noSlot = 1 << 63
