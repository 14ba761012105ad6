package epaxosmodel

import "math/bits"

// conflicts are the commands on a member on which a new command depends. A no-op that is not decided stands for a
// command that may still arrive, and whose keys are not known here.
func (m *model) conflicts(s *cluster, at, i int) (deps value) {
	for j := range m.commands {
		p := &s.on[at][j]
		if j == i || !p.command() {
			continue
		}
		if p.value&noop != 0 {
			if !m.noopInvisible && !(m.skipNoops && p.phase == committed) {
				deps |= 1 << j
			}
		} else if m.interfere(i, j) {
			deps |= 1 << j
		}
	}
	return deps
}

func (m *model) propose(s *cluster, i int) {
	s.first[i], s.leads[i] = some|m.conflicts(s, i, i), collects
	m.preaccept(s, i, i)
}

func (m *model) preaccept(s *cluster, i, at int) {
	p := &s.on[at][i]
	p.value = s.first[i] | m.conflicts(s, at, i)
	p.phase, p.init = preaccepted, fromFirst
	s.told[i][at] = p.value
}

// leading reports whether a proposer may continue with ballot 0.
func (m *model) leading(s *cluster, i int) bool {
	p := &s.on[i][i]
	return s.leads[i] == collects && p.phase == preaccepted && (p.promised == 0 || m.lateFast)
}

// same is the number of answers with the first dependencies.
func (m *model) same(s *cluster, i int) (count int) {
	for at := range m.members {
		if s.told[i][at] == s.first[i] {
			count++
		}
	}
	return count
}

func (m *model) decideFast(s *cluster, i int) {
	s.leads[i] = finished
	m.decide(s, i, s.first[i])
	m.learn(s, i, i)
	if m.early {
		s.on[i][i].init = undurable
	}
}

// unite is the union of a quorum's answers.
func (m *model) unite(s *cluster, i int, quorum uint8) (deps value, all bool) {
	deps = some
	for at := range m.members {
		if quorum>>at&1 == 1 {
			if s.told[i][at] == 0 {
				return 0, false
			}
			deps |= s.told[i][at]
		}
	}
	return deps, true
}

func (m *model) ask(s *cluster, i int, ballot uint8, v value, at int) {
	a := &s.attempts[i][ballot]
	a.end()
	a.asked = v
	if ballot == 0 {
		s.leads[i] = finished
	}
	m.accept(s, i, ballot, at)
}

func (m *model) accept(s *cluster, i int, ballot uint8, at int) {
	a, p := &s.attempts[i][ballot], &s.on[at][i]
	p.promised, p.ballot, p.phase, p.value = ballot, ballot, accepted, a.asked
	a.votes |= 1 << at
	if bits.OnesCount8(a.votes) >= m.slow() {
		m.decide(s, i, a.asked)
	}
}

func (m *model) decide(s *cluster, i int, v value) {
	if s.decided[i] != 0 && s.decided[i] != v {
		s.clash = 1
	}
	s.decided[i] = v
}

func (m *model) learn(s *cluster, i, at int) {
	p := &s.on[at][i]
	p.phase, p.value = committed, s.decided[i]
	for b := range s.attempts[i] { // its recoveries have ended
		if a := &s.attempts[i][b]; a.opener == uint8(at)+1 {
			a.end()
		}
	}
	if at == i {
		s.leads[i] = finished
	}
}

// promise is a member's answer to Recover.
func (m *model) promise(s *cluster, i int, ballot uint8, at int) {
	p, a := &s.on[at][i], &s.attempts[i][ballot]
	r := report{1, p.ballot, p.phase, p.value}
	if m.oneBallot {
		r.ballot = p.promised
	}
	p.promised = ballot
	if a.stage != finished {
		a.reports[at] = r
	}
}

func (m *model) open(s *cluster, i int, ballot uint8, at int) {
	a := &s.attempts[i][ballot]
	a.opener, a.stage, a.sent = uint8(at)+1, collects, 1
	m.promise(s, i, ballot, at)
}

// empty is the no-op in place of a command.
func (m *model) empty(s *cluster, i, at int) value {
	if m.keepDeps {
		return some | noop | s.on[at][i].value&mask
	}
	return some | noop
}

// choose applies the answers of a quorum.
func (m *model) choose(s *cluster, i int, ballot uint8, quorum uint8, at int) {
	a := &s.attempts[i][ballot]
	best, preaccepts, together := report{}, 0, value(0)
	for q := range m.members {
		r := a.reports[q]
		if quorum>>q&1 == 0 {
			continue
		}
		switch {
		case r.phase == committed:
			m.decide(s, i, r.value)
			m.learn(s, i, at)
			return
		case r.phase == accepted && (best.given == 0 || r.ballot > best.ballot):
			best = r
		case r.phase == preaccepted:
			together |= r.value
			if r.value == s.first[i] {
				preaccepts++
			}
		}
	}
	m.conclude(s, i, ballot, quorum, at, best, preaccepts, together)
}

