package formatmodel

import "fmt"

// step is what happens, to whom.
type step struct {
	what    string
	a, b, k int
}

func describe(t step) string { return fmt.Sprintf("%s: %d %d, instance %d", t.what, t.a, t.b, t.k) }

// beginning: all members run the later program and have links, and member 0 leads both instances. Logs have no entries.
func (c *model) beginning() (s state) {
	for i := range s.m {
		m := &s.m[i]
		m.program, m.format, m.up, s.links[i] = later, earlier, true, true
		for k := range m.logs {
			m.logs[k].term, m.logs[k].leads = 1, i == 0
		}
	}
	return s
}

// each calls yield for all that may come next.
func (c *model) each(s *state, yield func(step, *state)) {
	do := func(t step, do func(n *state)) {
		n := *s
		do(&n)
		yield(t, &n)
	}
	for i := range members {
		for p := range i {
			c.meet(s, i, p, do)
		}
		c.exchange(s, i, do)
		if !s.m[i].up {
			continue
		}
		c.raises(s, i, do)
		for k := range instances {
			c.leads(s, i, k, do)
		}
	}
}

type doing func(t step, do func(n *state))

// meet: a link begins with a handshake, or ends.
func (c *model) meet(s *state, i, p int, do doing) {
	l := link(i, p)
	if s.links[l] {
		do(step{what: "the link ends", a: i, b: p}, func(n *state) { n.links[l] = false })
		return
	}
	a, b := &s.m[i], &s.m[p]
	if !a.up || !b.up || a.format > b.program || b.format > a.program {
		return
	}
	do(step{what: "handshake", a: i, b: p}, func(n *state) {
		n.links[l] = true
		if c.whenApplied || a.format == b.format {
			return
		}
		if a.format < b.format {
			c.record(n, i, p)
		} else {
			c.record(n, p, i)
		}
	})
}

// exchange: a member is restarted with either program. One that finds a later format than it knows does not start.
func (c *model) exchange(s *state, i int, do doing) {
	if s.restarts >= c.restarts {
		return
	}
	for _, program := range []uint8{earlier, later} {
		do(step{what: "restart", a: i, b: int(program)}, func(n *state) {
			n.restarts++
			m := &n.m[i]
			m.program, m.wants, m.up = program, false, m.format <= program
			for k := range m.logs {
				l := &m.logs[k]
				l.commit, l.leads = 0, false
				for _, e := range l.log[:l.last] {
					n.opened = n.opened || m.up && !knows(program, e)
				}
			}
			for p := range members {
				if p != i {
					n.links[link(i, p)] = false
				}
			}
		})
	}
}

// raises: a leader learns from its links that all know the later format; later it proposes it. A member applies it.
func (c *model) raises(s *state, i int, do doing) {
	m := &s.m[i]
	first := &m.logs[0]
	all := true
	for p := range members {
		all = all && (p == i || s.links[link(i, p)] && s.m[p].program == later)
	}
	may := first.leads && m.program == later && !first.has(first.last)
	if may && !m.wants && (all || c.unproven) {
		do(step{what: "all know it", a: i}, func(n *state) { n.m[i].wants = true })
	}
	if may && m.wants && first.last < slots {
		do(step{what: "propose the format", a: i}, func(n *state) {
			n.m[i].wants = false
			n.m[i].logs[0].append(raise)
		})
	}
	if m.program == later && m.format == earlier && first.has(first.commit) {
		do(step{what: "apply the format", a: i}, func(n *state) { c.record(n, i, -1) })
	}
}

func (l *instance) append(k kind) {
	l.log[l.last] = newEntry(l.term, k)
	l.last++
}

// leads: a member is elected, proposes data in the format that it writes, and sends entries.
func (c *model) leads(s *state, i, k int, do doing) {
	m := &s.m[i]
	l := &m.logs[k]
	if !l.leads {
		if s.elections < c.elections {
			c.elect(s, i, k, do)
		}
		return
	}
	if l.last < slots {
		do(step{what: "propose data", a: i, k: k}, func(n *state) {
			what := plain
			if m.format == later {
				what = fresh
			}
			n.m[i].logs[k].append(what)
		})
	}
	for p := range members {
		if p != i && s.links[link(i, p)] && s.m[p].logs[k].term <= l.term {
			do(step{what: "send", a: i, b: p, k: k}, func(n *state) { n.send(i, p, k) })
		}
	}
}

// elect: a member and one other vote for it.
func (c *model) elect(s *state, i, k int, do doing) {
	for p := range members {
		l, v := &s.m[i].logs[k], &s.m[p].logs[k]
		if p == i || !s.links[link(i, p)] || !upToDate(l, v) {
			continue
		}
		do(step{what: "elect", a: i, b: p, k: k}, func(n *state) {
			n.elections++
			term := max(l.term, v.term) + 1
			n.m[i].logs[k].term, n.m[i].logs[k].leads = term, true
			n.m[p].logs[k].term, n.m[p].logs[k].leads = term, false
		})
	}
}

// send: a member receives the next entry of a leader, and how far the log is committed. The leader has the answer.
func (s *state) send(i, p, k int) {
	l, f := &s.m[i].logs[k], &s.m[p].logs[k]
	f.term, f.leads = l.term, false
	n := common(l, f)
	if f.last > n && n < l.last || f.last > l.last { // another entry is there
		for at := n; at < f.last; at++ {
			f.log[at] = 0
		}
		f.last = n
	}
	if n < l.last {
		f.log[n], f.last = l.log[n], n+1
		s.received = s.received || !knows(s.m[p].program, l.log[n])
	}
	f.commit = max(f.commit, min(l.commit, common(l, f)))
	for n := l.commit + 1; n <= l.last; n++ {
		have := 0
		for q := range s.m {
			if q == i || common(l, &s.m[q].logs[k]) >= n {
				have++
			}
		}
		if l.log[n-1].term() == l.term && 2*have > members {
			l.commit = n
		}
	}
}
