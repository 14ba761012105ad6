package reshapemodel

import "fmt"

// step is something that happens.
type step struct {
	kind         action
	a, b, in, at uint8
}

type action uint8

const (
	puts action = iota
	skips
	follows
	changes
	reshapes
	refused
	gets
	makes
	installs
)

func (t step) String() string {
	switch t.kind {
	case puts:
		return fmt.Sprintf("%d leads instance %d and appends body %d", t.a+1, t.in+1, t.b+1)
	case skips:
		return fmt.Sprintf("%d leads instance %d and skips", t.a+1, t.in+1)
	case follows:
		return fmt.Sprintf("%d leads the second instance, which follows to %04b", t.a+1, t.b)
	case changes:
		return fmt.Sprintf("%d leads the first instance and changes to %04b", t.a+1, t.b)
	case reshapes:
		return fmt.Sprintf("%d leads the first instance and retires the second one", t.a+1)
	case refused:
		return fmt.Sprintf("%d is asked to retire the second instance; that is refused, and will be proposed again", t.a+1)
	case gets:
		return fmt.Sprintf("%d gets entry %d of instance %d", t.a+1, t.at, t.in+1)
	case makes:
		return fmt.Sprintf("%d makes more of body %d", t.a+1, t.b+1)
	}
	return fmt.Sprintf("%d gets a snapshot of %d", t.a+1, t.b+1)
}

func (m *model) each(s *cluster, yield func(step, *cluster)) {
	all := m.views(s)
	for x := range members {
		m.leadFirst(s, &all, x, yield)
		m.leadSecond(s, &all, x, yield)
	}
	for i := range members {
		m.replicate(s, &all, i, yield)
		m.fillUp(s, &all, i, yield)
		m.install(s, &all, i, yield)
	}
}

// leads reports whether a member may lead an instance and append to its log: any voter that has all of it.
func (m *model) leads(s *cluster, in, x int) (voters uint8, settled, ok bool) {
	voters, at := m.newest(s, in, s.last[in])
	return voters, at <= s.commit[in], has(voters, x) && s.match[in][x] == s.last[in] && s.last[in] < m.length[in]
}

// appended is the state after a leader has appended an entry.
func (m *model) appended(s *cluster, in, x int, e entry) *cluster {
	n := *s
	n.log[in][n.last[in]] = e
	n.last[in]++
	n.match[in][x] = n.last[in]
	if e.kind() == put {
		n.in[e.arg()], n.holds[e.arg()][x] = uint8(in)+1, whole
	}
	m.decide(&n, in)
	return &n
}

// write appends what clients and the order want.
func (m *model) write(s *cluster, in, x int, settled bool, yield func(step, *cluster)) {
	for b := range m.bodies {
		if s.in[b] == 0 && settled && (in == second || !m.one) {
			yield(step{kind: puts, a: uint8(x), b: uint8(b), in: uint8(in)}, m.appended(s, in, x, put|entry(b)))
			break // the others come later
		}
	}
	yield(step{kind: skips, a: uint8(x), in: uint8(in)}, m.appended(s, in, x, skip))
}

func (m *model) leadSecond(s *cluster, all *[members]view, x int, yield func(step, *cluster)) {
	voters, settled, ok := m.leads(s, second, x)
	v := &all[x]
	if !ok || v.alone {
		return
	}
	m.write(s, second, x, settled, yield)
	next := v.voters[first]
	if settled && next != voters && s.commit[second] == s.last[second] &&
		(m.followFreely || m.keepsBodies(s, all, x, second, next)) {
		yield(step{kind: follows, a: uint8(x), b: next}, m.appended(s, second, x, config|entry(next)))
	}
}

