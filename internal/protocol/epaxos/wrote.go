package epaxos

import "github.com/braidlog/braid/protocol"

// Wrote reports whether EPaxos may have written a record. It has no hard state, and recognizes all of its cells.
func Wrote(r *protocol.Record) bool {
	switch r.Kind {
	case protocol.RecordState:
		return r.State == protocol.HardState{}
	case protocol.RecordCell:
		had := recovered{executed: Executed{index: &Index{}}, wide: wide{}}
		if r.Cell.Number == progressCell {
			_, err := decodeProgress(r.Cell.Data)
			return err == nil
		}
		return had.readCells(&protocol.Recovered{Cells: []protocol.Cell{r.Cell}}, 0) == nil
	}
	return true
}
