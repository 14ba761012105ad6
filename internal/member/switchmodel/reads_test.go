package switchmodel

// promised: x promised a leader of the first instance to elect no other in this term.
func (s *cluster) promised(x int, term uint8) bool {
	for t := uint8(1); t < term; t++ {
		if has(s.promise[t], x) {
			return true
		}
	}
	return false
}

// promising: members promise the first instance's leader to elect no other, and promises end.
func (c *model) promising(s *cluster, yield successor) {
	for term := uint8(1); term <= c.terms[0]; term++ {
		if s.promise[term] != 0 {
			n := *s
			n.promise[term] = 0
			yield(do("expire", int(term)), &n)
		}
		l := int(s.net[0].leader[term]) - 1
		if l < 0 || s.m[l].in[0].role != leader || s.m[l].in[0].term != term {
			continue
		}
		for v := range s.m {
			if v != l && s.m[v].in[0].term == term && !has(s.promise[term], v) && c.takesPart(s, v, 0) &&
				!c.suspended(s, v, 0) {
				n := *s
				n.promise[term] |= 1<<v | 1<<l
				yield(do("promise", v, int(term)), &n)
			}
		}
	}
}

// reading: one read by index, in any instance (W5).
func (c *model) reading(s *cluster, yield successor) {
	switch s.read.phase {
	case none:
		for x := range s.m {
			in := s.m[x].at
			if s.m[x].in[in].role == leader && c.serves(s, x, in) && !c.suspended(s, x, in) {
				n := *s
				n.read = read{asked, in, uint8(x), s.m[x].in[in].term, c.place(s, x, in), s.n, 1 << x}
				if c.witnesses && in == 0 {
					n.read.point = s.m[x].in[0].n
				}
				yield(do("ask", x, int(in)), &n)
			}
		}
	case asked:
		c.confirming(s, yield)
		if c.answers(s) && s.read.point < s.read.need {
			n := *s
			n.fail(staleRead)
			yield(do("answer", int(s.read.by)), &n)
		}
	}
}

// confirming: a member says that it knows no later leader; as in ISS, it says how far it has accepted anything.
func (c *model) confirming(s *cluster, yield successor) {
	in := s.read.in
	witnessed := c.witnesses && in == 0
	for v := range s.m {
		r := &s.m[v].in[in]
		if has(s.read.from, v) || !witnessed && r.term != s.read.term || !c.takesPart(s, v, in) ||
			c.suspended(s, v, in) {
			continue
		}
		n := *s
		n.read.from |= 1 << v
		if witnessed && s.m[v].kept == 0 {
			n.read.point = max(n.read.point, r.n)
		}
		yield(do("confirm", v, int(in)), &n)
	}
}

// answers reports whether the read is answered now; otherwise it waits, or is asked again in the new instance.
func (c *model) answers(s *cluster) bool {
	x, in := int(s.read.by), s.read.in
	m, r := &s.m[x], &s.m[x].in[in]
	if c.witnesses && in == 0 {
		p := c.sealed(s, x, 0)
		waits := r.commit < s.read.point && m.at == 0 || p > 0 && p <= s.read.point && !c.sealedReads
		return !waits && (m.at == 0 || c.sealedReads) && s.quorum(x, in, s.read.from)
	}
	return r.role == leader && r.term == s.read.term && m.at == in && !c.suspended(s, x, in) &&
		s.quorum(x, in, s.read.from)
}

// laning: member 2's lane has one write, which is accepted when a majority has it.
func (c *model) laning(s *cluster, yield successor) {
	for x := range s.m {
		if !has(s.lane.acks, x) && !has(s.lane.fenced, x) && s.m[x].at == 0 && (x == 2 || has(s.lane.acks, 2)) {
			n := *s
			n.lane.acks |= 1 << x
			yield(do("lane", x), &n)
		}
		if s.m[x].at == 0 && s.m[x].in[0].role == leader {
			c.fencing(s, x, yield)
		}
	}
	if !s.lane.accepted && majority(s.lane.acks) {
		n := *s
		n.lane.accepted = true
		yield(do("accepted"), &n)
	}
}

// fencing: a member refuses the lane from now on, and tells the leader what it has of it.
func (c *model) fencing(s *cluster, x int, yield successor) {
	term := s.m[x].in[0].term
	for v := range s.m {
		if s.m[v].in[0].term == term && !has(s.lane.answered[term], v) && s.m[v].at == 0 {
			n := *s
			n.lane.fenced |= 1 << v
			n.lane.answered[term] |= 1 << v
			n.lane.reported[term] |= s.lane.acks >> v & 1
			yield(do("fence", v), &n)
		}
	}
	if has(s.lane.acks, x) && s.lane.reported[term] == 0 {
		n := *s
		n.lane.reported[term] = 1
		yield(do("signal", x), &n)
	}
}
