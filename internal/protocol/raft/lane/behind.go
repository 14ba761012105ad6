package lane

import (
	"cmp"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Readable reports whether a cell is one that this package writes.
func Readable(c protocol.Cell) bool {
	if c.Number == fenceCell || len(c.Data) < cellHead {
		return c.Number == fenceCell && len(c.Data) == cellHead+8
	}
	_, _, err := protocol.DecodeEntry(c.Data[cellHead:], false)
	return err == nil
}

// Behind are the batches of lanes that a disk holds, as entries behind its log, in the order of each lane. For a member
// that no one can confirm any more they are what it knows of writes that were accepted and not put into the log. Those
// that were put there are among them too; members recognise them by their numbers.
func Behind(rec *protocol.Recovered) (out []protocol.Entry) {
	type batch struct {
		lane protocol.Lane
		e    protocol.Entry
	}
	var all []batch
	for _, c := range rec.Cells {
		if c.Number == fenceCell || len(c.Data) < cellHead {
			continue
		}
		if lane, e, _, err := decodeCell(c.Data); err == nil {
			all = append(all, batch{lane, e})
		}
	}
	slices.SortFunc(all, func(a, b batch) int {
		return cmp.Or(compareLanes(a.lane, b.lane), cmp.Compare(a.e.Index, b.e.Index))
	})
	index, term := rec.Base.Index, max(rec.Base.Term, 1)
	if n := len(rec.Entries); n > 0 {
		index, term = rec.Entries[n-1].Index, rec.Entries[n-1].Term
	}
	for i := range all {
		index++
		all[i].e.Seal(index, term, make([]byte, protocol.HeadSize))
		out = append(out, all[i].e)
	}
	return out
}
