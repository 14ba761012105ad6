package fencemodel

// step names what happened between two states.
type step struct {
	kind string
	a, b int
}

// each calls yield for every state that may come next. A state that is the same again is left out
// by the search.
func (m *model) each(s *state, yield func(step, *state)) {
	do := func(kind string, a, b int, f func(n *state) bool) {
		n := *s
		if f(&n) {
			if !m.lazy {
				m.accept(&n)
			}
			yield(step{kind, a, b}, &n)
		}
	}
	m.elections(s, do)
	for l := range members {
		if s.lead[l] == 1 {
			m.leaderSteps(s, l, do)
		}
	}
	m.laneSteps(s, do)
	if s.crashes < m.crashes {
		for i := range members {
			if m.absent>>i&1 == 1 {
				continue
			}
			do("crash", i+1, 0, func(n *state) bool { return m.crash(n, i) })
		}
	}
}

type doer func(kind string, a, b int, f func(n *state) bool)

// elections: a candidate and the voters that elect it, as one step. More voters than a quorum are
// the same as a quorum, and the others following later.
func (m *model) elections(s *state, do doer) {
	term := uint8(0)
	for _, t := range s.term {
		term = max(term, t)
	}
	if term == m.terms {
		return
	}
	for c := range members {
		m.quorums(s, c, func(q uint8) {
			do("elect", c+1, int(q), func(n *state) bool {
				for i := range members {
					if q>>i&1 == 1 {
						n.follow(i, term+1)
					}
				}
				n.lead[c] = 1
				return m.append(n, c, noop, 0)
			})
		})
	}
}

// quorums calls yield for the smallest quorums that may elect a member: voters of the configuration
// in its log whose logs are not ahead of its own.
func (m *model) quorums(s *state, c int, yield func(q uint8)) {
	v := m.logView(s, c)
	conf := &m.configs[v.conf]
	if !conf.has(c) {
		return
	}
	var willing uint8
	for i := range members {
		n := s.log[i].len()
		if n == 0 || v.n > 0 && (termOf(s.log[i][n-1]) < v.term || termOf(s.log[i][n-1]) == v.term && n <= v.n) {
			willing |= 1 << i
		}
	}
	willing &= conf.voters | conf.outgoing
	for q := uint8(0); q < 1<<members; q++ {
		if q&^willing != 0 || q>>c&1 == 0 || !conf.decides(q) {
			continue
		}
		smallest := true
		for i := range members {
			if without := q &^ (1 << i); i != c && without != q && conf.decides(without) {
				smallest = false
			}
		}
		if smallest {
			yield(q)
		}
	}
}

func (m *model) append(s *state, l int, kind, arg uint8) bool {
	n := s.log[l].len()
	if n >= m.length {
		return false
	}
	s.log[l][n] = entry(kind, arg, s.term[l])
	m.advance(s, l)
	return true
}

func (m *model) leaderSteps(s *state, l int, do doer) {
	v := m.logView(s, l)
	conf := &m.configs[v.conf]
	for f := range members {
		if f == l || s.term[f] > s.term[l] || !conf.has(f) {
			continue
		}
		do("append", l+1, f+1, func(n *state) bool { return m.replicate(n, l, f) })
	}
	for f := range members { // what it signals it may have to fetch; it need not write it
		for to := v.signaled + 1; to <= s.cells[f] && !v.closed && !v.off && s.term[f] <= s.term[l]; to++ {
			do("signal", l+1, int(to), func(n *state) bool { n.follow(f, s.term[l]); return m.append(n, l, signal, to) })
		}
	}
	if m.settled(s) {
		v.genAt, v.genConf = max(v.genAt, v.confAt), v.conf
	} else {
		m.generations(s, l, &v, do)
		if m.second > 0 && !v.opened && v.closed && (!v.off || m.openOff) {
			do("open", l+1, 0, func(n *state) bool { return m.append(n, l, opens, m.second) })
		}
	}
	m.changeSteps(s, l, &v, conf, do)
}

// replicate brings one more entry to a follower, whose log then ends with it if it had another
// there. The answer arrives at once or counts later: see matched.
func (m *model) replicate(s *state, l, f int) bool {
	s.follow(f, s.term[l])
	if n := common(&s.log[l], &s.log[f]); n < s.log[l].len() {
		clear(s.log[f][n:])
		s.log[f][n] = s.log[l][n]
		m.advance(s, l)
	}
	return true
}

