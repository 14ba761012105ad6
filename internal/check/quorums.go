package check

// Quorums are the quorums of a protocol, if they are not majorities. The zero value is majorities.
type Quorums struct {
	// Read voters elect, and Write voters decide; 0: a majority.
	Read, Write int
	// Rows, if > 0, puts voters into columns of at least this many, round-robin. One voter of each column elects, and
	// all of one column decide.
	Rows int
	// Zones, if > 0, puts voters into a given number of zones, round-robin. All but Lost zones elect, with all but Down
	// voters of each. One zone more than Lost decides, with one voter more than Down in each. At least one voter of each
	// zone is needed.
	Zones, Lost, Down int
}

// grid reports whether voters are in columns or zones.
func (q Quorums) grid() bool { return q.Rows > 0 || q.Zones > 0 }

// Reads reports whether those members for which has is true can elect.
func (q Quorums) Reads(v *Voters, has func(uint64) bool) bool {
	return v.all(func(voters []uint64) bool { return q.elect(voters, has) })
}

func (q Quorums) elect(voters []uint64, has func(uint64) bool) bool {
	switch {
	case q.Zones > 0:
		return q.zones(voters,
			func(zone []uint64, down int) bool { return count(zone, has) >= len(zone)-down }) >= q.Zones-q.Lost
	case q.Rows == 0:
		return count(voters, has) >= need(q.Read, len(voters))
	}
	for _, c := range columns(voters, max(1, len(voters)/q.Rows)) {
		if count(c, has) == 0 {
			return false
		}
	}
	return true
}

// Writes reports whether they can decide.
func (q Quorums) Writes(v *Voters, has func(uint64) bool) bool {
	return v.all(func(voters []uint64) bool {
		switch {
		case q.Zones > 0:
			return q.zones(voters, func(zone []uint64, down int) bool { return count(zone, has) > down }) > q.Lost
		case q.Rows == 0:
			return count(voters, has) >= need(q.Write, len(voters))
		}
		for _, c := range columns(voters, max(1, len(voters)/q.Rows)) {
			if count(c, has) == len(c) {
				return true
			}
		}
		return false
	})
}

// zones is the number of zones for which is is true, if a given number of voters may be down.
func (q Quorums) zones(voters []uint64, is func(zone []uint64, down int) bool) (n int) {
	for _, zone := range columns(voters, q.Zones) {
		if len(zone) > 0 && is(zone, min(q.Down, len(zone)-1)) {
			n++
		}
	}
	return n
}

// columns puts voters into a given number of columns, round-robin.
func columns(voters []uint64, n int) [][]uint64 {
	columns := make([][]uint64, n)
	for i, id := range voters {
		columns[i%n] = append(columns[i%n], id)
	}
	return columns
}

// all reports whether is is true for both halves.
func (v *Voters) all(is func([]uint64) bool) bool {
	for _, voters := range v.halves() {
		if !is(voters) {
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
