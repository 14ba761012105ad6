package codedmodel

import "fmt"

// elect lets any smallest quorum elect any of its members, in one step.
func (m *model) elect(s *cluster, term uint8, yield yielder) {
	for c := range members {
		voters, _ := m.newest(&s.m[c].log, s.m[c].last)
		for q := uint8(1); q < 1<<members; q++ {
			if !has(q&voters, c) || q&^voters != 0 || size(q) != majority(size(voters)) || !s.votes(q, c, term) {
				continue
			}
			n := *s
			for v := range members {
				if has(q, v) {
					m.enter(&n, v, term)
				}
			}
			m.begin(&n, c, term)
			yield(step{kind: fmt.Sprintf("is elected by %04b, with entries up to", q), a: uint8(c), b: s.m[c].last, term: term},
				&n)
		}
	}
}

// votes reports whether all of some members vote for a candidate.
func (s *cluster) votes(who uint8, candidate int, term uint8) bool {
	end := func(p *member) uint8 {
		if p.last == 0 {
			return 0
		}
		return termOf(p.log[p.last-1])
	}
	c := &s.m[candidate]
	for v := range members {
		o := &s.m[v]
		if has(who, v) && (o.term >= term || end(c) < end(o) || end(c) == end(o) && c.last < o.last) {
			return false
		}
	}
	return true
}

// begin begins a reign. What is coded before a configuration is committed: else that would not be there.
func (m *model) begin(s *cluster, c int, term uint8) {
	p := &s.m[c]
	s.t[term] = reign{by: uint8(c), phase: preparing, last: p.last, log: p.log, known: p.known}
	if _, conf := m.newest(&p.log, p.last); !m.inferNone {
		for at := conf; at > 0; at-- {
			if kindOf(p.log[at-1]) == body {
				s.learns(term, at)
				break
			}
		}
	}
	m.ready(s, term)
}

// ready lets a leader lead if it has all bodies whole that are not known to be committed.
func (m *model) ready(s *cluster, term uint8) {
	r := &s.t[term]
	p := &s.m[r.by]
	for at := p.known; at < p.last; at++ {
		if kindOf(p.log[at]) == body && p.holds[at] != whole {
			return
		}
	}
	if p.last == room {
		s.abdicate(int(r.by))
		return
	}
	r.phase, r.sends = leading, 1
	s.append(term, entryOf(noop, 0, term), none)
	r.begun = r.last
}

// append appends an entry to a leader's log.
func (s *cluster) append(term uint8, e entry, f uint8) {
	r := &s.t[term]
	p := &s.m[r.by]
	p.log[p.last], p.holds[p.last] = e, f
	p.last++
	r.log, r.last = p.log, p.last
}

// prepare lets a new leader hear others, make bodies whole, and give up what was never committed.
func (m *model) prepare(s *cluster, term uint8, yield yielder) {
	r := &s.t[term]
	answered := uint8(1) << r.by
	for i := range members {
		switch f := m.heard(s, term, i); {
		case f.here == 1:
			answered |= 1 << i
			m.tellCommitted(s, term, i, &f, yield)
		case s.m[i].term < term && has(m.all(), i):
			n := *s
			m.enter(&n, i, term)
			yield(step{kind: "answers the leader of term", a: uint8(i), b: term, term: term}, &n)
		}
	}
	l := &s.m[r.by]
	for at := l.known; at < l.last; at++ {
		if kindOf(l.log[at]) != body || l.holds[at] == whole {
			continue
		}
		if m.recoverable(s, at, l.log[at]) {
			n := *s
			n.m[r.by].holds[at] = whole
			m.ready(&n, term)
			yield(step{kind: "makes whole, to lead,", a: r.by, b: at + 1, term: term}, &n)
		}
		if m.mayGiveUp(s, term, at, answered) {
			n := *s
			m.giveUp(&n, term, at)
			yield(step{kind: "gives up entries from", a: r.by, b: at + 1, term: term}, &n)
		}
	}
}

// tellCommitted lets a member tell the leader of its term that more is committed.
func (m *model) tellCommitted(s *cluster, term uint8, i int, f *said, yield yielder) {
	r := &s.t[term]
	if f.known <= s.m[r.by].known {
		return
	}
	n := *s
	n.learns(term, f.known)
	if r.phase == preparing {
		m.ready(&n, term)
	}
	yield(step{kind: "tells its leader what is committed:", a: uint8(i), b: f.known, term: term}, &n)
}

// mayGiveUp reports whether some quorum of those that answered holds too little of a body.
func (m *model) mayGiveUp(s *cluster, term, at, answered uint8) bool {
	by := s.t[term].by
	voters, _ := m.newest(&s.m[by].log, s.m[by].last)
	need := majority(size(voters))
	if m.fewAnswers {
		need--
	}
	for q := uint8(1); q < 1<<members; q++ {
		if q&^answered == 0 && has(q, int(by)) && size(q) == need && size(q&voters) == need && !m.enough(s, term, at, q) {
			return true
		}
	}
	return false
}

// enough reports whether some members hold enough of a body, as they answered, or one knows that it is committed.
func (m *model) enough(s *cluster, term, at, who uint8) bool {
	holders := 0
	for i := range members {
		f := m.heard(s, term, i)
		switch {
		case !has(who, i), m.forgetful && s.m[i].base > at:
			continue
		case f.known > at, f.holds[at] == whole:
			return true
		case f.holds[at] == row:
			holders++
		}
	}
	return holders >= m.k
}

// giveUp cuts a new leader's log.
func (m *model) giveUp(s *cluster, term, at uint8) {
	r := &s.t[term]
	l := &s.m[r.by]
	if _, conf := m.newest(&l.log, l.last); conf > at {
		s.wrong = cutBeforeConfig
	}
	s.loses(&l.log, l.last, at, term)
	s.cut(int(r.by), at)
	r.log, r.last = l.log, l.last
	for i := range r.heard {
		clear(r.heard[i].holds[at:])
	}
	m.ready(s, term)
}
