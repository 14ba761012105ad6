package check

// Quorums says which voters a protocol counts as a quorum, where these are no majorities. The zero value are
// majorities.
type Quorums struct {
	// Read voters elect, and Write voters decide; 0: a majority.
	Read, Write int
	// Rows, if > 0, puts voters into columns of at least so many, in turns. One of each column elect, and all of
	// one column decide.
	Rows int
}

// Reads reports whether those members for which has is true can elect.
func (q Quorums) Reads(v *Voters, has func(uint64) bool) bool {
	return v.all(func(voters []uint64) bool {
		if q.Rows == 0 {
			return count(voters, has) >= need(q.Read, len(voters))
		}
		for _, c := range q.columns(voters) {
			if count(c, has) == 0 {
				return false
			}
		}
		return true
	})
}

// Writes reports whether they can decide.
func (q Quorums) Writes(v *Voters, has func(uint64) bool) bool {
	return v.all(func(voters []uint64) bool {
		if q.Rows == 0 {
			return count(voters, has) >= need(q.Write, len(voters))
		}
		return q.column(voters, has)
	})
}

// column reports whether all of one column are among those for which has is true. Then no others can elect.
func (q Quorums) column(voters []uint64, has func(uint64) bool) bool {
	for _, c := range q.columns(voters) {
		if count(c, has) == len(c) {
			return true
		}
	}
	return false
}

func (q Quorums) columns(voters []uint64) [][]uint64 {
	columns := make([][]uint64, max(1, len(voters)/q.Rows))
	for i, id := range voters {
		columns[i%len(columns)] = append(columns[i%len(columns)], id)
	}
	return columns
}

// all reports whether something is so in both halves.
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
