package leasemodel

import "fmt"

// step says what happens: who does it, with whom, or to which message.
type step struct {
	what string
	a, b int
	x    message
}

// beginning: member 0 leads term 1, and all have its first entry.
func (c *model) beginning() (s state) {
	for i := range s.m {
		m := &s.m[i]
		m.term, m.vote, m.lead, m.last, m.commit, m.log[0] = 1, 1, 1, 1, 1, 1
	}
	if c.fresh {
		s.m[2] = member{}
	}
	l := &s.m[0]
	l.role, l.first, l.match = leader, 1, [members]uint8{0, 1, s.m[2].last}
	s.logs[1][0], s.acked = 1, 1
	return s
}

type doer func(t step, do func(n *state))

// each calls yield for all that may come next.
func (c *model) each(s *state, yield func(step, *state)) {
	do := func(t step, do func(n *state)) {
		n := *s
		do(&n)
		yield(t, &n)
	}
	do(step{what: "time passes"}, (*state).tick)
	c.messages(s, do)
	for i := range members {
		m := &s.m[i]
		if m.role == leader {
			c.leads(s, i, do)
		} else if m.role != precandidate && m.heard+timeout <= 0 && m.term < c.terms && s.used.stands < c.may.stands &&
			c.mayStand(m, i) {
			do(step{what: "%d asks whether to stand", a: i}, func(n *state) {
				n.used.stands++
				c.campaign(n, i)
			})
		}
		if m.role == follower && m.lead != 0 {
			c.forwards(s, i, do)
		}
		if s.used.restarts < c.may.restarts {
			do(step{what: "%d restarts", a: i}, func(n *state) { c.restart(n, i) })
		}
	}
}

func (c *model) restart(s *state, i int) {
	m := &s.m[i]
	s.used.restarts++
	m.follow(m.term, 0)
	m.lead, m.heard = 0, 0
	if c.restartForgets || m.term == 0 { // it has answered no leader
		m.heard = -timeout
	}
}

// messages: one is delivered. It is lost only if there is no space for another, for what is never delivered is as good
// as lost.
func (c *model) messages(s *state, do doer) {
	without := func(n *state, k int) {
		copy(n.net[k:], n.net[k+1:])
		n.net[most-1] = message{}
	}
	for k, x := range s.net {
		if x.kind == 0 {
			return
		}
		if s.net[c.flying-1].kind != 0 {
			do(step{what: "lost", x: x}, func(n *state) { without(n, k) })
		}
		if c.ordered && s.before(k) {
			continue
		}
		do(step{what: "delivered", x: x}, func(n *state) {
			without(n, k)
			c.receive(n, x)
		})
	}
}

// before reports whether another message of the same link goes first.
func (s *state) before(k int) bool {
	for _, y := range s.net[:k] {
		if y.from == s.net[k].from && y.to == s.net[k].to {
			return true
		}
	}
	return false
}

// leads: what a leader may do.
func (c *model) leads(s *state, i int, do doer) {
	m := &s.m[i]
	stage, at := m.stage()
	for p := range members {
		if p == i {
			continue
		}
		c.sends(s, i, p, m.last, do)
		if c.beats && m.match[p] != m.last {
			c.sends(s, i, p, m.match[p], do)
		}
		if s.used.transfers < c.may.transfers && m.match[p] == m.last && c.votes(stage, p) {
			do(step{what: "%d hands over to %d", a: i, b: p}, func(n *state) {
				n.used.transfers++
				n.m[i].handed = true
				c.send(n, message{kind: timeoutNow, from: uint8(i), to: uint8(p), term: m.term})
			})
		}
	}
	if s.used.writes < c.may.writes && m.last < slots && m.term == 1 {
		do(step{what: "%d takes a write", a: i}, func(n *state) {
			n.used.writes++
			n.append(i, 0)
			c.advance(n, i)
		})
	}
	if to := c.following(stage); to != 0 && at <= m.commit && m.commit >= m.first && m.last < slots && !m.handed {
		do(step{what: "%d changes the members", a: i}, func(n *state) {
			n.append(i, to)
			c.advance(n, i)
		})
	}
	if c.byIndex && !c.forwarded && s.read.state == 0 && m.commit >= m.first {
		do(step{what: "%d is asked for a read", a: i}, func(n *state) {
			n.read = read{uint8(i), m.term, m.commit, s.acked, asked}
			n.m[i].round = 0
			c.serve(n, i)
		})
	}
}

// forwards: a follower is asked for the read. With questionBefore its question stands for an earlier read.
func (c *model) forwards(s *state, i int, do doer) {
	m := &s.m[i]
	x := message{kind: ask, from: uint8(i), to: m.lead - 1, extra: s.acked}
	switch {
	case c.questionBefore && s.read.state == 0:
		do(step{what: "sent", x: x}, func(n *state) { c.send(n, x) })
	case c.forwarded && s.read.state == 0:
		do(step{what: "sent", x: x}, func(n *state) {
			n.read = read{by: uint8(i), must: s.acked, state: underWay}
			c.send(n, x)
		})
	}
}

// following is the configuration that comes after one; 0: none.
func (c *model) following(stage uint8) uint8 {
	switch {
	case c.voters == c.later || stage == next>>3:
		return 0
	case stage == 0 && c.joint:
		return joint
	}
	return next
}

func (c *model) sends(s *state, i, p int, index uint8, do doer) {
	m := &s.m[i]
	x := message{kind: app, from: uint8(i), to: uint8(p), term: m.term, index: index, extra: m.commit,
		round: s.reads(uint8(i))}
	do(step{what: "sent", x: x}, func(n *state) { c.send(n, x) })
}

// tick: instants are relative to now.
func (s *state) tick() {
	for i := range s.m {
		m := &s.m[i]
		m.heard--
		if m.role == leader {
			for p := range m.confirmed {
				m.confirmed[p] = max(m.confirmed[p]-1, never)
			}
		}
	}
	for i := range s.net {
		if x := &s.net[i]; x.dated() {
			x.at--
		}
	}
}

// dated reports whether the instant at which a message was sent matters.
func (x *message) dated() bool { return x.kind == app || x.kind == appResp && !x.refused }

// tell says a step in words.
func tell(t step) string {
	if t.x.kind != 0 {
		return fmt.Sprintf("%s: %s", t.what, &t.x)
	}
	switch t.what {
	case "time passes":
		return t.what
	case "%d hands over to %d":
		return fmt.Sprintf(t.what, t.a, t.b)
	}
	return fmt.Sprintf(t.what, t.a)
}

func (x *message) String() string {
	names := [...]string{preVote: "PreVote", preVoteResp: "PreVoteResp", vote: "Vote", voteResp: "VoteResp", app: "Append",
		appResp: "AppendResp", timeoutNow: "TimeoutNow", ask: "Read"}
	text := fmt.Sprintf("%d→%d %s of term %d, up to %d", x.from, x.to, names[x.kind], x.term, x.index)
	if x.dated() {
		text += fmt.Sprintf(", sent %d ticks ago", -x.at)
	}
	if x.refused {
		text += ": no"
	}
	return text
}
