package paxos

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Vote is an entry that an acceptor has accepted in a slot, and the ballot.
type Vote struct {
	Ballot Ballot
	Entry  protocol.Entry
}

// Acceptor is what a member promised and accepted in a segment. All of it is on disk before it is sent: the promise
// in a cell of its own, and each vote in the cell of its slot.
type Acceptor struct {
	seg Segment
	// Promised is the highest promised ballot: nothing is accepted or promised under a lower one. It never falls.
	Promised Ballot
	// Votes are the votes in slots that are not known to be decided. They may include decided slots whose entries are
	// not in the log on disk yet. Top is at least the last slot that ever had a vote; 0: none had. The ballot of a vote
	// is never above Promised.
	Votes map[protocol.Index]Vote
	Top   protocol.Index
	// Ahead are decided slots after undecided slots of the segment.
	Ahead map[protocol.Index]bool
	// Reach is the last slot up to which every slot of the segment is known to be decided, or has a vote under
	// Promised.
	Reach protocol.Index
	// Started: the segment's leader may have proposed under ballot 0, in this incarnation or in an earlier one.
	Started bool
	// Older: votes under older ballots count too (a mutant of multi-Paxos).
	Older bool
}

func NewAcceptor(seg Segment, decided protocol.Index) Acceptor {
	return Acceptor{seg: seg, Votes: map[protocol.Index]Vote{}, Reach: decided}
}

// Promise raises the promised ballot. decided is the last slot up to which everything is known to be decided.
func (a *Acceptor) Promise(b Ballot, decided protocol.Index) {
	a.Promised, a.Reach = b, decided
	a.Extend(decided)
}

// Accept adds a vote under the promised ballot, and returns it.
func (a *Acceptor) Accept(e *protocol.Entry, decided protocol.Index) Vote {
	v := Vote{a.Promised, *e}
	a.Votes[e.Index] = v
	a.Top = max(a.Top, e.Index)
	a.Extend(decided)
	return v
}

// Extend advances Reach.
func (a *Acceptor) Extend(decided protocol.Index) {
	a.Reach = max(a.Reach, decided)
	for next := a.seg.After(a.Reach); ; next = a.seg.After(next) {
		v, ok := a.Votes[next]
		if voted := ok && (v.Ballot == a.Promised || a.Older); !voted && !a.Ahead[next] {
			return
		}
		a.Reach = next
	}
}

// Holds reports whether the disk has the body of an entry, because it is stored with a vote.
func (a *Acceptor) Holds(e *protocol.Entry) bool {
	v, ok := a.Votes[e.Index]
	return ok && v.Entry.Term == e.Term && v.Entry.ID == e.ID
}

// HoldsUnderPromise reports whether there is a vote for an entry under the promised ballot.
func (a *Acceptor) HoldsUnderPromise(e *protocol.Entry) bool {
	return a.Holds(e) && a.Votes[e.Index].Ballot == a.Promised
}

// Whole reports whether all of an entry is in memory or on the disk.
func (a *Acceptor) Whole(e *protocol.Entry) bool {
	return e.Applicable() && (e.BodySize == 0 || e.Form == protocol.FormWhole && (e.Resident() || a.Holds(e)))
}

// Unstored is an entry as a record has it: with its body unless that is on the disk.
func (a *Acceptor) Unstored(e protocol.Entry) protocol.Entry {
	if e.BodySize > 0 && a.Holds(&e) {
		e.Form, e.Body = protocol.FormNone, nil
	}
	return e
}

// EncodePromise returns the cell of the promise: the ballot, and whether the segment was started.
func (a *Acceptor) EncodePromise() protocol.Cell {
	b := binary.LittleEndian.AppendUint64(nil, uint64(a.Promised))
	if a.Started {
		b = append(b, 1)
	}
	return protocol.Cell{Number: a.seg.PromiseCell(), Data: b}
}

// Cell returns the cell of a vote: the ballot, and the entry as its head and payload. A body is stored next to it.
func (v *Vote) Cell() protocol.Cell {
	b := make([]byte, 0, 8+protocol.HeadSize)
	b = binary.LittleEndian.AppendUint64(b, uint64(v.Ballot))
	return protocol.Cell{Number: uint64(v.Entry.Index), Data: append(b, v.Entry.Head()...), Rest: v.Entry.Payload}
}

