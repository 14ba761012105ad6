package leasemodel

// campaign: a member asks whether it would be elected.
func (c *model) campaign(s *state, i int) {
	m := &s.m[i]
	m.role, m.lead, m.ballots = precandidate, 0, 1<<i
	c.ask(s, i, message{kind: preVote, term: m.term + 1})
	c.tally(s, i)
}

// elect: a member enters a new term as its candidate.
func (c *model) elect(s *state, i int, forced bool) {
	m := &s.m[i]
	m.term++
	m.vote, m.lead, m.role, m.ballots = uint8(i)+1, 0, candidate, 1<<i
	c.ask(s, i, message{kind: vote, term: m.term, forced: forced})
	c.tally(s, i)
}

func (c *model) ask(s *state, i int, x message) {
	m := &s.m[i]
	stage, _ := m.stage()
	x.from, x.index, x.extra = uint8(i), m.last, m.lastTerm()
	for p := range members {
		if p != i && c.votes(stage, p) {
			x.to = uint8(p)
			c.send(s, x)
		}
	}
}

func (c *model) tally(s *state, i int) {
	m := &s.m[i]
	stage, _ := m.stage()
	switch {
	case !c.enough(stage, m.ballots):
	case m.role == precandidate && m.term < c.terms:
		c.elect(s, i, false)
	case m.role == candidate:
		c.lead(s, i)
	}
}

// lead: the term's leader appends its first entry.
func (c *model) lead(s *state, i int) {
	m := &s.m[i]
	m.role, m.lead, m.ballots = leader, uint8(i)+1, 0
	m.handed, m.match, m.round = false, [members]uint8{}, 0
	for p := range m.confirmed {
		m.confirmed[p] = never
	}
	s.logs[m.term] = m.log
	m.first = m.last + 1
	s.append(i, 0)
	c.advance(s, i)
}

// append adds an entry to a leader's log: a plain one, or one with which a configuration begins.
func (s *state) append(i int, config uint8) bool {
	m := &s.m[i]
	if m.last == slots {
		return false
	}
	m.log[m.last] = m.term | config
	s.logs[m.term][m.last] = m.term | config
	m.last++
	return true
}

// advance decides what a leader may, lets it resign if it was removed, and serves the read.
func (c *model) advance(s *state, i int) {
	m := &s.m[i]
	stage, at := m.stage()
	for k := m.last; k > m.commit && termOf(m.log[k-1]) == m.term; k-- {
		who := uint8(1) << i
		for p, n := range m.match {
			if n >= k {
				who |= 1 << p
			}
		}
		if c.enough(stage, who) {
			m.commit = k
			s.acked = max(s.acked, k)
			break
		}
	}
	if m.role == leader && !c.votes(stage, i) && at <= m.commit {
		c.resign(s, i, stage)
	}
	c.serve(s, i)
}

// resign: a leader that is removed tells the member that matches furthest to stand.
func (c *model) resign(s *state, i int, stage uint8) {
	m, best := &s.m[i], -1
	for p := range members {
		if p != i && c.votes(stage, p) && (best < 0 || m.match[p] > m.match[best]) {
			best = p
		}
	}
	c.send(s, message{kind: timeoutNow, from: uint8(i), to: uint8(best), term: m.term})
	m.follow(m.term, 0)
}

// reads reports whether a member was asked for the read, and it waits.
func (s *state) reads(i uint8) bool {
	return s.read.state == asked && s.read.by == i && s.read.term == s.m[i].term
}

// serve answers the read when a quorum has confirmed it, or refuses it.
func (c *model) serve(s *state, i int) {
	m, r := &s.m[i], &s.read
	if r.state != asked || r.by != uint8(i) {
		return
	}
	stage, _ := m.stage()
	switch {
	case m.role != leader || m.term != r.term:
		r.state = answered // refused
	case c.readUnconfirmed || c.enough(stage, m.round|1<<i):
		s.missed = r.index < r.must
		r.state = answered
	}
}
