package quorum

import (
	"math/bits"

	"github.com/braidlog/braid/protocol"
)

// Durable is the predicate of SPECS §2.1: with n voters of which any read can meet again
// after crashes, a body coded with k is safe if at least write of them hold it, and every
// read of them hold it whole once or have k distinct rows of it. whole is how many hold it
// whole, rows how many distinct rows the others hold. A majority reads and writes, except
// in RS-Raft (SPECS §2.7).
func Durable(n, read, write, k, whole, rows int) bool {
	return whole+rows >= write && (whole > n-read || whole+rows >= n-read+k)
}

// Rows is a set of distinct rows.
type Rows [(protocol.Rows + 63) / 64]uint64

// Add adds the row that a form holds, if it is one.
func (s *Rows) Add(f protocol.Form) {
	if r, ok := f.Row(); ok {
		s[r/64] |= 1 << (r % 64)
	}
}

// Len is how many rows there are.
func (s *Rows) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// Durable reports whether the predicate holds in both halves, where form tells what a
// voter's disk holds of the body. The set's Need is how many write, and read how many meet
// again; 0: a majority.
func (s Set) Durable(k, read int, form func(protocol.MemberID) protocol.Form) bool {
	return s.durable(s.Incoming, k, read, form) && (len(s.Outgoing) == 0 || s.durable(s.Outgoing, k, read, form))
}

func (s Set) durable(ids []protocol.MemberID, k, read int, form func(protocol.MemberID) protocol.Form) bool {
	whole, rows := 0, Rows{}
	for _, id := range ids {
		f := form(id)
		if f == protocol.FormWhole {
			whole++
		}
		rows.Add(f)
	}
	n := len(ids)
	if read == 0 {
		read = Size(n)
	}
	return n > 0 && Durable(n, read, s.need(n), k, whole, rows.Len())
}
