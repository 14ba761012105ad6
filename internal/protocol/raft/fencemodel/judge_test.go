package fencemodel

import "fmt"

// judges says which of the invariants a search looks at.
type judges struct {
	ignoreOrder   bool // do not judge "below"
	ignoreHolders bool // do not judge "held"
	inForce       bool // judge "held" by the configurations in leaders' logs, committed or not
	everything    bool // continue where nothing can be lost any more
	stuck         bool // judge that accepting continues after a healed cluster
}

// judge describes what is wrong with a state; "" nothing.
func (m *model) judge(s *state) string {
	for e := uint8(1); e <= m.entries; e++ {
		if s.accepted[e-1] == 0 {
			continue
		}
		if what := m.lost(s, e); what != "" {
			return what
		}
		if what := m.held(s, e); what != "" && !m.ignoreHolders {
			return what
		}
		if what := m.below(s, e); what != "" && !m.ignoreOrder {
			return what
		}
	}
	if m.stuck {
		return m.stands(s)
	}
	return ""
}

// lost: whoever may be elected finds an accepted entry in its log, or on a disk among those that
// elect it, and may still confirm it. The others may be dead forever.
func (m *model) lost(s *state, e uint8) (what string) {
	for c := range members {
		v := m.logView(s, c)
		if v.has(m, e) {
			continue
		}
		m.quorums(s, c, func(q uint8) {
			holder := false
			for i := range members {
				holder = holder || q>>i&1 == 1 && s.cells[i] >= e
			}
			if !holder || v.closed || v.off {
				what = fmt.Sprintf("lost: entry %d, accepted in generation %d: member %d may be elected by %04b", e,
					s.accepted[e-1], c+1, q)
			}
		})
	}
	return what
}

// held (L5): the signal of an accepted entry is committed, or a quorum of each set of the last
// committed configuration has it on its disk.
func (m *model) held(s *state, e uint8) string {
	v := m.view(&s.done, s.done.len())
	var who uint8
	for i, high := range s.cells {
		if high >= e {
			who |= 1 << i
		}
	}
	if m.inForce {
		for l := range members {
			if in := m.logView(s, l); s.lead[l] == 1 && !v.has(m, e) && !m.configs[in.conf].decides(who) {
				return fmt.Sprintf("held: entry %d is on %04b, not enough for what member %d leads", e, who, l+1)
			}
		}
	}
	if v.has(m, e) || m.configs[v.conf].decides(who) {
		return ""
	}
	return fmt.Sprintf("held: entry %d is on %04b, not enough for configuration %d", e, who, v.conf)
}

// below (L6): in every log the signal of an entry that was accepted in a generation is below the
// configuration that ends it.
func (m *model) below(s *state, e uint8) string {
	for i := range members {
		j := &s.log[i]
		for n := range j.len() {
			if kindOf(j[n]) != change {
				continue
			}
			if v := m.view(j, n); v.gen >= s.accepted[e-1] && !v.has(m, e) {
				return fmt.Sprintf("below: entry %d, accepted in generation %d: the log of member %d ends generation %d at %d "+
					"without it", e, s.accepted[e-1], i+1, v.gen, n+1)
			}
		}
	}
	return ""
}

// stands: when faults end and no one changes the members, no member refuses the owner's generation
// forever.
func (m *model) stands(s *state) string {
	if s.alive == 0 {
		return ""
	}
	n := *s
	healed := *m
	healed.terms, healed.length, healed.gens = 7, slots, 7
	best := -1
	for c := range members {
		healed.quorums(&n, c, func(uint8) {
			if v := healed.logView(&n, c); best < 0 || v.n > n.log[best].len() {
				best = c
			}
		})
	}
	if best < 0 {
		return "stuck: nobody can be elected"
	}
	healed.electAll(&n, best)
	for range 4 {
		healed.spread(&n, best)
		if healed.renewal(&n, best) {
			healed.spread(&n, best)
		}
		for healed.adopt(&n) {
		}
	}
	v := healed.logView(&n, best)
	if v.closed {
		return ""
	}
	for i, f := range n.fence {
		if f > n.gen && healed.configs[n.conf].has(i) {
			return fmt.Sprintf("stuck: member %d refuses generation %d for ever, its fence is %d", i+1, n.gen, f)
		}
	}
	return ""
}

func (m *model) electAll(s *state, c int) {
	term := uint8(0)
	for _, t := range s.term {
		term = max(term, t)
	}
	for i := range members {
		s.follow(i, term+1)
	}
	s.lead[c] = 1
	m.append(s, c, noop, 0)
}

func (m *model) spread(s *state, l int) {
	for f := range members {
		for f != l && common(&s.log[l], &s.log[f]) < s.log[l].len() {
			m.replicate(s, l, f)
		}
	}
}

// renewal lets the leader start a generation if the rules make it.
func (m *model) renewal(s *state, l int) bool {
	v := m.logView(s, l)
	var next *state
	m.generations(s, l, &v, func(_ string, _, _ int, f func(n *state) bool) {
		n := *s
		if f(&n) {
			next = &n
		}
	})
	if next == nil {
		return false
	}
	*s = *next
	return true
}
