package issmodel

import "math/bits"

func (m *changeModel) each(s *turn, yield func(step, *turn)) {
	do := func(text string, a, b, c, d int, f func(n *turn)) {
		n := *s
		f(&n)
		m.normalize(&n)
		if n != *s {
			yield(step{text, [4]uint8{uint8(a), uint8(b), uint8(c), uint8(d)}}, &n)
		}
	}
	for i := range seats {
		if !s.works(i) {
			continue
		}
		if e := m.now(s, i); e < epochs {
			m.votingSteps(s, i, e, do)
			m.ballotSteps(s, i, e, do)
		}
		for e := range epochs {
			if m.needs(s, i, e) {
				m.learningSteps(s, i, e, do)
			}
		}
		m.leavingSteps(s, i, do)
		if m.mayDie(s, i) {
			do("{m} dies", i, 0, 0, 0, func(n *turn) { n.dead |= 1 << i; m.forget(n, i) })
		}
	}
}

type turnDoer func(text string, a, b, c, d int, f func(n *turn))

// votingSteps: in ballot 0 the leader's proposals arrive as soon as it has begun the epoch.
func (m *changeModel) votingSteps(s *turn, i, e int, do turnDoer) {
	for at := m.first[e]; at < m.first[e+1]; at++ {
		for b := uint8(0); b <= m.highest[e]; b++ {
			v := s.asked[at][b]
			if b == 0 && m.begun(s, i, e) {
				v = first
			}
			if v == 0 || s.promise[e][i] > b || s.votes[at][b]>>i&1 == 1 || !m.takesPart(s, i, at) {
				continue
			}
			do("{m} votes for {v} at sequence number {n} in ballot {n}", i, int(v), at+1, int(b), func(n *turn) {
				n.promise[e][i], n.asked[at][b] = b, v
				n.votes[at][b] |= 1 << i
				if majority(n.votes[at][b], m.config(n, i, at)) {
					n.decided[at] |= v
				}
			})
		}
	}
}

// ballotSteps: a member opens a ballot of its epoch, or promises, or proposes in the ballot that it
// has opened.
func (m *changeModel) ballotSteps(s *turn, i, e int, do turnDoer) {
	for b := uint8(1); b <= m.highest[e]; b++ {
		if s.opener[e][b] == uint8(i)+1 {
			for at := m.first[e]; at < m.first[e+1]; at++ {
				m.proposeSteps(s, i, at, b, do)
			}
		}
		part := false
		for at := m.first[e]; at < m.first[e+1]; at++ {
			part = part || m.takesPart(s, i, at)
		}
		if !part || s.promise[e][i] >= b {
			continue
		}
		text := "{m} promises ballot {n} of epoch {n}"
		if s.opener[e][b] == 0 {
			text = "{m} opens ballot {n} of epoch {n}"
		}
		do(text, i, int(b), e, 0, func(n *turn) { m.promises(n, i, e, b) })
	}
}

func (m *changeModel) promises(n *turn, i, e int, b uint8) {
	if n.opener[e][b] == 0 {
		n.opener[e][b] = uint8(i) + 1
	}
	n.promise[e][i] = b
	if n.opener[e][b] == gone {
		return
	}
	n.promised[e][b] |= 1 << i
}

// proposeSteps: the proposals that different quorums of promises permit.
func (m *changeModel) proposeSteps(s *turn, i, at int, b uint8, do turnDoer) {
	e := m.epochOf(at)
	conf, offered := m.config(s, i, at), uint8(0)
	if s.asked[at][b] != 0 || s.knows(i, at) != 0 {
		return
	}
	for q := uint8(1); q < 1<<seats; q++ {
		if q&^(s.promised[e][b]&conf) != 0 || !majority(q, conf) {
			continue
		}
		v := m.found(s, at, q, b)
		if offered&v != 0 {
			continue
		}
		if !m.fast { // otherwise a quorum that can decide at once may come later
			offered |= v
		}
		do("{m} proposes {v} for sequence number {n} in ballot {n}", i, int(v), at+1, int(b), func(n *turn) {
			n.asked[at][b] = v
			if m.atOnce(n, at, q&conf == conf, b) {
				n.fasted |= 1 << at
				n.decided[at] |= bottom
			}
			done := true
			for other := m.first[e]; other < m.first[e+1]; other++ {
				done = done && (n.asked[other][b] != 0 || n.knows(i, other) != 0)
			}
			if done {
				m.spend(n, e, b)
			}
		})
	}
}

// atOnce reports whether a ballot decides ⊥ when it proposes it.
func (m *changeModel) atOnce(s *turn, at int, all bool, b uint8) bool {
	if last := at+1 == m.first[m.epochOf(at)+1]; !m.fast || !all || last && m.fastNotLast {
		return false
	}
	for lower := range b {
		if s.votes[at][lower] != 0 {
			return false
		}
	}
	return true
}

