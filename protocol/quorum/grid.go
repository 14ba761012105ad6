package quorum

import "github.com/braidlog/braid/protocol"

// Grid makes quorums of voters in columns. The i-th voter, by id, is in column i modulo their number, so some columns
// may have one voter more than others. Quorums take enough voters of enough columns.
type Grid struct {
	// Rows is the least number of voters in a column. There are as many columns as that permits; with fewer voters
	// there is one. One voter of each column is a quorum across, and a whole column one along. 0: there are Zones.
	Rows  int
	Zones Zones
	// Across selects the quorums across columns, which elect, instead of those along them, which decide.
	Across bool
}

// Zones makes quorums of voters in a given number of zones, which are the columns (docs/internals/wpaxos.md). Those
// that decide tolerate the loss of Lost zones, and of Down voters in each of the others. Those that elect intersect
// them.
type Zones struct{ Count, Lost, Down int }

// on reports whether there is a grid.
func (g Grid) on() bool { return g.Rows > 0 || g.Zones.Count > 0 }

func (g Grid) columns(voters int) int {
	if g.Rows > 0 {
		return max(1, voters/g.Rows)
	}
	return g.Zones.Count
}

// column is the i-th of this many columns. The caller provides its memory.
func column(room, ids []protocol.MemberID, i, columns int) []protocol.MemberID {
	room = room[:0]
	for ; i < len(ids); i += columns {
		room = append(room, ids[i])
	}
	return room
}

// of is the number of columns that a quorum needs.
func (g Grid) of(columns int) int {
	switch {
	case g.Rows > 0 && g.Across:
		return columns
	case g.Rows > 0:
		return 1
	case g.Across:
		return columns - g.Zones.Lost
	}
	return g.Zones.Lost + 1
}

// need is the number of voters that a quorum needs in a column. An empty column is never won.
func (g Grid) need(column int) int {
	down := column - 1
	if g.Rows == 0 {
		down = min(g.Zones.Down, down)
	}
	if g.Across {
		return max(1, column-down)
	}
	return max(1, down+1)
}

// agreed is the value that enough columns have reached.
func (g Grid) agreed(ids []protocol.MemberID, reached func(protocol.MemberID) uint64) uint64 {
	var room [16]protocol.MemberID
	var fixed [16]uint64
	has, columns := fixed[:0], g.columns(len(ids))
	for i := range columns {
		c := column(room[:], ids, i, columns)
		has = insert(has, agreed(c, g.need(len(c)), reached))
	}
	return highest(has, g.of(columns))
}

// count computes the result over the columns.
func (g Grid) count(ids []protocol.MemberID, answer func(protocol.MemberID) Answer) Result {
	var room [16]protocol.MemberID
	columns := g.columns(len(ids))
	var results [Lost + 1]int
	for i := range columns {
		c := column(room[:], ids, i, columns)
		results[count(c, g.need(len(c)), answer)]++
	}
	switch need := g.of(columns); {
	case results[Won] >= need:
		return Won
	case results[Won]+results[Open] < need:
		return Lost
	}
	return Open
}
