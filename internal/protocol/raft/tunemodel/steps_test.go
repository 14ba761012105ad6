package tunemodel

import "fmt"

// step says what happens: who does it, and with whom.
type step struct {
	what string
	a, b int
	to   uint8
}

// beginning: member 0 leads term 1, and all have its first entry.
func (c *model) beginning() (s state) {
	for i := range s.m {
		m := &s.m[i]
		m.term, m.knows, m.last, m.commit, m.log[0] = 1, true, 1, 1, newEntry(1, 0)
	}
	c.lead(&s.m[0])
	s.m[0].first, s.m[0].match = 1, [members]uint8{1, 1, 1}
	s.elected = 1
	return s
}

func (c *model) lead(m *member) {
	m.leads, m.knows, m.match = true, true, [members]uint8{}
	for p := range m.confirmed {
		m.confirmed[p] = never
	}
}

// follow takes a member into a term, without a leader.
func (m *member) follow(term uint8) {
	if m.leads {
		m.heard, m.leads, m.knows, m.first = 0, false, false, 0
		m.match, m.confirmed = [members]uint8{}, [members]int8{}
	}
	if term > m.term {
		m.term, m.knows = term, false
	}
}

// each calls yield for all that may come next.
func (c *model) each(s *state, yield func(step, *state)) {
	do := func(t step, do func(n *state)) {
		n := *s
		do(&n)
		yield(t, &n)
	}
	do(step{what: "time passes"}, (*state).tick)
	for i := range members {
		if m := &s.m[i]; m.leads {
			c.leads(s, i, do)
		} else {
			c.elections(s, i, do)
		}
		c.alone(s, i, do)
	}
}

type doer func(t step, do func(n *state))

// alone: what a member does without another one.
func (c *model) alone(s *state, i int, do doer) {
	m := &s.m[i]
	if s.used.restarts < c.may.restarts {
		for _, commit := range []uint8{m.base, m.commit} {
			do(step{what: "%d restarts, and knows %d to be decided", a: i, to: commit}, func(n *state) {
				n.used.restarts++
				n.m[i].commit = commit
				c.restart(&n.m[i])
			})
		}
	}
	if s.used.snapshots < c.may.snapshots && m.commit > m.base {
		do(step{what: "%d forgets its log up to %d", a: i, to: m.commit}, func(n *state) {
			n.used.snapshots++
			n.m[i].base = m.commit
		})
	}
	for j := range members {
		if s.m[j].term > m.term {
			do(step{what: "%d enters the term of %d", a: i, b: j}, func(n *state) { n.m[i].follow(s.m[j].term) })
		}
	}
}

// restart: a member cannot know when it last heard from a leader.
func (c *model) restart(m *member) {
	m.follow(m.term)
	m.knows, m.heard = false, never
	_, leases := c.promise(m)
	if c.startsByCommit {
		leases = c.profiles[m.in(m.commit)].leases
	}
	if leases {
		m.heard = 0
	}
}

// elections: one other member votes for one whose own promise is over.
func (c *model) elections(s *state, i int, do doer) {
	m := &s.m[i]
	if s.used.elections == c.may.elections || c.sticky(m) {
		return
	}
	for j := range members {
		v := &s.m[j]
		if j == i || v.leads || c.sticky(v) || m.log[m.last-1].term() < v.log[v.last-1].term() ||
			m.log[m.last-1].term() == v.log[v.last-1].term() && m.last < v.last {
			continue
		}
		do(step{what: "%d elects %d", a: j, b: i}, func(n *state) {
			n.used.elections++
			m, v := &n.m[i], &n.m[j]
			n.elected = max(n.elected, m.term, v.term) + 1
			m.follow(n.elected)
			v.follow(n.elected)
			c.lead(m)
			m.first = m.last + 1
			n.append(i, 0)
		})
	}
}

func (s *state) append(i int, profile uint8) {
	m := &s.m[i]
	if m.last == slots {
		return
	}
	m.log[m.last] = newEntry(m.term, profile)
	m.last++
	m.match[i] = m.last
}

// leads: what a leader may do.
func (c *model) leads(s *state, i int, do doer) {
	m := &s.m[i]
	for p := range members {
		if p == i || s.m[p].term > m.term {
			continue
		}
		for _, answered := range []bool{false, true} {
			outcome := map[bool]string{false: ", the answer is lost", true: ""}[answered]
			do(step{what: "%d hears from %d" + outcome, a: p, b: i}, func(n *state) {
				n.hear(i, p, n.m[p].commit)
				n.answer(i, p, n.m[p].commit, answered)
			})
			for to := max(m.match[p], m.base) + 1; to <= m.last; to++ {
				do(step{what: "%d gets the log of %d up to %d" + outcome, a: p, b: i, to: to}, func(n *state) {
					n.take(i, p, to)
					n.hear(i, p, to)
					n.answer(i, p, to, answered)
				})
			}
		}
	}
	// Every version has one proposal at most.
	if next := s.newest() + 1; int(next) < len(c.profiles) && m.commit >= m.first && m.in(m.last) == m.in(m.commit) &&
		m.last < slots {
		do(step{what: "%d proposes profile %d", a: i, to: next}, func(n *state) { n.append(i, next) })
	}
}

// newest is the highest number of a profile in any log.
func (s *state) newest() (n uint8) {
	for i := range s.m {
		n = max(n, s.m[i].in(s.m[i].last))
	}
	return n
}

// take: p's log is that of leader i up to an index, and what it has after that if it matches.
func (s *state) take(i, p int, to uint8) {
	from, m := &s.m[i], &s.m[p]
	for k := range to {
		if k < m.last && m.log[k].term() == from.log[k].term() {
			continue
		}
		m.log[k] = from.log[k]
		m.last = k + 1
		for t := k + 1; t < slots; t++ {
			m.log[t] = 0
		}
	}
	if m.commit < from.base {
		m.base, m.commit = from.base, from.base // by a snapshot
	}
}

// hear: p hears from leader i that what i knows is decided, as far as their logs match.
func (s *state) hear(i, p int, match uint8) {
	m := &s.m[p]
	m.follow(s.m[i].term)
	m.knows, m.heard = true, 0
	m.commit = max(m.commit, min(s.m[i].commit, match))
}

// answer: leader i learns what p acknowledges.
func (s *state) answer(i, p int, match uint8, arrives bool) {
	if !arrives {
		return
	}
	m := &s.m[i]
	m.match[p], m.confirmed[p] = max(m.match[p], match), 0
	for k := m.match[p]; k > m.commit; k-- {
		if m.log[k-1].term() == m.term {
			m.commit = k
			return
		}
	}
}

// tick: instants are relative to now.
func (s *state) tick() {
	for i := range s.m {
		m := &s.m[i]
		m.heard = max(m.heard-1, never)
		if m.leads {
			for p := range m.confirmed {
				m.confirmed[p] = max(m.confirmed[p]-1, never)
			}
		}
	}
}

// tell says a step in words.
func tell(t step) string {
	switch t.what {
	case "time passes":
		return t.what
	case "%d restarts, and knows %d to be decided", "%d forgets its log up to %d", "%d proposes profile %d":
		return fmt.Sprintf(t.what, t.a, t.to)
	}
	if t.to > 0 {
		return fmt.Sprintf(t.what, t.a, t.b, t.to)
	}
	return fmt.Sprintf(t.what, t.a, t.b)
}
