package check

import (
	"cmp"
	"maps"
	"slices"
)

// Quorums are the quorums of a protocol, if they are not majorities. The zero value is majorities.
type Quorums struct {
	// Read voters elect, and Write voters decide; 0: a majority.
	Read, Write int
	// Rows, if > 0, puts voters into columns of at least this many, round-robin in the order of their zones. One voter of
	// each column elects, and all of one column decide.
	Rows int
	// Zones, if > 0, is the number of zones. Voters without a zone are put into them round-robin. All but Lost zones
	// elect, with all but Down voters of each. One zone more than Lost decides, with one voter more than Down in each. At
	// least one voter of each zone is needed.
	Zones, Lost, Down int
}

// grid reports whether voters are in columns or zones.
func (q Quorums) grid() bool { return q.Rows > 0 || q.Zones > 0 }

// Reads reports whether those members for which has is true can elect.
func (q Quorums) Reads(v *Voters, has func(uint64) bool) bool {
	return v.all(func(h half) bool { return q.elect(h, has) })
}

func (q Quorums) elect(h half, has func(uint64) bool) bool {
	switch {
	case q.Zones > 0:
		return q.zones(h,
			func(zone []uint64, down int) bool { return count(zone, has) >= len(zone)-down }) >= q.Zones-q.Lost
	case q.Rows == 0:
		return count(h.voters, has) >= need(q.Read, len(h.voters))
	}
	for _, c := range q.columns(h) {
		if count(c, has) == 0 {
			return false
		}
	}
	return true
}

// Writes reports whether they can decide.
func (q Quorums) Writes(v *Voters, has func(uint64) bool) bool {
	return v.all(func(h half) bool {
		switch {
		case q.Zones > 0:
			return q.zones(h, func(zone []uint64, down int) bool { return count(zone, has) > down }) > q.Lost
		case q.Rows == 0:
			return count(h.voters, has) >= need(q.Write, len(h.voters))
		}
		for _, c := range q.columns(h) {
			if count(c, has) == len(c) {
				return true
			}
		}
		return false
	})
}

// zones is the number of zones for which is is true, if a given number of voters may be down.
func (q Quorums) zones(h half, is func(zone []uint64, down int) bool) (n int) {
	for _, zone := range q.columns(h) {
		if len(zone) > 0 && is(zone, min(q.Down, len(zone)-1)) {
			n++
		}
	}
	return n
}

// columns are the zones, or the columns of a grid.
func (q Quorums) columns(h half) [][]uint64 {
	if q.Zones == 0 {
		byZone := slices.Clone(h.voters)
		slices.SortFunc(byZone, func(a, b uint64) int {
			return cmp.Or(cmp.Compare(h.zones[a], h.zones[b]), cmp.Compare(a, b))
		})
		return inTurns(byZone, max(1, len(byZone)/q.Rows))
	}
	if len(h.zones) == 0 {
		return inTurns(h.voters, q.Zones)
	}
	zones := map[string][]uint64{}
	for _, id := range h.voters {
		zones[h.zones[id]] = append(zones[h.zones[id]], id)
	}
	columns := make([][]uint64, 0, len(zones))
	for _, name := range slices.Sorted(maps.Keys(zones)) {
		columns = append(columns, zones[name])
	}
	return columns
}

// inTurns puts voters into a given number of columns, round-robin.
func inTurns(voters []uint64, n int) [][]uint64 {
	columns := make([][]uint64, n)
	for i, id := range voters {
		columns[i%n] = append(columns[i%n], id)
	}
	return columns
}

// all reports whether is is true for both halves.
func (v *Voters) all(is func(half) bool) bool {
	for _, h := range v.halves() {
		if !is(h) {
			return false
		}
	}
	return true
}

func need(set, voters int) int {
	if set > 0 {
		return set
	}
	return voters/2 + 1
}

func count(members []uint64, has func(uint64) bool) (n int) {
	for _, m := range members {
		if has(m) {
			n++
		}
	}
	return n
}
