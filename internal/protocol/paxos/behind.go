package paxos

import (
	"cmp"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Behind returns the entries that a member has accepted in slots after its log, with empty values in unknown slots
// between them. If no other member is left that knows what was decided, it is the best approximation.
func Behind(rec *protocol.Recovered) (out []protocol.Entry) {
	last := rec.Base.Index
	if n := len(rec.Entries); n > 0 {
		last = rec.Entries[n-1].Index
	}
	var accepted []protocol.Entry
	for _, c := range rec.Cells {
		if e, ok := Accepted(c); ok && e.Index > last {
			accepted = append(accepted, e)
		}
	}
	slices.SortFunc(accepted, func(a, b protocol.Entry) int { return cmp.Compare(a.Index, b.Index) })
	for i := range accepted {
		for last++; last < accepted[i].Index; last++ {
			e := protocol.Entry{Kind: protocol.EntryNoop}
			e.Seal(last, accepted[i].Term, make([]byte, protocol.HeadSize))
			out = append(out, e)
		}
		out = append(out, accepted[i])
	}
	return out
}
