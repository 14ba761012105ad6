package switchmodel

// normalize removes what has no effect any more, so that fewer states differ.
func (c *model) normalize(s *cluster) bool {
	if s.wrong != right {
		return false
	}
	for in := range uint8(instances) {
		if in > 0 && c.bornTwice {
			continue
		}
		for term := uint8(1); term <= lastTerm; term++ {
			c.forgetSaid(s, in, term)
		}
	}
	for x := range s.m {
		m := &s.m[x]
		for in := range m.at {
			if p := c.sealed(s, x, in); m.rec > in && c.closed() && p > 0 {
				r := &m.in[in]
				r.term, r.vote, r.role, r.n, r.durable, r.commit = 0, 0, follower, p, p, p
				clear(r.log[p:])
			}
		}
	}
	return true
}

// closed: what a member was in an instance before the one of its last first record has no effect.
func (c *model) closed() bool {
	return !c.forgets && !c.oldAnswers && !c.sealedReads && !c.beginAppended && !c.membersOfTail
}

// forgetSaid: votes count for candidates, acknowledgements for leaders that have not decided yet, and a leader's log
// for members that can still receive it.
func (c *model) forgetSaid(s *cluster, in, term uint8) {
	net := &s.net[in]
	for v, to := range net.votes[term] {
		if to == 0 {
			continue
		}
		if r := &s.m[to-1].in[in]; r.role != candidate || r.term != term {
			net.votes[term][v] = 0
		}
	}
	l := int(net.leader[term]) - 1
	if l < 0 {
		return
	}
	if c.witnesses && in == 0 {
		c.forgetAcks(s, term)
		return
	}
	r := &s.m[l].in[in]
	leads := r.role == leader && r.term == term && (s.m[l].at <= in || c.oldAnswers)
	for i := range net.acks[term] {
		if !leads || uint8(i) < r.commit {
			net.acks[term][i] = 0
		}
	}
	deaf := !leads
	for x := range s.m {
		m := &s.m[x]
		deaf = deaf && (m.in[in].term > term || x == l || m.rec > in && c.closed())
	}
	if deaf {
		net.log[term], net.n[term], net.commit[term] = log{}, 0, 0
	}
}

// forgetAcks: where each member counts itself, acknowledgements count until all know the entry to be decided.
func (c *model) forgetAcks(s *cluster, term uint8) {
	net := &s.net[0]
	for i := range net.acks[term] {
		known := c.crashes == s.crashes
		for x := range s.m {
			m := &s.m[x]
			known = known && (m.in[0].commit > uint8(i) || m.rec > 0 && c.closed())
		}
		if known || net.log[term][i].term() != term {
			net.acks[term][i] = 0
		}
	}
}
