package epaxosmodel

import (
	"fmt"
	"math/bits"
	"strings"
)

// kind is a kind of steps; a random search chooses one of these first.
type kind uint8

const (
	proposes kind = iota
	preaccepts
	decidesFast
	asksSlow
	accepts
	learns
	opens
	promises
	chooses
	answersValidate
	weighs
	stopsWaiting
	crashes
	kinds
)

// stepText describes a step: {c} is the command, {m} a member, {b} the ballot, {q} a set of members.
var stepText = [kinds]string{
	"{m} proposes {c}", "{m} preaccepts {c}", "{m} decides {c} on the fast path",
	"{m} proposes {c} on the slow path with the answers of {q}", "{m} accepts {c} under {b}", "{m} learns {c}",
	"{m} begins to recover {c} under {b}", "{m} promises {b} for {c}",
	"{m} recovers {c} under {b} with the answers of {q}",
	"{m} answers Validate of {c} under {b}", "{m} weighs what contradicts {c} under {b}",
	"{m} waits no longer for {c} under {b}, reason {q}",
	"{m} crashes and starts again",
}

type step struct {
	kind    kind
	c, m, b uint8
	q       uint8
}

func (t step) String() string {
	var set []string
	for i := range 8 {
		if t.q>>i&1 == 1 {
			set = append(set, fmt.Sprint(i+1))
		}
	}
	q := strings.Join(set, " ")
	if t.kind == stopsWaiting {
		q = [...]string{"", "one contradicts", "none contradicts", "another waits", "the proposer answered",
			"another answered"}[t.q]
	}
	return strings.NewReplacer("{c}", string(rune('A'+t.c)), "{m}", fmt.Sprint(t.m+1), "{b}", fmt.Sprint(t.b), "{q}",
		q).Replace(stepText[t.kind])
}

type doer struct {
	s     *cluster
	yield func(step, *cluster)
}

func (d doer) do(t step, f func(n *cluster)) {
	n := *d.s
	f(&n)
	d.yield(t, &n)
}

func (m *model) each(s *cluster, yield func(step, *cluster)) {
	d := doer{s, yield}
	for i := range m.commands {
		m.firstSteps(d, i)
		for b := range uint8(last) {
			m.acceptSteps(d, i, b)
			if b > 0 && b <= m.highest[i] {
				m.recoverSteps(d, i, b)
			}
		}
		m.learnSteps(d, i)
	}
	m.crashSteps(d)
}

func (m *model) firstSteps(d doer, i int) {
	s, c := d.s, uint8(i)
	if s.first[i] == 0 {
		if s.on[i][i].promised == 0 {
			d.do(step{proposes, c, c, 0, 0}, func(n *cluster) { m.propose(n, i) })
		}
		return
	}
	for at := range m.members {
		if p := &s.on[at][i]; p.promised == 0 && p.phase == unknown {
			d.do(step{preaccepts, c, uint8(at), 0, 0}, func(n *cluster) { m.preaccept(n, i, at) })
		}
	}
	if !m.leading(s, i) {
		return
	}
	if m.same(s, i) >= m.fast() {
		d.do(step{decidesFast, c, c, 0, 0}, func(n *cluster) { m.decideFast(n, i) })
	}
	seen := map[value]bool{}
	for q := uint8(1); q < 1<<m.members; q++ {
		if bits.OnesCount8(q) < m.slow() || q>>i&1 == 0 || s.on[i][i].promised != 0 {
			continue
		}
		if v, all := m.unite(s, i, q); all && !seen[v] {
			seen[v] = true
			d.do(step{asksSlow, c, c, 0, q}, func(n *cluster) { m.ask(n, i, 0, v, i) })
		}
	}
}

func (m *model) acceptSteps(d doer, i int, b uint8) {
	for at := range m.members {
		if p := &d.s.on[at][i]; m.mayAccept(d.s, i, b, p) {
			d.do(step{accepts, uint8(i), uint8(at), b, 0}, func(n *cluster) { m.accept(n, i, b, at) })
		}
	}
}

