package codedmodel

import "fmt"

// lead lets a leader commit, append, and change its members.
func (m *model) lead(s *cluster, term uint8, yield yielder) {
	r := &s.t[term]
	l := &s.m[r.by]
	if l.synced < l.last {
		n := *s
		n.m[r.by].synced = l.last
		yield(step{kind: "has on its disk entries up to", a: r.by, b: l.last, term: term}, &n)
	}
	voters, conf := m.newest(&l.log, l.last)
	if to := m.stored(s, term, voters); to > l.known && termOf(l.log[to-1]) == term {
		n := *s
		n.decide(term, to)
		yield(step{kind: "commits", a: r.by, b: to, term: term}, &n)
	}
	for i := range members {
		if f := m.heard(s, term, i); f.here == 1 {
			m.tellCommitted(s, term, i, &f, yield)
		}
	}
	if l.last == m.length || conf > l.known {
		return
	}
	if s.puts < m.setting.puts {
		n := *s
		n.puts++
		n.append(term, entryOf(body, s.puts+1, term), whole)
		yield(step{kind: "appends a body at", a: r.by, b: l.last + 1, term: term}, &n)
	}
	if s.changes < m.setting.changes && l.known >= r.begun && (m.afterCoded || !l.codes()) {
		m.change(s, term, voters, conf, yield)
	}
}

// codes reports whether a member has coded entries that it does not know to be committed.
func (p *member) codes() bool {
	for _, e := range p.log[p.known:p.last] {
		if kindOf(e) == body {
			return true
		}
	}
	return false
}

// change changes the members, or asks for whole copies first.
func (m *model) change(s *cluster, term, voters, conf uint8, yield yielder) {
	r := &s.t[term]
	l := &s.m[r.by]
	for _, next := range m.next {
		if next == voters {
			continue
		}
		n := *s
		n.changes++
		kind, what := uint8(config), "changes the members to"
		byRows, byCopies := m.keepsBodies(s, term, voters, next)
		switch {
		case byRows:
		case byCopies:
			kind, what = wholly, "changes the members, which hold bodies whole, to"
		case m.plain, conf > 0 && kindOf(l.log[conf-1]) == wholly:
			continue
		default:
			kind, what, next, n.changes = wholly, "asks for whole copies of", voters, s.changes
		}
		n.append(term, entryOf(kind, next, term), none)
		yield(step{kind: fmt.Sprintf("%s %04b at", what, next), a: r.by, b: l.last + 1, term: term}, &n)
	}
}

// keepsBodies reports whether bodies stay durable with the next voters, by rows or by whole copies.
func (m *model) keepsBodies(s *cluster, term, now, next uint8) (byRows, byCopies bool) {
	by := int(s.t[term].by)
	l := &s.m[by]
	holders, copies, alive := 0, 0, false
	for _, e := range l.log[:l.last] {
		alive = alive || kindOf(e) == body
	}
	for i := range members {
		f := m.heard(s, term, i)
		if i == by {
			f.match = l.synced
			if l.synced < l.last {
				f.copies = 0
			}
		}
		holds := f.here == 1 && f.match >= l.known && f.lacks == 0
		switch {
		case !has(next, i):
			continue
		case !holds && !has(now, i):
			return m.changeAny, false // it is to have its rows first
		case holds:
			holders++
		}
		copies += int(f.copies)
	}
	n := size(next)
	spare := n - majority(n)
	return m.changeAny || !alive || min(majority(n), holders-spare) >= m.k, holders > spare && copies > spare
}

// stored is how far a leader finds its log stored safely.
func (m *model) stored(s *cluster, term, voters uint8) uint8 {
	r := &s.t[term]
	l := &s.m[r.by]
	var heard [members]said
	for i := range heard {
		heard[i] = m.heard(s, term, i)
	}
	mine := &heard[r.by]
	if mine.match, mine.holds = l.synced, l.holds; m.memory {
		mine.match = l.last
	}
	for to := l.last; to > l.known; to-- {
		have := uint8(0)
		for i := range heard {
			if heard[i].here == 1 && heard[i].match >= to {
				have |= 1 << i
			}
		}
		if size(have&voters) >= majority(size(voters)) && m.bodiesLast(l, to, voters, &heard) {
			return to
		}
	}
	return 0
}

// bodiesLast reports whether all bodies up to an entry are durable.
func (m *model) bodiesLast(l *member, to, voters uint8, heard *[members]said) bool {
	for at := l.known; at < to && !m.naive; at++ {
		if kindOf(l.log[at]) != body || m.paperPrefix && at+1 < to {
			continue
		}
		if !m.outlasts(voters, func(i int) uint8 {
			if at < heard[i].match {
				return heard[i].holds[at]
			}
			return none
		}) {
			return false
		}
	}
	return true
}

// deliver gives any member what the leader of a term sent, at any time. The member stores it before anything else
// happens.
func (m *model) deliver(s *cluster, term uint8, yield yielder) {
	for i := range members {
		if int(s.t[term].by) == i || s.m[i].term > term || !has(m.all(), i) {
			continue
		}
		entered := *s
		m.enter(&entered, i, term)
		m.give(&entered, i, term, yield)
	}
}

func (m *model) give(s *cluster, i int, term uint8, yield yielder) {
	r, p := &s.t[term], &s.m[i]
	same := shared(&p.log, p.last, &r.log, r.last)
	if same < r.last {
		m.giveEntry(s, i, term, same, yield)
	}
	for at := range same {
		f := p.holds[at]
		if kindOf(p.log[at]) != body || f == none || f == row && at < p.base || f == whole && !m.downgrade {
			continue
		}
		n := *s
		if n.m[i].holds[at] = whole; f == whole {
			n.m[i].holds[at] = row
		}
		yield(step{kind: "gets another form of", a: uint8(i), b: at + 1, term: term}, &n)
	}
	if known := min(r.known, same); known > p.known {
		n := *s
		n.m[i].known = known
		yield(step{kind: "learns that is committed", a: uint8(i), b: known, term: term}, &n)
	}
}

// giveEntry gives a member the entry after those that it has. A body comes as nothing only if it is committed.
func (m *model) giveEntry(s *cluster, i int, term, at uint8, yield yielder) {
	r, p := &s.t[term], &s.m[i]
	e := r.log[at]
	if at < p.known {
		n := *s
		n.wrong = cutDecided
		yield(step{kind: "gets something else than what is committed at", a: uint8(i), b: at + 1, term: term}, &n)
		return
	}
	for f := uint8(none); f <= whole; f++ {
		if kindOf(e) != body && f != none || kindOf(e) == body && f == none && at >= r.known {
			continue
		}
		n := *s
		q := &n.m[i]
		if at < q.last {
			n.loses(&q.log, q.last, at, term-1)
			n.cut(i, at)
		}
		q.log[at], q.holds[at], q.last, q.synced = e, f, at+1, at+1
		yield(step{kind: fmt.Sprintf("gets as %d", f), a: uint8(i), b: at + 1, term: term}, &n)
	}
}
