package lane

import (
	"cmp"
	"encoding/binary"
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
		le := binary.LittleEndian
		lane := protocol.Lane{Member: protocol.MemberID(le.Uint64(c.Data)), Incarnation: le.Uint64(c.Data[8:])}
		e, rest, err := protocol.DecodeEntry(c.Data[cellHead:], true)
		if err == nil && e.BodySize > 0 {
			_, err = e.DecodeBody(rest)
		}
		if err == nil {
			all = append(all, batch{lane, e})
		}
	}
	slices.SortFunc(all, func(a, b batch) int {
		return cmp.Or(cmp.Compare(a.lane.Member, b.lane.Member), cmp.Compare(a.lane.Incarnation, b.lane.Incarnation),
			cmp.Compare(a.e.Index, b.e.Index))
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
