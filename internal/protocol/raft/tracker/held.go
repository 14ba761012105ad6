package tracker

import (
	"cmp"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// Bodies is what a leader knows of the bodies that a member holds.
type Bodies struct {
	// Held are the forms in which its disk holds bodies of coded entries after the commit
	// index, ascending: only what it said in this term (docs/internals/craft.md, 2.3); ≤ Match.
	Held []held
	// Whole: uncommitted coded entries up to here are sent whole; Filling is what is in progress of
	// those that it has already.
	Whole   protocol.Index
	Filling Filling
	// Far: it is too far behind the others to be counted on.
	Far Far
	// Lacking: it misses bodies of committed entries. Partial and Restripes are as in protocol.Bodies.
	// So it said in this term, when it had applied the log up to Applied; see protocol.Tick.
	Lacking   bool
	Partial   uint8
	Restripes uint32
	Applied   protocol.Index
}

// Filling is the Bodies message to a peer that is in flight.
type Filling struct {
	Last protocol.Index // of its entries; 0: none is in flight
	Sent time.Duration
}

// Far indicates whether a member is far behind, and since when.
type Far struct {
	Is bool
	// Owes is the log's end when it began. It ends when the member has all that, is near
	// again, and at Until at the earliest.
	Owes  protocol.Index
	Until time.Duration
}

// held is in what form a peer's disk holds the body of an entry.
type held struct {
	Index protocol.Index
	Form  protocol.Form
}

// Holds returns in what form p's disk certainly holds the body of a coded entry.
func (p *Progress) Holds(i protocol.Index) protocol.Form {
	if k, ok := p.find(i); ok {
		return p.Bodies.Held[k].Form
	}
	return protocol.FormNone
}

func (p *Progress) find(i protocol.Index) (int, bool) {
	return slices.BinarySearchFunc(p.Bodies.Held, i, func(h held, i protocol.Index) int { return cmp.Compare(h.Index, i) })
}

// Note takes in what p holds and reports whether it is more than was known.
func (p *Progress) Note(i protocol.Index, f protocol.Form) bool {
	k, ok := p.find(i)
	switch {
	case !ok && f.Better(protocol.FormNone):
		p.Bodies.Held = slices.Insert(p.Bodies.Held, k, held{i, f})
	case ok && f.Better(p.Bodies.Held[k].Form):
		p.Bodies.Held[k].Form = f
	default:
		return false
	}
	return true
}

// ForgetHeld forgets what is known of entries up to the commit index.
func (p *Progress) ForgetHeld(commit protocol.Index) {
	n, found := p.find(commit)
	if found {
		n++
	}
	p.Bodies.Held = slices.Delete(p.Bodies.Held, 0, n)
}
