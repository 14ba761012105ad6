package epaxosmodel

import (
	"fmt"
	"math/bits"
)

// judge describes an error in a state, or one that may follow from it.
func (m *model) judge(s *cluster) string {
	if what := m.wrong(s); what != "" {
		return what
	}
	if !m.judgeFuture {
		return ""
	}
	for alive := uint8(1); alive < 1<<m.members; alive++ {
		if bits.OnesCount8(alive) == m.slow() {
			for _, again := range []bool{false, true} {
				if what := m.future(*s, alive, again); what != "" {
					return what
				}
			}
		}
	}
	return ""
}

func (m *model) wrong(s *cluster) string {
	if s.clash != 0 {
		return "disagreement: two values are decided for one command"
	}
	for i := range m.commands {
		for j := range i {
			a, b := s.decided[i], s.decided[j]
			if a != 0 && b != 0 && (a|b)&noop == 0 && m.interfere(i, j) && !has(a, j) && !has(b, i) {
				return fmt.Sprintf("invisible: neither of %c and %c depends on the other", 'A'+j, 'A'+i)
			}
		}
	}
	return ""
}

// future stops all other members, and has one of the live ones recover all commands that they know. The recoveries
// must end, and decisions must not change. Either all restart before, or waiting recoveries continue to wait.
func (m *model) future(s cluster, alive uint8, again bool) string {
	for at := range m.members {
		if again || alive>>at&1 == 0 {
			m.crash(&s, at)
		}
	}
	leader := bits.TrailingZeros8(alive)
	for moved := true; moved; {
		moved = false
		for i := range m.commands {
			for at := range m.members {
				moved = alive>>at&1 == 1 && m.advance(&s, i, at, leader, alive) || moved
			}
		}
		if what := m.wrong(&s); what != "" {
			return what
		}
	}
	for i := range m.commands {
		for at := range m.members {
			if alive>>at&1 == 1 && m.seen(&s, i, at) && s.on[at][i].phase != committed {
				return fmt.Sprintf("stuck: %05b do not come to decide %c", alive, 'A'+i)
			}
		}
	}
	return ""
}

// advance has a member do one step for a command, and reports whether there was one.
func (m *model) advance(s *cluster, i, at, leader int, alive uint8) bool {
	p := &s.on[at][i]
	if p.phase == committed {
		return false
	}
	for q := range m.members {
		if alive>>q&1 == 1 && s.on[q][i].phase == committed {
			m.learn(s, i, at)
			return true
		}
	}
	if b, waits := m.someWaits(s, i); waits && m.mayPromise(s, i, b, at) {
		m.promise(s, i, b, at)
		return true
	}
	switch {
	case m.mayPromise(s, i, last, at):
		m.promise(s, i, last, at)
	case m.mayValidate(s, i, last, at):
		m.validate(s, i, last, at)
	case m.mayAccept(s, i, p.promised, p):
		m.accept(s, i, p.promised, at)
	case m.votedFor(s, i, alive):
		m.learn(s, i, at)
	default:
		if ballot, goesOn := m.waiter(s, i, at); goesOn {
			return m.lead(s, i, ballot, at, alive)
		}
		_, waits := m.someWaits(s, i)
		return at == leader && !waits && m.lead(s, i, last, at, alive)
	}
	return true
}

// votedFor reports whether a quorum of the living has accepted one ballot of a command.
func (m *model) votedFor(s *cluster, i int, alive uint8) bool {
	for b := range s.attempts[i] {
		if bits.OnesCount8(s.attempts[i][b].votes&alive) >= m.slow() {
			return true
		}
	}
	return false
}

// waiter is the ballot under which a member waits for what contradicts a command.
func (m *model) waiter(s *cluster, i, at int) (uint8, bool) {
	b := s.on[at][i].promised
	a := &s.attempts[i][b]
	return b, a.opener == uint8(at)+1 && a.stage == waits && b != last
}

// someWaits is the highest ballot under which a member waits and repeats its requests.
func (m *model) someWaits(s *cluster, i int) (ballot uint8, found bool) {
	for at := range m.members {
		if b, yes := m.waiter(s, i, at); yes {
			ballot, found = max(ballot, b), true
		}
	}
	return ballot, found
}

// lead has the member that recovers a command continue.
func (m *model) lead(s *cluster, i int, ballot uint8, at int, alive uint8) bool {
	a := &s.attempts[i][ballot]
	switch a.stage {
	case idle:
		for q := range m.members {
			if alive>>q&1 == 1 && m.seen(s, i, q) {
				m.open(s, i, ballot, at)
				return true
			}
		}
		return false
	case collects:
		for q := range m.members {
			if alive>>q&1 == 1 && a.reports[q].given == 0 {
				return false
			}
		}
		m.choose(s, i, ballot, alive, at)
	case validates:
		if a.valid != a.quorum {
			return false
		}
		m.weigh(s, i, ballot, at)
	case waits:
		ways := m.patience(s, i, ballot, at)
		if ways == 0 {
			return false
		}
		m.endWait(s, i, ballot, at, bits.TrailingZeros8(ways))
	default:
		return false
	}
	return true
}