func (m *model) conclude(s *cluster, i int, ballot, quorum uint8, at int, best report, preaccepts int, together value) {
	enough := bits.OnesCount8(quorum) - m.e
	if m.lenient {
		enough = 1
	}
	switch {
	case best.given != 0:
		m.ask(s, i, ballot, m.dropped(best.value), at)
	case quorum>>i&1 == 1 && !m.anyCoord:
		m.ask(s, i, ballot, m.empty(s, i, at), at)
	case m.merge && together != 0:
		m.ask(s, i, ballot, together, at)
	case preaccepts < enough:
		m.ask(s, i, ballot, m.empty(s, i, at), at)
	case m.unchecked:
		m.ask(s, i, ballot, m.dropped(s.first[i]), at)
	default:
		a := &s.attempts[i][ballot]
		a.stage, a.quorum, a.same, a.deps = validates, quorum, uint8(preaccepts), m.dropped(s.first[i])
		for q := range m.members { // members outside the quorum may still answer
			if quorum>>q&1 == 1 {
				a.reports[q] = report{}
			}
		}
		m.validate(s, i, ballot, at)
	}
}

func (m *model) dropped(v value) value {
	if m.dropDeps {
		return v &^ mask
	}
	return v
}

// validate is a member's answer to Validate.
func (m *model) validate(s *cluster, i int, ballot uint8, at int) {
	a := &s.attempts[i][ballot]
	for j := range m.commands {
		p := &s.on[at][j]
		switch {
		case !m.interfere(i, j), has(a.deps, j):
		case p.phase == committed:
			if p.value&noop == 0 && !has(p.value, i) {
				a.against[at] |= 1 << j << 4
			}
		case p.init != noInit && !has(s.first[j], i) && !m.blindToOpen:
			a.against[at] |= 1 << j
		}
	}
	a.valid |= 1 << at
	if p := &s.on[at][i]; p.init == noInit {
		p.init = validated
	}
}

// weigh applies the answers when all of the quorum have answered.
func (m *model) weigh(s *cluster, i int, ballot uint8, at int) {
	a := &s.attempts[i][ballot]
	against := uint8(0)
	for q := range m.members {
		against |= a.against[q]
	}
	exact := int(a.same) == bits.OnesCount8(a.quorum)-m.e
	outside := false // the proposer of a contradicting command did not answer
	for j := range m.commands {
		outside = outside || (against|against>>4)>>j&1 == 1 && a.quorum>>j&1 == 0
	}
	switch {
	case against == 0:
		m.ask(s, i, ballot, a.deps, at)
	case against>>4 != 0, exact && outside && !m.inexact:
		m.ask(s, i, ballot, m.empty(s, i, at), at)
	default:
		a.stage, a.against = waits, [crowd]uint8{against}
		if int(a.same) > m.members-m.f-m.e {
			s.waiting |= 1 << i
		}
	}
}

// The conditions under which waiting may end.
const (
	stillWaits = iota
	itContradicts
	noneContradicts
	otherWaits
	proposerAnswered
	otherAnswered
)

// patience returns the conditions that hold, as a mask.
func (m *model) patience(s *cluster, i int, ballot uint8, at int) (ways uint8) {
	a := &s.attempts[i][ballot]
	open := false
	for j := range m.commands {
		if a.against[0]>>j&1 == 0 {
			continue
		}
		p := &s.on[at][j]
		if p.phase != committed {
			open = true
		} else if p.value&noop == 0 && !has(p.value, i) {
			ways |= 1 << itContradicts
		}
		if s.waiting>>j&1 == 1 && !m.patient {
			ways |= 1 << otherWaits
		}
	}
	if !open && ways>>itContradicts&1 == 0 {
		ways |= 1 << noneContradicts
	}
	for q := range m.members {
		switch r := a.reports[q]; {
		case a.quorum>>q&1 == 1 || r.given == 0:
		case r.phase >= accepted:
			ways |= 1 << otherAnswered
		case q == i && !m.anyCoord:
			ways |= 1 << proposerAnswered
		}
	}
	return ways
}

func (m *model) endWait(s *cluster, i int, ballot uint8, at, way int) {
	a := &s.attempts[i][ballot]
	switch way {
	case noneContradicts:
		m.ask(s, i, ballot, a.deps, at)
	case otherAnswered:
		best := report{}
		for q, r := range a.reports {
			switch {
			case a.quorum>>q&1 == 1 || r.phase < accepted:
			case r.phase == committed:
				m.decide(s, i, r.value)
				m.learn(s, i, at)
				return
			case best.given == 0 || r.ballot > best.ballot:
				best = r
			}
		}
		m.ask(s, i, ballot, best.value, at)
	default:
		m.ask(s, i, ballot, m.empty(s, i, at), at)
	}
}

// crash ends a member's incarnation and begins the next one, with what is on its disk.
func (m *model) crash(s *cluster, at int) {
	for i := range m.commands {
		if i == at && s.first[i] != 0 && !m.resumes {
			s.leads[i] = finished
		}
		for b := range s.attempts[i] {
			if a := &s.attempts[i][b]; a.opener == uint8(at)+1 {
				a.end()
			}
		}
		switch p := &s.on[at][i]; {
		case m.forgetful && p.init == validated:
			p.init = noInit
		case p.init == undurable:
			p.phase, p.value, p.init = preaccepted, s.first[i], fromFirst
		}
	}
}