// found is the vote of the highest ballot below one, or ⊥.
func (m *changeModel) found(s *turn, at int, q, below uint8) uint8 {
	for b := int(below) - 1; b >= 0; b-- {
		if s.votes[at][b]&q != 0 {
			return s.asked[at][b]
		}
	}
	return bottom
}

func (m *changeModel) spend(n *turn, e int, b uint8) {
	n.opener[e][b], n.promised[e][b] = gone, 0
}

// forget: a member that stops no longer proposes in the ballots that it has opened.
func (m *changeModel) forget(n *turn, i int) {
	for e := range epochs {
		for b := range uint8(tries) {
			if n.opener[e][b] == uint8(i)+1 {
				m.spend(n, e, b)
			}
		}
	}
}

// learningSteps: a member of the epoch counts votes, or any member receives the decisions from a live one that has
// them. It learns all of an epoch at once. If the model examines the states in between, it learns one decision after
// the other.
func (m *changeModel) learningSteps(s *turn, i, e int, do turnDoer) {
	if m.oneByOne() {
		for at := m.first[e]; at < m.first[e+1]; at++ {
			if from, v := m.source(s, i, at); s.knows(i, at) == 0 && from >= 0 {
				do("{m} learns {v} at sequence number {n} from {m}", i, int(v), at+1, from, func(n *turn) { m.learn(n, i, at, v) })
			}
		}
	} else if m.learnsAll(s, i, e) {
		do("{m} ends epoch {n}", i, e, 0, 0, func(n *turn) {
			for at := m.first[e]; at < m.first[e+1]; at++ {
				m.learn(n, i, at, n.decided[at])
			}
		})
	}
	if next, known := m.outcome(s, 1); m.joinsEarly && i == joiner && e == 0 && known && next>>i&1 == 1 {
		do("{m} takes part in epoch 1 without the decisions of epoch 0", i, 0, 0, 0, func(n *turn) { n.early = 1 })
	}
}

func (m *changeModel) oneByOne() bool { return m.midEpoch || m.asLearned }

func (m *changeModel) learnsAll(s *turn, i, e int) bool {
	for at := m.first[e]; at < m.first[e+1]; at++ {
		if from, _ := m.source(s, i, at); from < 0 {
			return false
		}
	}
	return true
}

// source is a member from which another one can learn a decision: itself by counting votes, or a live one that has
// it; −1: none.
func (m *changeModel) source(s *turn, i, at int) (from int, value uint8) {
	conf := m.config(s, i, at)
	if s.fasted>>at&1 == 1 {
		return i, bottom
	}
	for b := range tries {
		if conf>>i&1 == 1 && majority(s.votes[at][b], conf) {
			return i, s.asked[at][b]
		}
	}
	for x := range seats {
		if v := s.knows(x, at); v != 0 && s.works(x) && m.receives(s, i, x, at) {
			return x, v
		}
	}
	return -1, 0
}

func (m *changeModel) learn(n *turn, i, at int, v uint8) {
	if m.asLearned && at == 1 && m.first[1] == 2 && n.knows(i, 0) == 0 {
		n.swapped |= 1 << i
	}
	n.known[i] |= v << (2 * at)
	n.decided[at] |= v
	if m.has(n, joiner, 0) {
		n.early = 0
	}
}

// receives reports whether a member receives decisions from another one.
func (m *changeModel) receives(s *turn, i, from, at int) bool {
	met := uint8(0)
	switch {
	case m.noStrangers:
		for e := range m.now(s, i) + 1 {
			met |= m.config(s, i, m.first[e])
		}
	case m.newcomersSilent:
		met = m.config(s, from, m.first[m.epochOf(at)])
	default:
		return true
	}
	return met>>from&1 == 1
}

// leavingSteps: a member that is not in the next configuration leaves.
func (m *changeModel) leavingSteps(s *turn, i int, do turnDoer) {
	for e := range m.now(s, i) {
		old, next := m.config(s, i, m.first[e]), m.config(s, i, m.first[e+1])
		if old>>i&1 == 0 || next>>i&1 == 1 {
			continue
		}
		if m.leavesOwn || m.handedOver(s, e, old, next) {
			do("{m} leaves", i, 0, 0, 0, func(n *turn) { n.left |= 1 << i; m.forget(n, i) })
		}
	}
}

// mayDie: no configuration, with the member that may join it, loses more members than it tolerates, as long as it is
// needed.
func (m *changeModel) mayDie(s *turn, i int) bool {
	if bits.OnesCount8(s.dead) >= m.deaths {
		return false
	}
	dead := s.dead | 1<<i
	for e := range epochs + 1 {
		conf, known := m.outcome(s, e)
		if !known {
			break
		}
		if next, known := m.outcome(s, min(e+1, epochs)); e < epochs && known && m.handedOver(s, e, conf, next) {
			continue
		}
		may := conf
		if !m.joinerSpared {
			may |= 1 << joiner
		}
		if bits.OnesCount8(dead&may) > survives(conf) {
			return false
		}
	}
	return true
}