func (m *model) mayAccept(s *cluster, i int, b uint8, p *place) bool {
	return s.attempts[i][b].asked != 0 && p.promised <= b && p.phase != committed && (p.phase != accepted || p.ballot < b)
}

func (m *model) learnSteps(d doer, i int) {
	for at := range m.members {
		if d.s.decided[i] != 0 && d.s.on[at][i].phase != committed {
			d.do(step{learns, uint8(i), uint8(at), 0, 0}, func(n *cluster) { m.learn(n, i, at) })
		}
	}
}

func (m *model) mayPromise(s *cluster, i int, b uint8, at int) bool {
	return s.attempts[i][b].sent == 1 && s.on[at][i].promised < b
}

func (m *model) mayValidate(s *cluster, i int, b uint8, at int) bool {
	a, p := &s.attempts[i][b], &s.on[at][i]
	return a.stage == validates && a.quorum&^a.valid>>at&1 == 1 && p.promised == b && p.phase != committed
}

// seen reports whether a member knows of a command, so that it may recover it: it has it, has a command that depends
// on it, or waits for it.
func (m *model) seen(s *cluster, i, at int) bool {
	for j := range m.commands {
		if has(s.on[at][j].value, i) {
			return true
		}
		if a := &s.attempts[j][s.on[at][j].promised]; a.opener == uint8(at)+1 && a.stage == waits && a.against[0]>>i&1 == 1 {
			return true
		}
	}
	return s.on[at][i].command()
}

func (m *model) recoverSteps(d doer, i int, b uint8) {
	s, a, c := d.s, &d.s.attempts[i][b], uint8(i)
	for at := range m.members {
		p := &s.on[at][i]
		if a.opener == 0 && p.promised < b && p.phase != committed && m.seen(s, i, at) {
			d.do(step{opens, c, uint8(at), b, 0}, func(n *cluster) { m.open(n, i, b, at) })
		}
		if m.mayPromise(s, i, b, at) {
			d.do(step{promises, c, uint8(at), b, 0}, func(n *cluster) { m.promise(n, i, b, at) })
		}
		if m.mayValidate(s, i, b, at) {
			d.do(step{answersValidate, c, uint8(at), b, 0}, func(n *cluster) { m.validate(n, i, b, at) })
		}
	}
	at := int(a.opener) - 1
	if a.opener == 0 || a.opener == gone || s.on[at][i].promised != b || s.on[at][i].phase == committed {
		return
	}
	switch a.stage {
	case collects:
		m.chooseSteps(d, i, b, at)
	case validates:
		if a.valid == a.quorum {
			d.do(step{weighs, c, uint8(at), b, 0}, func(n *cluster) { m.weigh(n, i, b, at) })
		}
	case waits:
		for ways, way := m.patience(s, i, b, at), 0; ways>>way != 0; way++ {
			if ways>>way&1 == 1 {
				d.do(step{stopsWaiting, c, uint8(at), b, uint8(way)}, func(n *cluster) { m.endWait(n, i, b, at, way) })
			}
		}
	}
}

func (m *model) chooseSteps(d doer, i int, b uint8, at int) {
	a, answered := &d.s.attempts[i][b], uint8(0)
	for q := range m.members {
		answered |= a.reports[q].given << q
	}
	for q := uint8(1); q <= answered; q++ {
		if q&^answered == 0 && q>>at&1 == 1 && bits.OnesCount8(q) >= m.slow() {
			d.do(step{chooses, uint8(i), uint8(at), b, q}, func(n *cluster) { m.choose(n, i, b, q, at) })
		}
	}
}

func (m *model) crashSteps(d doer) {
	if int(d.s.crashed) >= m.crashes {
		return
	}
	for at := range m.members {
		n := *d.s
		if m.crash(&n, at); n != *d.s {
			n.crashed++
			d.yield(step{crashes, 0, uint8(at), 0, 0}, &n)
		}
	}
}