// changeSteps: the fence's questions and answers, one member at a time, and the configuration.
func (m *model) changeSteps(s *state, l int, v *view, conf *config, do doer) {
	ready := int(s.commit[l]) >= v.confAt && s.commit[l] > 0 && termOf(s.log[l][s.commit[l]-1]) == s.term[l] &&
		(v.genAt >= v.confAt || v.off)
	if !ready || len(conf.next) == 0 {
		return
	}
	genConf := &m.configs[v.genConf]
	fences := false
	for _, k := range conf.next {
		next := &m.configs[k]
		enough := m.lazy && m.answered(s, l, v, genConf, next) // one that is asked without success only fences itself
		fences = fences || !m.skips(conf, next) && !enough
		if m.skips(conf, next) || m.answered(s, l, v, genConf, next) {
			do("config", l+1, int(k), func(n *state) bool {
				n.resp[l] = [members]uint8{}
				return m.append(n, l, change, k)
			})
		}
	}
	for f := range members {
		if m.settled(s) || !fences || s.term[f] > s.term[l] || s.resp[l][f] != 0 || !genConf.has(f) && !m.newAnswers {
			continue
		}
		do("fence", l+1, f+1, func(n *state) bool {
			n.follow(f, s.term[l])
			n.fence[f] = max(n.fence[f], v.gen+1)
			n.resp[l][f] = n.cells[f] + 1
			return true
		})
		from, to := m.writes(s)
		for e := max(from, s.cells[f]+1); m.lazy && f != m.owner && s.alive == 1 && e < to && m.takes(s, f) &&
			s.fence[f] <= s.gen; e++ {
			do("late", l+1, f+1, func(n *state) bool {
				m.hold(n, f, e)
				n.ack[f] = n.cells[f]
				n.follow(f, s.term[l])
				n.fence[f] = max(n.fence[f], v.gen+1)
				n.resp[l][f] = n.cells[f] + 1
				return true
			})
		}
	}
}

// skips reports whether a variant makes this change without a fence.
func (m *model) skips(from, to *config) bool {
	switch {
	case from.off:
		return true
	case to.off:
		return m.skipOff > 0 && to == &m.configs[m.skipOff]
	case to.outgoing != 0:
		return m.skipJoin
	case from.outgoing != 0:
		return m.skipLeave
	case from.voters&^to.voters == 0:
		return m.skipAdd
	}
	return m.skipRemove
}

// answered reports whether a quorum of each set answered the fence and what it reported is in
// signals of the leader's log. Answers that are not covered are left out: a quorum is enough.
func (m *model) answered(s *state, l int, v *view, gen, next *config) bool {
	var who uint8
	for i, r := range s.resp[l] {
		if r != 0 && (r-1 <= v.signaled || m.uncovered) {
			who |= 1 << i
		}
		if m.settled(s) && s.term[i] <= s.term[l] && (s.cells[i] <= v.signaled || m.uncovered) {
			who |= 1 << i
		}
	}
	switch {
	case m.fewAnswers:
		return gen.almost(who)
	case m.newAnswers:
		return next.decides(who)
	}
	return gen.decides(who)
}

// generations: the one that follows a committed configuration, and the one that someone starts who
// sees a fence that no one finished. It needs no fence of its own.
func (m *model) generations(s *state, l int, v *view, do doer) {
	start := func(kind string, number uint8, follow int) {
		do(kind, l+1, int(number), func(n *state) bool {
			if number > 7 {
				return false
			}
			if follow >= 0 {
				n.follow(follow, s.term[l])
			}
			if !m.keepAnswers {
				n.resp[l] = [members]uint8{}
			}
			return m.append(n, l, gener, number)
		})
	}
	if v.off && !m.openOff {
		return
	}
	if v.confAt > v.genAt && int(s.commit[l]) >= v.confAt {
		start("generation", v.gen+1, -1)
	}
	if m.noSuccessor || v.fresh >= m.gens {
		return
	}
	for f := range members {
		if s.term[f] > s.term[l] || s.fence[f] <= v.gen {
			continue
		}
		if m.entryIsGeneration {
			start("renew", 0, f)
		} else {
			start("renew", s.fence[f]+1, f)
		}
	}
}

