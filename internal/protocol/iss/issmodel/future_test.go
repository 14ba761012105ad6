package issmodel

import "fmt"

// judge describes an error in a state, or one that may follow from it.
func (m *changeModel) judge(s *turn) string {
	for at := range m.first[epochs] {
		if several(s.decided[at]) {
			return fmt.Sprintf("disagreement: two values are decided for sequence number %d", at+1)
		}
	}
	if what := m.configsDiffer(s); what != "" && !m.ignoreConfigs {
		return what
	}
	if m.ignoreFuture {
		return ""
	}
	if what := m.stale(s); what != "" {
		return what
	}
	if what := m.future(*s); what != "" {
		return what
	}
	for i := range seats {
		if s.works(i) && m.mayDie(s, i) {
			n := *s
			n.dead |= 1 << i
			if what := m.future(n); what != "" {
				return fmt.Sprintf("%s, if %d dies", what, i+1)
			}
		}
	}
	return ""
}

// configsDiffer: two members in the same epoch, at the same sequence number, have different configurations.
func (m *changeModel) configsDiffer(s *turn) string {
	for i := range seats {
		for j := range i {
			e := m.now(s, i)
			if e != m.now(s, j) {
				continue
			}
			last := m.first[min(e+1, epochs)]
			for at := m.first[e]; at < max(last, m.first[e]+1); at++ {
				if a, b := m.config(s, i, at), m.config(s, j, at); a != b {
					return fmt.Sprintf("configurations differ: %04b on %d, %04b on %d", a, i+1, b, j+1)
				}
			}
		}
	}
	return ""
}

// stale: a member reads. It asks a quorum of its epoch for the highest sequence number that they voted for or know,
// waits until it has everything up to there, and is missing an earlier decision. If it has to wait for the end of its
// epoch, it asks again in the next one.
func (m *changeModel) stale(s *turn) string {
	written := 0
	for at := range m.first[epochs] {
		if s.decided[at] == first { // to miss ⊥ is harmless
			written = at + 1
		}
	}
	for i := range seats {
		e := m.now(s, i)
		conf := m.config(s, i, m.first[e])
		if !s.works(i) || e == epochs || conf>>i&1 == 0 {
			continue
		}
		for q := uint8(1); q < 1<<seats; q++ {
			if q&^(conf&^(s.dead|s.left)) != 0 || !majority(q, conf) {
				continue
			}
			point := max(m.readIndex(s, q), m.first[e])
			if point < written && point < m.first[e+1] || m.readsOnce && point < written {
				return fmt.Sprintf("stale: %d reads up to sequence number %d by %04b, and %d is decided", i+1, point, q, written)
			}
		}
	}
	return ""
}

func (m *changeModel) readIndex(s *turn, q uint8) (point int) {
	for at := range m.first[epochs] {
		for x := range seats {
			if q>>x&1 == 1 && s.knows(x, at) != 0 {
				point = at + 1
			}
		}
		for b := range tries {
			if s.votes[at][b]&q != 0 {
				point = at + 1
			}
		}
	}
	return point
}

// future: faults end, no member leaves any more, and all live members continue as far as they can. They must end both
// epochs, with the earlier decisions, and members that are to leave must be able to.
func (m *changeModel) future(n turn) string {
	for moved := true; moved; {
		moved = false
		for at := range m.first[epochs] {
			for i := range seats {
				if !n.works(i) || n.knows(i, at) != 0 || !m.needs(&n, i, m.epochOf(at)) {
					continue
				}
				v := m.learned(&n, i, at)
				if v == 0 {
					var what string
					if v, what = m.decideNext(&n, i, at); what != "" {
						return what
					}
				}
				if v != 0 {
					m.learn(&n, i, at, v)
					moved = true
				}
			}
		}
	}
	return m.ended(&n)
}

// learned is the decision that a member learns from live ones.
func (m *changeModel) learned(n *turn, i, at int) uint8 {
	for x := range seats {
		if v := n.knows(x, at); v != 0 && n.works(x) && m.receives(n, i, x, at) {
			return v
		}
	}
	return 0
}

// decideNext is what a new ballot decides, 0 if it gets no quorum. Any outcome is possible.
func (m *changeModel) decideNext(n *turn, i, at int) (uint8, string) {
	conf, able := m.config(n, i, at), uint8(0)
	if conf>>i&1 == 0 {
		return 0, ""
	}
	for x := range seats {
		if n.works(x) && m.takesPart(n, x, at) {
			able |= 1 << x
		}
	}
	value := uint8(0)
	for q := uint8(1); q < 1<<seats; q++ {
		if q&^(able&conf) != 0 || !majority(q, conf) {
			continue
		}
		value = m.found(n, at, q, tries)
		if decided := n.decided[at]; decided != 0 && decided != value {
			return 0, fmt.Sprintf("lost: sequence number %d is decided anew by %04b", at+1, q)
		}
	}
	return value, ""
}

// ended: all live members of the cluster have ended both epochs, the next one has a quorum, and no member must stay
// forever.
func (m *changeModel) ended(n *turn) string {
	conf, _ := m.outcome(n, epochs) // none, if the last epoch did not end
	for i := range seats {
		if !n.works(i) || (conf|firstConfig)>>i&1 == 0 {
			continue
		}
		e := m.now(n, i)
		if e == epochs && m.has(n, i, 0) {
			continue
		}
		for at := range m.first[epochs] {
			if n.decided[at] != 0 && n.knows(i, at) == 0 && m.nobodyKnows(n, at) {
				return fmt.Sprintf("lost: nobody that works finds the decision of sequence number %d", at+1)
			}
		}
		return fmt.Sprintf("stuck: %d does not end epoch %d", i+1, e)
	}
	if !majority(^(n.dead | n.left), conf) {
		return fmt.Sprintf("stuck: the last configuration %04b has no quorum", conf)
	}
	return m.allLeave(n)
}

func (m *changeModel) nobodyKnows(n *turn, at int) bool {
	for x := range seats {
		if n.works(x) && n.knows(x, at) != 0 {
			return false
		}
	}
	return true
}

func (m *changeModel) allLeave(n *turn) string {
	for i := range seats {
		for e := range epochs {
			old, next := m.config(n, i, m.first[e]), m.config(n, i, m.first[e+1])
			if n.works(i) && old>>i&1 == 1 && next>>i&1 == 0 && !m.leavesOwn && !m.handedOver(n, e, old, next) {
				return fmt.Sprintf("stuck: %d may never leave", i+1)
			}
		}
	}
	return ""
}
