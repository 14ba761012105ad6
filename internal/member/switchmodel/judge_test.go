package switchmodel

// fault is what a step did wrong; judge adds what is wrong in a state.
type fault uint8

const (
	right fault = iota
	twoEntries
	cutDecided
	twoLeaders
	staleRead
	staleProfile
	wentBack
)

func (f fault) String() string {
	return [...]string{"", "P2: two entries at a place", "P3: a follower cuts what is decided",
		"P7: two leaders in a term", "P4: a read misses an acknowledged write",
		"P1: a seal of another version counts", "P3: a snapshot takes back what is decided"}[f]
}

func (s *cluster) fail(f fault) {
	if s.wrong == right {
		s.wrong = f
	}
}

// learn compares what x knows to be decided with what any member ever knew.
func (c *model) learn(s *cluster, x int) {
	at := uint8(0)
	for in := range s.m[x].at + 1 {
		r := &s.m[x].in[in]
		p, n := c.sealed(s, x, in), r.commit
		if p > 0 {
			n = p
		}
		for i := range n {
			s.see(at+i, r.log[i])
		}
		if p > 0 && s.p[in] == 0 {
			s.p[in] = at + p
		}
		at += n
	}
}

func (s *cluster) see(at uint8, e entry) {
	switch {
	case at < s.n && s.known[at] != e:
		s.fail(twoEntries)
	case at >= s.n:
		s.known[at], s.n = e, at+1
	}
}

// judge describes what is wrong; "": nothing.
func (c *model) judge(s *cluster) string {
	if s.wrong != right {
		return s.wrong.String()
	}
	if s.p[0] > 0 {
		signalled, copies := false, 0
		for i, e := range s.known[:s.n] {
			signalled = signalled || e.kind() == signal && uint8(i) < s.p[0]
			if e.kind() == repeated {
				copies++
			}
		}
		if s.lane.accepted && !signalled {
			return "P3: an accepted write is not before S"
		}
		if c.renumbers && copies > 1 {
			return "P5: a command took effect twice"
		}
	}
	if c.leases {
		return c.judgeLeases(s)
	}
	return ""
}

func (c *model) judgeLeases(s *cluster) string {
	for x := range s.m {
		m, r := &s.m[x], &s.m[x].in[0]
		reads := r.role == leader && (m.at == 0 && !c.suspended(s, x, 0) || c.sealedReads) && c.serves(s, x, 0)
		if reads && s.quorum(x, 0, s.promise[r.term]|1<<x) && c.place(s, x, 0) < s.n {
			return "P4: a read by lease misses an acknowledged write"
		}
	}
	return ""
}

// serves: the leader has decided something in its own term; the first leader has all that is before p.
func (c *model) serves(s *cluster, x int, in uint8) bool {
	r := &s.m[x].in[in]
	return in > 0 && r.term == 1 && !c.elects || r.commit > 0 && r.log[r.commit-1].term() == r.term
}
