package codedmodel

import "fmt"

// step is something that happens.
type step struct {
	kind       string
	a, b, term uint8
}

func (t step) String() string {
	return fmt.Sprintf("%d %s %d (term %d)", t.a+1, t.kind, t.b, t.term)
}

type yielder func(step, *cluster)

func (m *model) each(s *cluster, yield func(step, *cluster)) {
	for t := uint8(1); t <= m.setting.terms; t++ {
		switch r := &s.t[t]; r.phase {
		case unborn:
			if t == 1 || s.t[t-1].phase != unborn {
				m.elect(s, t, yield)
			}
			continue
		case preparing:
			m.prepare(s, t, yield)
		case leading:
			m.lead(s, t, yield)
		}
		if s.t[t].sends == 1 {
			m.deliver(s, t, yield)
		}
	}
	for i := range members {
		m.keep(s, i, yield)
		m.snapshots(s, i, yield)
	}
	m.crash(s, yield)
}

// keep lets a member make more of what it holds of committed bodies, or less.
func (m *model) keep(s *cluster, i int, yield yielder) {
	p := &s.m[i]
	for at := range p.known {
		e, f := p.log[at], p.holds[at]
		if kindOf(e) != body {
			continue
		}
		become := func(kind string, f uint8) {
			n := *s
			n.m[i].holds[at] = f
			yield(step{kind: kind, a: uint8(i), b: at + 1}, &n)
		}
		if f == none && m.recoverable(s, at, e) {
			become("makes its row of", row)
		}
		if f != whole && m.obeys(p) && m.recoverable(s, at, e) {
			become("makes a copy of", whole)
		}
		if m.trims && f == whole && at < p.base && m.mayTrim(s, i, at, e) {
			become("trims", row)
		}
	}
}

// mayTrim reports whether a member's whole copy becomes a row.
func (m *model) mayTrim(s *cluster, i int, at uint8, e entry) bool {
	p := &s.m[i]
	voters, applied := m.newest(&p.log, p.known)
	_, newest := m.newest(&p.log, p.last)
	switch {
	case !has(voters, i), m.obeys(p) && !m.trimWhole, newest != applied && !m.trimByApplied:
		return false
	case m.trimAny:
		return true
	}
	holders := 1
	for o := range members {
		q := &s.m[o]
		if o != i && has(voters, o) && (q.known > at || m.trimAcked) && (q.synced > at || m.trimMemory) &&
			s.held(o, at, e) != none {
			holders++
		}
	}
	n := size(voters)
	return holders >= n-majority(n)+m.k
}

// snapshots lets a member take a snapshot, or get one.
func (m *model) snapshots(s *cluster, i int, yield yielder) {
	p := &s.m[i]
	if m.trims && p.base < p.known {
		n := *s
		n.m[i].base = p.known
		yield(step{kind: "has a snapshot at", a: uint8(i), b: p.known}, &n)
	}
	for o := range members {
		from := &s.m[o]
		if has(m.all(), i) && from.base > p.known && int(s.t[p.term].by) != i {
			n := *s
			m.install(&n, i, from)
			yield(step{kind: fmt.Sprintf("gets a snapshot of %d at", o+1), a: uint8(i), b: from.base}, &n)
		}
	}
}

// install puts a snapshot in the place of a log. Bodies stay where they are.
func (m *model) install(s *cluster, i int, from *member) {
	p := &s.m[i]
	end := from.log[from.base-1]
	if termOf(end) > p.term && !m.keepTerm {
		m.enter(s, i, termOf(end))
	}
	if p.last >= from.base && p.log[from.base-1] == end {
		p.known, p.base = from.base, from.base
		return
	}
	m.leave(s, i)
	had := *p
	p.log, p.holds, p.last = journal{}, forms{}, from.base
	for at := range from.base {
		if p.log[at] = from.log[at]; had.log[at] == p.log[at] {
			p.holds[at] = had.holds[at]
		}
	}
	p.known, p.base, p.synced = from.base, from.base, from.base
}

// crash lets one member or all lose power.
func (m *model) crash(s *cluster, yield yielder) {
	if s.crashes == m.setting.crashes {
		return
	}
	if m.power {
		n := *s
		n.crashes++
		for i := range members {
			n.fall(i)
		}
		yield(step{kind: "and all others crash"}, &n)
		return
	}
	for i := range members {
		if has(m.all(), i) {
			n := *s
			n.crashes++
			n.fall(i)
			yield(step{kind: "crashes", a: uint8(i)}, &n)
		}
	}
}

// fall takes from a member what its disk does not hold.
func (s *cluster) fall(i int) {
	s.abdicate(i)
	p := &s.m[i]
	for at := p.synced; at < p.last; at++ {
		if p.holds[at] = none; at >= p.base { // else the snapshot stands for it
			p.log[at] = 0
		}
	}
	p.last = max(p.synced, p.base)
	p.known, p.synced = p.base, p.last
}
