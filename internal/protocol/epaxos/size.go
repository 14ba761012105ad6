package epaxos

// Size has the sizes of quorums for a number of voters.
type Size struct {
	Members int
	Failing int // f: this many may fail, and everything continues
	Slow    int // e: this many may fail, and the fast path continues
}

// SizeOf is the size of a cluster with a given number of voters: n ≥ max(2e+f-1, 2f+1), with the largest f, and then
// the largest e ≤ f.
func SizeOf(voters int) Size {
	f := (voters - 1) / 2
	return Size{voters, f, min(f, (voters-f+1)/2)}
}

// Quorum is the number of members that decide on the slow path, and recover.
func (s Size) Quorum() int { return s.Members - s.Failing }

// Fast is the number of members that decide on the fast path, including the proposer.
func (s Size) Fast() int { return s.Members - s.Slow }

// unchanged is the least number of members of a quorum with the first dependencies, if a command was decided on the
// fast path.
func (s Size) unchanged(quorum int) int { return quorum - s.Slow }

// rulesOutFast is a number of members: if more of a quorum have unchanged first dependencies, the commands that wait
// for this one were not decided on the fast path (rule 8).
func (s Size) rulesOutFast() int { return s.Members - s.Failing - s.Slow }
