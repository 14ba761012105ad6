package multipaxos

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/braidlog/braid/protocol"
)

// vote is what an acceptor has accepted in a slot.
type vote struct {
	ballot Ballot
	entry  protocol.Entry
}

// acceptor is what a member promised and accepted in a segment. All of it is on disk before anybody
// hears of it: the promise in a cell of its own, and each vote in the cell of its slot.
type acceptor struct {
	seg segment
	// promised: nothing is accepted, and nobody is promised anything, under a lower ballot. It never falls.
	promised Ballot
	// votes are those in slots that are not known to be decided, and perhaps in some that are: until the
	// disk is told that these are decided, their cells are what it has of them. top is at least the last
	// of these slots; 0: there was never one. The ballot of a vote is never above promised.
	votes map[protocol.Index]vote
	top   protocol.Index
	// ahead are slots that are known to be decided although slots of the segment before them are not.
	ahead map[protocol.Index]bool
	// reach: up to here every slot of the segment is known to be decided, or has a vote under promised.
	reach protocol.Index
	// started: the segment's leader may have proposed under ballot 0, in this life or in an earlier one.
	started bool
	// older: votes under older ballots count too ([MutantCountOlderBallot]).
	older bool
}

func newAcceptor(seg segment, decided protocol.Index) acceptor {
	return acceptor{seg: seg, votes: map[protocol.Index]vote{}, reach: decided}
}

// promise raises what is promised. decided is up to where all slots are known to be decided.
func (a *acceptor) promise(b Ballot, decided protocol.Index) {
	a.promised, a.reach = b, decided
	a.extend(decided)
}

// accept notes a vote under what is promised, and returns it.
func (a *acceptor) accept(e *protocol.Entry, decided protocol.Index) vote {
	v := vote{a.promised, *e}
	a.votes[e.Index] = v
	a.top = max(a.top, e.Index)
	a.extend(decided)
	return v
}

// extend moves reach on.
func (a *acceptor) extend(decided protocol.Index) {
	a.reach = max(a.reach, decided)
	for next := a.seg.after(a.reach); ; next = a.seg.after(next) {
		v, ok := a.votes[next]
		if voted := ok && (v.ballot == a.promised || a.older); !voted && !a.ahead[next] {
			return
		}
		a.reach = next
	}
}

// holds reports whether the disk has the body of an entry, because a vote brought it.
func (a *acceptor) holds(e *protocol.Entry) bool {
	v, ok := a.votes[e.Index]
	return ok && v.entry.Term == e.Term && v.entry.ID == e.ID
}

// holdsNow reports whether there is a vote for an entry under what is promised.
func (a *acceptor) holdsNow(e *protocol.Entry) bool {
	return a.holds(e) && a.votes[e.Index].ballot == a.promised
}

// encodePromise returns the bytes of the promise's cell: the ballot, and whether the segment was started if it was.
func (a *acceptor) encodePromise() protocol.Cell {
	b := binary.LittleEndian.AppendUint64(nil, uint64(a.promised))
	if a.started {
		b = append(b, 1)
	}
	return protocol.Cell{Number: a.seg.promiseCell(), Data: b}
}

// cell returns the cell of a vote: the ballot, and the entry as its head and payload. A body lies beside
// it.
func (v *vote) cell() protocol.Cell {
	b := make([]byte, 0, 8+protocol.HeadSize+len(v.entry.Payload))
	b = binary.LittleEndian.AppendUint64(b, uint64(v.ballot))
	b = append(b, v.entry.Head()...)
	return protocol.Cell{Number: uint64(v.entry.Index), Data: append(b, v.entry.Payload...)}
}

func corruptCell(c *protocol.Cell, detail string) error {
	return &protocol.CorruptError{What: "cell", Detail: fmt.Sprintf("%d: %s", c.Number, detail)}
}

// decodeVote reads what cell wrote.
func decodeVote(c protocol.Cell) (v vote, err error) {
	b := bytes.Clone(c.Data)
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
	return vote{Ballot(binary.LittleEndian.Uint64(b)), e}, nil
}

// Accepted is the entry that a cell holds, whose body the disk must hold too; false if there is none.
func Accepted(c protocol.Cell) (protocol.Entry, bool) {
	if c.Number == all.promiseCell() || c.Number&noSlot != 0 {
		return protocol.Entry{}, false
	}
	v, err := decodeVote(c)
	return v.entry, err == nil
}

// load takes an acceptor's cells from the disk. It returns the slots of those that are out of date:
// these slots are decided, and the cells were about to be dropped.
func (a *acceptor) load(cells []protocol.Cell, decided protocol.Index) (stale []protocol.Index, err error) {
	promised := Ballot(0)
	for _, c := range cells {
		if c.Number == a.seg.promiseCell() {
			if len(c.Data) < 8 || len(c.Data) > 9 {
				return nil, corruptCell(&c, fmt.Sprintf("%d bytes", len(c.Data)))
			}
			promised = max(promised, Ballot(binary.LittleEndian.Uint64(c.Data)))
			a.started = len(c.Data) == 9
			continue
		}
		if c.Number&noSlot != 0 || !a.seg.has(protocol.Index(c.Number)) {
			continue // another segment's
		}
		if protocol.Index(c.Number) <= decided {
			stale = append(stale, protocol.Index(c.Number))
			continue
		}
		v, err := decodeVote(c)
		if err != nil {
			return nil, err
		}
		a.votes[v.entry.Index], a.top = v, max(a.top, v.entry.Index)
		promised = max(promised, v.ballot)
	}
	a.promise(promised, decided)
	return stale, nil
}

// firstWrong is the vote in the lowest slot where something is wrong; false if nothing is.
func firstWrong(votes map[protocol.Index]vote, wrong func(protocol.Index, *vote) bool) (at protocol.Index, first vote, found bool) {
	for i, v := range votes { // any order: the lowest slot counts
		if (!found || i < at) && wrong(i, &v) {
			at, first, found = i, v, true
		}
	}
	return at, first, found
}

// check verifies the invariants.
func (a *acceptor) check(decided protocol.Index) error {
	if i, v, ok := firstWrong(a.votes, func(i protocol.Index, v *vote) bool {
		return v.entry.Index != i || i > a.top || v.ballot > a.promised || a.seg.after(i-1) != i
	}); ok {
		return fmt.Errorf("slot %d: a vote under %s for entry %d; promised is %s, the last slot %d", i, v.ballot, v.entry.Index, a.promised, a.top)
	}
	reach := max(a.reach, decided)
	next := a.seg.after(reach)
	if v, ok := a.votes[next]; a.reach < decided || ok && v.ballot == a.promised || a.ahead[next] {
		return fmt.Errorf("accepted under %s up to %d, says %d; decided are %d", a.promised, a.seg.after(reach), a.reach, decided)
	}
	return nil
}
