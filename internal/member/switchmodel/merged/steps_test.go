package merged

import "fmt"

type step struct {
	verb string
	a, b int
	e    entry
}

func (t step) String() string {
	if t.e == 0 {
		return fmt.Sprintf("%s %d %d", t.verb, t.a, t.b)
	}
	return fmt.Sprintf("%s %d %s", t.verb, t.a, t.e)
}

func (e entry) String() string {
	return fmt.Sprintf("%s %04b %02b", [...]string{"", "put", "coded", "config", "seal"}[e>>8], e.set(), e.high())
}

func show(s *cluster) string {
	return fmt.Sprintf("logs %v, decided %v, members have %v, begun %04b, whole %04b", s.log, s.commit, s.match, s.begun,
		s.whole)
}

func (m *model) each(s *cluster, yield func(step, *cluster)) {
	for in := range instances {
		if s.last[in] == m.length[in] {
			continue
		}
		for _, e := range m.choices(s, in) {
			n := *s
			n.log[in][n.last[in]] = e
			n.last[in]++
			if e.kind() == coded {
				n.bodies++
			}
			yield(step{"append", in, 0, e}, &n)
		}
	}
	for x := range members {
		if m.part(x) == 0 {
			continue
		}
		m.copying(s, x, yield)
		m.beginning(s, x, yield)
		m.filling(s, x, yield)
		if m.reads && s.commit[behind] > 0 && !has(s.begun, x) && m.confirmed(s) {
			n := *s
			n.stale = true
			yield(step{"read", x, 0, 0}, &n)
		}
	}
}

// confirmed: a majority of the first instance's voters, none of which has begun, confirms a read.
func (m *model) confirmed(s *cluster) bool {
	now, _ := m.newest(s, first, s.commit[first])
	return m.secondReads || count(now.set()&^s.begun) >= m.quorum(first, now.set())
}

// choices are what the leader of an instance may append.
func (m *model) choices(s *cluster, in int) (out []entry) {
	if in == behind {
		if s.begun != 0 {
			out = append(out, put)
		}
		return out
	}
	out = append(out, put)
	if s.bodies < m.bodies {
		out = append(out, coded|entry(s.bodies))
	}
	now, _ := m.newest(s, in, s.last[in])
	if in == second { // it follows the first instance's change when that is decided
		if to, _ := m.newest(s, first, s.commit[first]); to != now {
			out = append(out, to)
		}
		return out
	}
	seals := 0
	for _, e := range s.log[first][:s.last[first]] {
		if e.kind() == seal {
			seals++
		}
	}
	done, _ := m.newest(s, second, s.commit[second])
	for _, to := range m.next {
		if to != now.set() && seals == 0 && (done == now || m.hasty) {
			out = append(out, config|entry(now.high()+1)<<4|entry(to))
		}
	}
	if seals < m.seals {
		if checked := m.checked(s); !m.byProposer || checked == 1<<s.bodies-1 {
			out = append(out, seal|entry(checked)<<4|entry(now.set()))
		}
	}
	return out
}

// checked are the bodies that any majority of the new order can read.
func (m *model) checked(s *cluster) (set uint8) {
	now, _ := m.newest(s, first, s.last[first])
	for b := range s.bodies {
		if n := count(now.set()); count(s.whole[b]&now.set()) > n-(n/2+1) {
			set |= 1 << b
		}
	}
	return set
}

// copying gives a member the next entry of an instance that it takes part in.
func (m *model) copying(s *cluster, x int, yield func(step, *cluster)) {
	for in := range instances {
		at := s.match[in][x]
		if at == s.last[in] || has(s.begun, x) != (in == behind) {
			continue
		}
		n := *s
		n.match[in][x]++
		m.decide(&n, in)
		yield(step{"copy", x, in, 0}, &n)
	}
}

// beginning lets a member begin that knows all up to p to be decided, or is told by one that has begun: Sealed and
// entries, or a snapshot.
func (m *model) beginning(s *cluster, x int, yield func(step, *cluster)) {
	if has(s.begun, x) {
		return
	}
	if m.sees(s, x).sealed {
		n := *s
		n.begun |= 1 << x
		yield(step{"begin", x, 0, 0}, &n)
	}
	for y := range members {
		if !has(s.begun, y) {
			continue
		}
		n := *s
		from := m.sees(s, y)
		for in := range 2 {
			n.match[in][x] = max(n.match[in][x], from.at[in])
			m.decide(&n, in)
		}
		n.begun |= 1 << x
		yield(step{"install", x, y, 0}, &n)
		return
	}
}

// filling gives a member a whole copy of a decided body.
func (m *model) filling(s *cluster, x int, yield func(step, *cluster)) {
	for b := range s.bodies {
		in, at := s.place(b)
		if has(s.whole[b], x) || s.commit[in] < at {
			continue
		}
		if s.whole[b] != 0 || count(s.holders(in, at)) >= m.rows {
			n := *s
			n.whole[b] |= 1 << x
			yield(step{"fill", x, int(b), 0}, &n)
		}
	}
}

// place is where a body is, in the log of its instance, from 1.
func (s *cluster) place(body uint8) (in int, at uint8) {
	for in := range 2 {
		for i, e := range s.log[in][:s.last[in]] {
			if e == coded|entry(body) {
				return in, uint8(i) + 1
			}
		}
	}
	panic("a body without entry")
}

// holders are the members that have an entry, and with it a row.
func (s *cluster) holders(in int, at uint8) (set uint8) {
	for x := range members {
		if s.match[in][x] >= at {
			set |= 1 << x
		}
	}
	return set
}