// laneSteps: the owner's disk, its messages and their answers, and its generation. A copy that comes
// sooner never makes anything worse, so the lazy model lets the copies of an entry come at the last
// moment at which they count: when it is accepted, or just before a fence.
func (m *model) laneSteps(s *state, do doer) {
	if s.alive == 1 {
		do("adopt", m.owner+1, 0, m.adopt)
	}
	if m.second > 0 {
		do("hear", m.owner+1, 0, m.hear)
		for f := range members {
			if f != m.owner && m.sameLane && s.cells[f] > 0 {
				do("drop", f+1, 0, func(n *state) bool { return m.drop(n, f) })
			}
		}
	}
	if m.lazy {
		m.acceptSteps(s, do)
		return
	}
	from, to := m.writes(s)
	if e := max(from, s.cells[m.owner]+1); s.alive == 1 && e < to {
		do("write", m.owner+1, 0, func(n *state) bool { m.hold(n, m.owner, e); return true })
	}
	for f := range members {
		if f == m.owner || !m.takes(s, f) {
			continue
		}
		if e := max(from, s.cells[f]+1); e < to && (m.second == 0 || s.alive == 1) {
			do("lane", f+1, 1, func(n *state) bool { m.hold(n, f, e); m.acknowledge(n, f); return true })
		}
		if s.cells[f] > s.ack[f] || m.ackFromLog {
			do("lane", f+1, 0, func(n *state) bool { m.acknowledge(n, f); return true })
		}
	}
}

// acceptSteps: the next entry is written by the owner and by some that may, and is accepted.
func (m *model) acceptSteps(s *state, do doer) {
	e, to := m.writes(s)
	for e < to && s.accepted[e-1] != 0 {
		e++
	}
	if e >= to || !m.counts(s) {
		return
	}
	had := m.ackers(s, e)
	var may uint8
	for f := range members {
		if had>>f&1 == 0 && m.takes(s, f) {
			may |= 1 << f
		}
	}
	for more := uint8(0); more < 1<<members; more++ {
		if more&^may != 0 || !m.configs[s.conf].decides(had|more) {
			continue
		}
		do("accept", m.owner+1, int(more), func(n *state) bool {
			n.accepted[e-1] = s.gen
			for f := range members {
				if f != m.owner && more>>f&1 == 0 {
					continue
				}
				if f == m.owner || !m.ackFromLog || m.logView(s, f).signaled < e {
					m.hold(n, f, e)
				}
			}
			return true
		})
	}
}

func (m *model) acknowledge(s *state, f int) {
	if s.alive == 0 {
		return
	}
	s.ack[f] = s.cells[f]
	if m.ackFromLog {
		v := m.logView(s, f)
		s.ack[f] = max(s.ack[f], v.signaled)
	}
}

// adopt takes the owner to the next generation that is committed and in its log.
func (m *model) adopt(s *state) bool {
	j, n := &s.done, common(&s.done, &s.log[m.owner])
	if m.adoptInLog {
		j = &s.log[m.owner]
		n = j.len()
	}
	v := m.view(j, n)
	if !m.adoptInLog {
		v = view{gen: s.gen, genConf: s.conf}
		for i := 1; i <= n; i++ { // one after the other
			at := m.view(j, i)
			if at.off && s.heard == 0 {
				break // it hears that first
			}
			if at.gen > s.gen {
				v = at
				break
			}
		}
	}
	if v.gen == s.gen && v.genConf == s.conf || v.gen < s.gen && !m.adoptInLog {
		return false
	}
	s.old = m.keptAcks(s)
	s.ack = [members]uint8{}
	s.gen = v.gen
	if !m.countOldSets {
		s.conf = v.genConf
	}
	return true
}

// hear takes the owner to the next thing that its committed log says of its lane: it was turned off, or it opened
// again and acknowledgements count. A new incarnation continues likewise.
func (m *model) hear(s *state) bool {
	n := common(&s.done, &s.log[m.owner])
	for i := 1; i <= n; i++ {
		v := m.view(&s.done, i)
		switch {
		case s.heard == 0 && v.confAt == i && v.off:
			s.heard, s.alive, s.conf = 1, 0, v.conf
		case s.heard == 1 && v.opened && v.genAt >= v.confAt:
			if s.heard, s.alive, s.gen, s.conf = 2, 1, v.gen, v.genConf; m.openOff {
				s.conf = 0
			}
		default:
			continue
		}
		s.ack, s.old = [members]uint8{}, [members]uint8{}
		return true
	}
	return false
}

// drop is what a variant does where it knows that the lane closed, and its log does not have it opened again.
func (m *model) drop(s *state, f int) bool {
	v := m.view(&s.done, common(&s.done, &s.log[f]))
	if at := m.logView(s, f); !v.off && !v.closed || at.opened {
		return false
	}
	s.cells[f] = 0
	return true
}

// crash ends a member's incarnation and starts the next one.
func (m *model) crash(s *state, i int) bool {
	s.crashes++
	s.stepDown(i)
	if i == m.owner {
		s.alive, s.ack, s.old = 0, [members]uint8{}, [members]uint8{}
	}
	if m.forget {
		s.fence[i] = 0
	}
	return true
}
