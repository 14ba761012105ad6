package quorum

import "github.com/braidlog/braid/protocol"

// Grid makes quorums of voters that stand in columns. There are as many columns as can have Rows voters each;
// with fewer voters there is one. The i-th voter, by id, stands in column i modulo their number, so some
// columns may have one voter more than others.
type Grid struct {
	// Rows is how many voters stand in a column at least; 0: there is no grid.
	Rows int
	// Across: one voter of each column is a quorum. Else all of one column are.
	Across bool
}

func (g Grid) columns(voters int) int { return max(1, voters/g.Rows) }

// column is the i-th of so many columns. The caller gives it room.
func column(room, ids []protocol.MemberID, i, columns int) []protocol.MemberID {
	room = room[:0]
	for ; i < len(ids); i += columns {
		room = append(room, ids[i])
	}
	return room
}

// need is how many of a column's voters are asked for. A column without any is never won.
func (g Grid) need(column int) int {
	if g.Across {
		return 1
	}
	return max(1, column)
}

// agreed is what all columns have reached, or the best one.
func (g Grid) agreed(ids []protocol.MemberID, reached func(protocol.MemberID) uint64) (v uint64) {
	var room [16]protocol.MemberID
	columns := g.columns(len(ids))
	for i := range columns {
		c := column(room[:], ids, i, columns)
		has := agreed(c, g.need(len(c)), reached)
		switch {
		case i == 0:
			v = has
		case g.Across:
			v = min(v, has)
		default:
			v = max(v, has)
		}
	}
	return v
}

// count adds up how the columns stand: all of them have to be won, or one.
func (g Grid) count(ids []protocol.MemberID, answer func(protocol.MemberID) Answer) Result {
	var room [16]protocol.MemberID
	columns := g.columns(len(ids))
	var results [Lost + 1]int
	for i := range columns {
		c := column(room[:], ids, i, columns)
		results[count(c, g.need(len(c)), answer)]++
	}
	need := 1
	if g.Across {
		need = columns
	}
	switch {
	case results[Won] >= need:
		return Won
	case results[Won]+results[Open] < need:
		return Lost
	}
	return Open
}
