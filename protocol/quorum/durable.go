package quorum

import (
	"math/bits"

	"github.com/braidlog/braid/protocol"
)

// Durable is the predicate of docs/internals/craft.md, 2.1: any read of n voters may be the survivors of crashes. A
// body coded with k is safe if at least write voters hold it, and every read voters have one whole copy or k distinct
// rows of it. whole is the number of whole copies, rows that of distinct rows on the others. A majority reads and
// writes, except in RS-Raft (docs/internals/craft.md, 2.7).
func Durable(n, read, write, k, whole, rows int) bool {
	return whole+rows >= write && Kept(n, read, k, whole, rows)
}

// Kept is the remaining condition for a committed body: every read voters can make it whole. All of them know the
// entry.
func Kept(n, read, k, whole, rows int) bool {
	return whole > n-read || whole+rows >= n-read+k
}

// Rows is a set of distinct rows.
type Rows [(protocol.Rows + 63) / 64]uint64

// Add adds the row that a form holds, if it holds one.
func (s *Rows) Add(f protocol.Form) {
	if r, ok := f.Row(); ok {
		s[r/64] |= 1 << (r % 64)
	}
}

// Len is the number of rows.
func (s *Rows) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// Durable reports whether the predicate holds in both halves, where form is the form of the body on a voter's disk.
// The set's Need is the number of voters that write, and read the number that survive; 0: a majority.
func (s Set) Durable(k, read int, form func(protocol.MemberID) protocol.Form) bool {
	durable := func(ids []protocol.MemberID) bool {
		whole, rows := holders(ids, form)
		n := len(ids)
		return n > 0 && Durable(n, reading(read, n), s.need(n), k, whole, rows)
	}
	return durable(s.Incoming) && (len(s.Outgoing) == 0 || durable(s.Outgoing))
}

// Kept reports the same of a committed body. While joint one half is enough: every deciding set includes a majority
// of either.
func (s Set) Kept(k, read int, form func(protocol.MemberID) protocol.Form) bool {
	kept := func(ids []protocol.MemberID) bool {
		whole, rows := holders(ids, form)
		n := len(ids)
		return n > 0 && Kept(n, reading(read, n), k, whole, rows)
	}
	return kept(s.Incoming) || kept(s.Outgoing)
}

func reading(read, n int) int {
	if read > 0 {
		return read
	}
	return Size(n)
}

// holders counts the whole copies of the body, and the distinct rows on the others.
func holders(ids []protocol.MemberID, form func(protocol.MemberID) protocol.Form) (int, int) {
	whole, rows := 0, Rows{}
	for _, id := range ids {
		f := form(id)
		if f == protocol.FormWhole {
			whole++
		}
		rows.Add(f)
	}
	return whole, rows.Len()
}
