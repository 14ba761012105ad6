package epaxos

import (
	"encoding/binary"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// An entry of the log has in its head the number of its commands of each column, in bytes of the member, of the
// incarnation and of the low number, which have no other meaning in a group. The last byte is the format:
//
//   - below 0x80: the counts of the first eight columns;
//   - from 0x80 on: that many columns, each with its count;
//   - 0xff: there are more columns. The entry is wide: its counts are in a cell next to the log.
//
// So clusters of up to eight voters have no wide entries.

// MaxVoters limits the voters. For that many, the state of executed commands fits into a snapshot's section.
const MaxVoters = 128

const (
	headBytes   = 24
	headColumns = 8 // columns with counts in the first format
	countBytes  = 3
	headPairs   = 5 // columns with counts
	pairMark    = 0x80
	wideMark    = 0xff
)

type head [headBytes]byte

// countsOf is the number of a component's commands in each column.
func countsOf(c Component) Vector {
	counts := make(Vector, 0, headColumns)
	for _, id := range c {
		counts = counts.with(ID{id.Column, counts.At(id.Column) + 1})
	}
	return counts
}

// headOf is the head of an entry with these counts, or the mark of a wide entry.
func headOf(counts Vector) (h head) {
	if len(counts) <= headColumns {
		for i, n := range counts {
			putCount(h[i*countBytes:], n)
		}
		return h
	}
	pairs := 0
	for i, n := range counts {
		switch {
		case n == 0:
		case pairs == headPairs:
			return head{headBytes - 1: wideMark}
		default:
			at := h[pairs*(1+countBytes):]
			at[0] = byte(i + 1)
			putCount(at[1:], n)
			pairs++
		}
	}
	h[headBytes-1] = pairMark + byte(pairs)
	return h
}

// counts is the inverse of headOf. ok: the counts fitted.
func (h *head) counts() (counts Vector, ok bool) {
	mark := h[headBytes-1]
	switch {
	case mark < pairMark:
		for i := range headColumns {
			if n := count(h[i*countBytes:]); n > 0 {
				counts = counts.with(ID{Column(i + 1), n})
			}
		}
	case mark <= pairMark+headPairs:
		for i := range int(mark - pairMark) {
			at := h[i*(1+countBytes):]
			if at[0] == 0 {
				return nil, false // no member has written this
			}
			counts = counts.with(ID{at[0], count(at[1:])})
		}
	default:
		return nil, false
	}
	return counts, true
}

func putCount(b []byte, n uint64) { b[0], b[1], b[2] = byte(n), byte(n>>8), byte(n>>16) }

func count(b []byte) uint64 { return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 }

// seal sets an entry's place. Its index is that in this member's log, and the term depends on what was executed up to
// there.
func seal(e protocol.Entry, index protocol.Index, term protocol.Term, counts Vector) protocol.Entry {
	h, le := headOf(counts), binary.LittleEndian
	e.ID.Session = protocol.Session{Member: protocol.MemberID(le.Uint64(h[0:])), Incarnation: le.Uint64(h[8:])}
	e.Low = le.Uint64(h[16:])
	e.Seal(index, term, make([]byte, protocol.HeadSize))
	return e
}

// isWide reports whether the counts of an entry of the log are in a cell.
func isWide(e *protocol.Entry) bool { return e.Low>>56 == wideMark }

// narrow returns the counts in an entry's head, whose payload need not be available. ok: the entry is not wide.
func narrow(e *protocol.Entry) (counts Vector, ok bool) {
	var h head
	le := binary.LittleEndian
	le.PutUint64(h[0:], uint64(e.ID.Session.Member))
	le.PutUint64(h[8:], e.ID.Session.Incarnation)
	le.PutUint64(h[16:], e.Low)
	return h.counts()
}

// wide has the counts of the wide entries of the log, by index.
type wide map[protocol.Index]Vector

// advance adds to a vector the commands of an entry of the log. It modifies v, or a longer copy.
func (w wide) advance(v Vector, e *protocol.Entry) Vector {
	counts, ok := narrow(e)
	if !ok {
		counts = w[e.Index]
	}
	for i, n := range counts {
		if c := Column(i + 1); n > 0 {
			v = v.with(ID{c, v.At(c) + n})
		}
	}
	return v
}

// keepWide stores the counts of an entry that has just got its place, if it is wide.
func (s *EPaxos) keepWide(e *protocol.Entry, counts Vector) {
	if !isWide(e) {
		return
	}
	number := wideCells + uint64(e.Index)
	if s.cfg.Mutant == MutantForgetWide {
		number--
	}
	s.wide[e.Index] = counts
	s.cell(number, appendVector(nil, counts))
	// A lost entry may have been at this index.
	s.disk.gone = slices.DeleteFunc(s.disk.gone, func(n uint64) bool { return n == number })
}

// dropWide drops the counts of an entry that the log no longer has.
func (s *EPaxos) dropWide(at protocol.Index) {
	if _, is := s.wide[at]; is {
		delete(s.wide, at)
		s.disk.gone = append(s.disk.gone, wideCells+uint64(at))
	}
}
