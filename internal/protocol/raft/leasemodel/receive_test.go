package leasemodel

// send puts a message in progress, unless it is already. Without room it is lost.
func (c *model) send(s *state, x message) {
	free := -1
	for i := range c.flying {
		if s.net[i] == x {
			return
		}
		if free < 0 && s.net[i].kind == 0 {
			free = i
		}
	}
	if free >= 0 {
		s.net[free] = x
	}
}

// answer sends the answer to a message, in the member's term unless it names one.
func (c *model) answer(s *state, x, a message) {
	a.from, a.to = x.to, x.from
	if a.term == 0 {
		a.term = s.m[x.to].term
	}
	c.send(s, a)
}

// receive is what a member does with a message: it compares terms, then acts.
func (c *model) receive(s *state, x message) {
	if x.kind == ask {
		c.onAsk(s, x)
		return
	}
	if m := &s.m[x.to]; x.term < m.term {
		c.refuseOld(s, x)
		return
	} else if x.term > m.term && !c.enter(s, x) {
		return
	}
	switch x.kind {
	case preVote, vote:
		c.onVote(s, x)
	case preVoteResp, voteResp:
		c.onBallot(s, x)
	case app:
		c.onAppend(s, x)
	case appResp:
		c.onAppended(s, x)
	case timeoutNow:
		m, i := &s.m[x.to], int(x.to)
		if m.role == follower && m.lead == x.from+1 && m.term < c.terms && c.mayStand(m, i) {
			c.elect(s, i, true)
		}
	}
}

// refuseOld shows the member's higher term to one that waits for an answer.
func (c *model) refuseOld(s *state, x message) {
	kinds := [...]kind{preVote: preVoteResp, vote: voteResp, app: appResp, timeoutNow: 0}
	if k := kinds[x.kind]; k != 0 && x.kind != preVoteResp && x.kind != voteResp && x.kind != appResp {
		c.answer(s, x, message{kind: k, refused: true})
	}
}

// enter takes a member into a message's higher term, and reports whether the message counts.
func (c *model) enter(s *state, x message) bool {
	m := &s.m[x.to]
	switch {
	case x.kind == preVote, x.kind == preVoteResp && !x.refused:
		return true // about a term that no one has entered yet
	case x.kind == vote && !x.forced && m.sticky() && !c.promiseOfPreVote:
		return false
	case x.kind == app:
		m.follow(x.term, x.from+1)
	default:
		m.follow(x.term, 0)
	}
	return true
}

// follow makes a member a follower in a term, of a leader if one is known.
func (m *member) follow(term, lead uint8) {
	if m.role == leader {
		m.heard = 0
	}
	if m.role != follower {
		m.role, m.lead, m.ballots = follower, 0, 0
		m.first, m.handed, m.match, m.round, m.confirmed = 0, false, [members]uint8{}, 0, [members]int8{}
	}
	if term > m.term {
		m.term, m.vote, m.lead = term, 0, 0
	}
	if lead != 0 {
		m.lead = lead
	}
}

func (c *model) onVote(s *state, x message) {
	m := &s.m[x.to]
	grant := x.extra > m.lastTerm() || x.extra == m.lastTerm() && x.index >= m.last
	if x.kind == preVote {
		if grant && x.term > m.term && !m.sticky() {
			c.answer(s, x, message{kind: preVoteResp, term: x.term})
			return
		}
		c.answer(s, x, message{kind: preVoteResp, refused: true})
		return
	}
	free := m.vote == 0 && m.lead == 0 && (x.forced || !m.sticky() || c.promiseOfTerm || c.promiseOfPreVote)
	if grant && (m.vote == x.from+1 || free) {
		m.vote = x.from + 1
		c.answer(s, x, message{kind: voteResp})
	}
}

func (c *model) onBallot(s *state, x message) {
	m := &s.m[x.to]
	asks := x.kind == preVoteResp && m.role == precandidate && x.term == m.term+1 ||
		x.kind == voteResp && m.role == candidate && x.term == m.term
	if asks && !x.refused {
		m.ballots |= 1 << x.from
		c.tally(s, int(x.to))
	}
}

// onAppend: a follower takes the leader's log up to the message's index.
func (c *model) onAppend(s *state, x message) {
	m := &s.m[x.to]
	if m.role == leader {
		return
	}
	m.follow(x.term, x.from+1)
	m.heard = 0
	theirs := &s.logs[x.term]
	for i := range x.index {
		if i < m.last && m.log[i] != theirs[i] {
			clear(m.log[i:])
			m.last = i
		}
		if i >= m.last {
			m.log[i], m.last = theirs[i], i+1
		}
	}
	m.commit = max(m.commit, min(x.extra, x.index))
	c.answer(s, x, message{kind: appResp, index: x.index, at: x.at, round: x.round})
}

// onAsk: a member that asked had elected no leader of a higher term than this one's when it asked. If it and the leader
// are enough to decide, its question confirms itself. It has no term.
func (c *model) onAsk(s *state, x message) {
	i := int(x.to)
	m, stage := &s.m[i], uint8(0)
	if c.questionBefore {
		if m.role == leader && s.reads(x.to) {
			m.round |= 1 << x.from
			c.serve(s, i)
		}
		return
	}
	stage, _ = m.stage()
	switch {
	case m.role != leader || m.commit < m.first && !c.questionUnready:
		s.read.state = answered // refused
	case c.enough(stage, 1<<i|1<<x.from):
		s.missed = m.commit < x.extra
		s.read.state = answered
	default:
		s.read = read{x.to, m.term, m.commit, x.extra, asked}
		m.round = 0
		c.serve(s, i)
	}
}

func (c *model) onAppended(s *state, x message) {
	m := &s.m[x.to]
	if m.role != leader || x.refused {
		return
	}
	at := x.at
	if c.leaseFromAnswer {
		at = 0
	}
	m.confirmed[x.from] = max(m.confirmed[x.from], at)
	m.match[x.from] = max(m.match[x.from], x.index)
	if s.reads(x.to) && (x.round || c.readOldRound) {
		m.round |= 1 << x.from
	}
	c.advance(s, int(x.to))
}