func corruptCell(c *protocol.Cell, detail string) error {
	return &protocol.CorruptError{What: "cell", Detail: fmt.Sprintf("%d: %s", c.Number, detail)}
}

// DecodeVote decodes what Cell encodes. The error is a [*protocol.CorruptError].
func DecodeVote(c protocol.Cell) (v Vote, err error) {
	b := slices.Concat(c.Data, c.Rest)
	if len(b) < 8 {
		return v, corruptCell(&c, fmt.Sprintf("%d bytes", len(b)))
	}
	e, rest, err := protocol.DecodeEntry(b[8:], true)
	switch {
	case err != nil:
		return v, corruptCell(&c, err.Error())
	case uint64(e.Index) != c.Number || len(rest) > 0:
		return v, corruptCell(&c, fmt.Sprintf("entry %d, and %d bytes after it", e.Index, len(rest)))
	}
	if e.BodySize > 0 {
		e.Form = protocol.FormWhole
	}
	return Vote{Ballot(binary.LittleEndian.Uint64(b)), e}, nil
}

// Accepted is the entry that a cell holds, whose body the disk must hold too; false if there is none.
func Accepted(c protocol.Cell) (protocol.Entry, bool) {
	if c.Number == All.PromiseCell() || c.Number&SegmentCell != 0 {
		return protocol.Entry{}, false
	}
	v, err := DecodeVote(c)
	return v.Entry, err == nil
}

// Load adds an acceptor's cells from the disk. It returns the slots of cells that are not needed any more because the
// slots are decided. The error is a [*protocol.CorruptError].
func (a *Acceptor) Load(cells []protocol.Cell, decided protocol.Index) (stale []protocol.Index, err error) {
	promised := Ballot(0)
	for _, c := range cells {
		if c.Number == a.seg.PromiseCell() {
			if len(c.Data) < 8 || len(c.Data) > 9 {
				return nil, corruptCell(&c, fmt.Sprintf("%d bytes", len(c.Data)))
			}
			promised = max(promised, Ballot(binary.LittleEndian.Uint64(c.Data)))
			a.Started = len(c.Data) == 9
			continue
		}
		if c.Number&SegmentCell != 0 || !a.seg.Has(protocol.Index(c.Number)) {
			continue // another segment's
		}
		if protocol.Index(c.Number) <= decided {
			stale = append(stale, protocol.Index(c.Number))
			continue
		}
		v, err := DecodeVote(c)
		if err != nil {
			return nil, err
		}
		a.Votes[v.Entry.Index], a.Top = v, max(a.Top, v.Entry.Index)
		promised = max(promised, v.Ballot)
	}
	a.Promise(promised, decided)
	return stale, nil
}

// firstWrong returns the vote in the lowest slot for which wrong is true; false if there is none.
func firstWrong(
	votes map[protocol.Index]Vote, wrong func(protocol.Index, *Vote) bool,
) (at protocol.Index, first Vote, found bool) {
	for i, v := range votes { // any order: the lowest slot counts
		if (!found || i < at) && wrong(i, &v) {
			at, first, found = i, v, true
		}
	}
	return at, first, found
}

// Check verifies the invariants.
func (a *Acceptor) Check(decided protocol.Index) error {
	if i, v, ok := firstWrong(a.Votes, func(i protocol.Index, v *Vote) bool {
		return v.Entry.Index != i || i > a.Top || v.Ballot > a.Promised || a.seg.After(i-1) != i
	}); ok {
		return fmt.Errorf("slot %d: a vote under %s for entry %d; promised is %s, the last slot %d", i, v.Ballot,
			v.Entry.Index, a.Promised, a.Top)
	}
	reach := max(a.Reach, decided)
	next := a.seg.After(reach)
	if v, ok := a.Votes[next]; a.Reach < decided || ok && v.Ballot == a.Promised || a.Ahead[next] {
		return fmt.Errorf("accepted under %s up to %d, says %d; decided are %d", a.Promised, a.seg.After(reach), a.Reach,
			decided)
	}
	return nil
}
