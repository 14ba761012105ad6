package epaxos

// Size is of how many voters how many are enough.
type Size struct {
	Members int
	Failing int // f: this many may fail, and everything continues
	Slow    int // e: this many may fail, and the fast path continues
}

// SizeOf is the size of a cluster with a given number of voters: n ≥ max(2e+f-1, 2f+1), with f as large as can be, and
// then e, but not above f.
func SizeOf(voters int) Size {
	f := (voters - 1) / 2
	return Size{voters, f, min(f, (voters-f+1)/2)}
}

// Quorum is how many decide on the slow path, and recover.
func (s Size) Quorum() int { return s.Members - s.Failing }

// Fast is how many decide on the fast path, with the proposer.
func (s Size) Fast() int { return s.Members - s.Slow }

// unchanged is how many of a quorum have the first dependencies at least, if they were decided on the fast path.
func (s Size) unchanged(quorum int) int { return quorum - s.Slow }

// telling is how many in a quorum have unchanged first dependencies if that tells others, who wait, that
// their command was not decided on the fast path: more than this (rule 8).
func (s Size) telling() int { return s.Members - s.Failing - s.Slow }