func (m *model) leadFirst(s *cluster, all *[members]view, x int, yield func(step, *cluster)) {
	voters, settled, ok := m.leads(s, first, x)
	if !ok {
		return
	}
	m.write(s, first, x, settled, yield)
	for _, next := range m.next {
		if settled && size(next^voters) == 1 && m.mayChange(s, all, x, voters, next) {
			yield(step{kind: changes, a: uint8(x), b: next}, m.appended(s, first, x, config|entry(next)))
		}
	}
	v := &all[x]
	if v.alone || s.shaped() > 0 {
		return
	}
	followed := !v.pending && v.voters[first] == voters && v.voters[second] == voters
	if followed || m.unchecked || m.unrepeated && s.asked == 1 {
		yield(step{kind: reshapes, a: uint8(x)}, m.appended(s, first, x, reshape))
	}
	if followed && s.asked == 0 {
		n := *s
		n.asked = 1
		yield(step{kind: refused, a: uint8(x)}, &n)
	}
}

// mayChange reports whether the first instance's leader changes its members.
func (m *model) mayChange(s *cluster, all *[members]view, x int, now, next uint8) bool {
	v := &all[x]
	for _, e := range s.log[first][s.commit[first]:s.last[first]] {
		if e.kind() == put {
			return false // no configuration comes after what is coded and not committed
		}
	}
	followed := v.alone || v.voters[second] == now
	switch joins := next &^ now; {
	case v.pending && !m.whilePending, joins != 0 && !followed && !m.joinAtOnce:
		return false
	case joins != 0 && !m.rowsAtOnce && !m.hasRows(s, all, joins):
		return false
	}
	return m.keepsState(s, all, now, next) && m.keepsBodies(s, all, x, first, next)
}

// hasRows reports whether members that join have their rows, as far as they know.
func (m *model) hasRows(s *cluster, all *[members]view, joins uint8) bool {
	for i := range members {
		if has(joins, i) && (s.match[first][i] < s.commit[first] || m.lacking(s, i, first, &all[i])) {
			return false
		}
	}
	return true
}

// replicate gives a member the next entry of an instance. With a body that is not committed comes a row.
func (m *model) replicate(s *cluster, all *[members]view, i int, yield func(step, *cluster)) {
	for in := range s.log {
		at := s.match[in][i]
		if at == s.last[in] || in == second && all[i].alone {
			continue
		}
		n := *s
		n.match[in][i]++
		if e := s.log[in][at]; e.kind() == put && at >= s.commit[in] && n.holds[e.arg()][i] == none {
			n.holds[e.arg()][i] = row
		}
		m.decide(&n, in)
		yield(step{kind: gets, a: uint8(i), in: uint8(in), at: at + 1}, &n)
	}
}

// fillUp lets a member make its row, or a whole copy, of a committed body from what others hold.
func (m *model) fillUp(s *cluster, all *[members]view, i int, yield func(step, *cluster)) {
	for b := range m.bodies {
		if s.in[b] == 0 || s.holds[b][i] == whole || s.holds[b][i] == row && !m.copies {
			continue
		}
		in, at := s.place(b)
		holders, copies := 0, 0
		for _, f := range s.holds[b] {
			if f != none {
				holders++
			}
			if f == whole {
				copies++
			}
		}
		knows := s.match[in][i] >= at || in == second && all[i].alone
		if at <= s.commit[in] && knows && (copies > 0 || holders >= m.k) {
			n := *s
			n.holds[b][i]++
			yield(step{kind: makes, a: uint8(i), b: uint8(b)}, &n)
		}
	}
}

// install gives a member the state of another one that has come further, and to the place where the second instance is
// retired.
func (m *model) install(s *cluster, all *[members]view, i int, yield func(step, *cluster)) {
	to := &all[i]
	for j := range members {
		from := &all[j]
		if !from.alone || from.at == to.at || from.at[first] < to.at[first] || from.at[second] < to.at[second] {
			continue
		}
		n := *s
		for in := range n.match {
			n.match[in][i] = max(n.match[in][i], from.at[in])
		}
		yield(step{kind: installs, a: uint8(i), b: uint8(j)}, &n)
	}
}
