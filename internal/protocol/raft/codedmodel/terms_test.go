package codedmodel

// enter puts a member into a later term. What it wrote before is durable by then.
func (m *model) enter(s *cluster, i int, term uint8) {
	p := &s.m[i]
	if p.term == term {
		return
	}
	m.leave(s, i)
	s.abdicate(i)
	p.term, p.synced = term, p.last
}

// abdicate ends the reign of a member in its term, if it is one. No one needs what it knew.
func (s *cluster) abdicate(i int) {
	r := &s.t[s.m[i].term]
	if r.phase == unborn || r.phase == over || int(r.by) != i {
		return
	}
	r.phase, r.heard, r.begun = over, [members]said{}, 0
	if r.sends == 0 {
		r.last, r.known, r.log = 0, 0, journal{}
	}
}

// leave notes what a leader may know of a member that leaves its term, or whose log starts again.
func (m *model) leave(s *cluster, i int) {
	if r := &s.t[s.m[i].term]; r.phase == preparing || r.phase == leading {
		r.heard[i] = m.says(s, r, i)
	}
}

// says is what a member's disk has of a leader's log. Before the leader sends its log, only what is
// committed is known to match.
func (m *model) says(s *cluster, r *reign, i int) said {
	p := &s.m[i]
	same := shared(&p.log, p.last, &r.log, r.last)
	f := said{here: 1, match: same, known: min(p.known, same)}
	if r.sends == 0 {
		f.match = f.known
	}
	for at := range same {
		if f.holds[at] = p.holds[at]; kindOf(p.log[at]) == body && p.holds[at] == none {
			f.lacks = 1
		}
	}
	if f.match == same && m.obeys(p) && p.copied() {
		f.copies = 1
	}
	return f
}

// heard is what the leader of a term may know of a member.
func (m *model) heard(s *cluster, term uint8, i int) said {
	r := &s.t[term]
	if s.m[i].term == term || m.oldAcks && s.m[i].term < term {
		return m.says(s, r, i)
	}
	return r.heard[i]
}

// obeys reports whether the configuration that a member has applied wants whole copies of it.
func (m *model) obeys(p *member) bool {
	_, at := m.newest(&p.log, p.known)
	return at > 0 && kindOf(p.log[at-1]) == wholly
}

// copied reports whether a member holds whole what its log has.
func (p *member) copied() bool {
	for at, e := range p.log[:p.last] {
		if kindOf(e) == body && p.holds[at] != whole {
			return false
		}
	}
	return true
}

// cut removes a member's entries from a place on.
func (s *cluster) cut(i int, at uint8) {
	p := &s.m[i]
	if at < p.known {
		s.wrong = cutDecided
	}
	for j := at; j < p.last; j++ {
		p.log[j], p.holds[j] = 0, none
	}
	p.last, p.synced = at, min(p.synced, at)
}

// loses notes that a leader of a term drops a log's entries from a place on: none may be decided, unless by a later
// leader.
func (s *cluster) loses(log *journal, last, at, term uint8) {
	for j := at; j < min(last, s.decided); j++ {
		if s.done[j] == log[j] && s.in[j] <= term {
			s.wrong = cutDecided
		}
	}
}

// decide notes that the leader of a term commits.
func (s *cluster) decide(term, to uint8) {
	r := &s.t[term]
	for at := range to {
		if at >= s.decided {
			s.done[at], s.in[at], s.decided = r.log[at], term, at+1
		} else if s.done[at] != r.log[at] {
			s.wrong = decidedTwice
		}
	}
	s.learns(term, to)
}

// learns tells the leader of a term what is committed.
func (s *cluster) learns(term, to uint8) {
	r := &s.t[term]
	l := &s.m[r.by]
	r.known, l.known = max(r.known, to), max(l.known, to)
}
