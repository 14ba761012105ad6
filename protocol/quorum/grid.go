package quorum

import (
	"cmp"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Grid makes quorums of voters in columns. Quorums take enough voters of enough columns.
//
// The i-th voter is in column i modulo their number, so some columns may have one voter more than others. The order is
// by zone, and in a zone by id. So with Rows a zone is a row, if all zones have as many voters as there are columns:
// a column has a voter in each zone. With Zones, if voters have zones, a zone is a column instead. Quorums of the two
// phases intersect wherever voters are, but a zone without a column, or a column without a voter, counts for nothing:
// see [System.Fits].
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

// none is the column of voters in a zone without one.
const none = 1<<8 - 1

// place returns the column of each voter; nil: the i-th is in column i modulo their number.
func (g Grid) place(zones []string) []uint8 {
	if len(zones) == 0 || !g.on() {
		return nil
	}
	order := make([]int, len(zones))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(zones[a], zones[b]) })
	columns, zone := make([]uint8, len(zones)), 0
	for at, i := range order {
		if at > 0 && zones[i] != zones[order[at-1]] {
			zone++
		}
		c := zone
		if g.Rows > 0 {
			c = at % g.columns(len(zones))
		}
		columns[i] = uint8(min(c, none))
	}
	return columns
}

// column is the i-th of this many columns. in has the column of each voter, as place returns it. The caller provides
// the memory.
func column(space, ids []protocol.MemberID, in []uint8, i, columns int) []protocol.MemberID {
	space = space[:0]
	if in == nil {
		for ; i < len(ids); i += columns {
			space = append(space, ids[i])
		}
		return space
	}
	for at, id := range ids {
		if int(in[at]) == i {
			space = append(space, id)
		}
	}
	return space
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
func (g Grid) agreed(ids []protocol.MemberID, in []uint8, reached func(protocol.MemberID) uint64) uint64 {
	var space [16]protocol.MemberID
	var fixed [16]uint64
	has, columns := fixed[:0], g.columns(len(ids))
	for i := range columns {
		c := column(space[:], ids, in, i, columns)
		has = insert(has, agreed(c, g.need(len(c)), reached))
	}
	return highest(has, g.of(columns))
}

// count computes the result over the columns.
func (g Grid) count(ids []protocol.MemberID, in []uint8, answer func(protocol.MemberID) Answer) Result {
	var space [16]protocol.MemberID
	columns := g.columns(len(ids))
	var results [Lost + 1]int
	for i := range columns {
		c := column(space[:], ids, in, i, columns)
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
