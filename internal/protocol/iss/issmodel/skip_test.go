package issmodel

import "math/bits"

// The first model: one segment of one epoch. Member 1 leads it and may skip sequence numbers.
//
// A message that was sent may arrive at any time, any number of times, or never. A member may stop at any time; a
// crash is a step of its own, after which a member has only what is durable. The model does not keep which members
// know a decision: a member that promises may know it or not, as if it had never learned or had forgotten it.
const (
	most    = 4 // members
	longest = 2 // sequence numbers
	ballots = 4 // with ballot 0
)

// How an incarnation of the leader relates to ballot 0.
const (
	fresh   = 0 // nothing was ever sent in it
	active  = 1 // started0 is durable, and this incarnation sends in ballot 0
	retired = 2 // an earlier incarnation had started
)

// segment is a state. Durable: promise, vote, and whether the incarnation is fresh.
type segment struct {
	promise     [most]uint8
	vote        [most][longest]uint8
	incarnation uint8
	mine        [longest]uint8 // what this incarnation sent in ballot 0
	again       uint8          // 1: something was sent in ballot 0 in an incarnation that had to abstain
	barred      uint8          // 1: this incarnation declared that it proposes no more, if that is kept in memory

	sent    [longest]uint8                 // values in messages of ballot 0; ⊥ is a skip
	opener  [ballots]uint8                 // 1 + the member
	spent   [ballots]uint8                 // 1: its opener has proposed, if a ballot may be opened again
	reports [ballots][most][longest]report // promises, until the opener has used them
	asked   [ballots][longest]uint8        // values in messages of ballots from 1 on

	votes   [longest][ballots][most]uint8 // all votes that were ever cast
	decided [longest]uint8                // values that some member may have learned
}

// skipRules are the rules of skips, promises and restarts. The zero value is the rules in docs/reports/iss-models.md.
type skipRules struct {
	fastAlways     bool // any ⊥ of an elected proposer is decided when it is sent
	fastQuorum     bool // its ⊥ is decided if a quorum of promises reports no vote
	noStarted      bool // started0 is not kept
	startsAgain    bool // a leader that restarted uses ballot 0 again
	hidesDecided   bool // a promise does not list sequence numbers that are decided here
	votesOnly      bool // a promise lists votes, but not decisions
	neverFromDisk  bool // a leader that restarted declares every sequence number for which it has no vote
	neverBroken    bool // a leader continues in ballot 0 after a declaration
	neverForgotten bool // it keeps its declaration in memory only
	openForgotten  bool // a ballot is opened before that is durable
	promiseLost    bool // a promise is sent before it is durable
	voteLost       bool // a vote is sent before it is durable
	suspectsSeen   bool // members suspect a leader that they saw revoked, whatever is decided
}

type skipModel struct {
	skipRules
	members int
	phase1  int // the size of a quorum in each phase
	phase2  int
	numbers int
	highest uint8 // ballot
	// ignoreAgain: a second use of ballot 0 is no error, only its consequences are.
	ignoreAgain bool
}

func (m *skipModel) beginning() segment { return segment{} }

// mirror exchanges the last two members.
func (m *skipModel) mirror(s *segment) segment {
	n := *s
	i, j := m.members-2, m.members-1
	n.promise[i], n.promise[j] = s.promise[j], s.promise[i]
	n.vote[i], n.vote[j] = s.vote[j], s.vote[i]
	for b := range ballots {
		n.reports[b][i], n.reports[b][j] = s.reports[b][j], s.reports[b][i]
		switch o := s.opener[b]; int(o &^ reopens) {
		case i + 1:
			n.opener[b] = o&reopens | uint8(j+1)
		case j + 1:
			n.opener[b] = o&reopens | uint8(i+1)
		}
		for at := range longest {
			n.votes[at][b][i], n.votes[at][b][j] = s.votes[at][b][j], s.votes[at][b][i]
		}
	}
	return n
}

func (m *skipModel) judge(s *segment) string {
	for i := range m.numbers {
		switch {
		case several(s.decided[i]):
			return "disagreement: two values are decided for one sequence number"
		case s.decided[i]&^(bottom|s.sent[i]) != 0:
			return "invention: what is decided was not proposed by the leader"
		case m.suspectsSeen && s.sent[i]&bottom != 0 && m.revoked(s, i):
			return "leaders differ: one member sees a skip, and another one a revocation"
		}
	}
	if s.again != 0 && !m.ignoreAgain {
		return "ballot 0 is used again"
	}
	return ""
}

// revoked reports whether a member may learn ⊥ of a sequence number by votes of a ballot from 1 on.
func (m *skipModel) revoked(s *segment, at int) bool {
	for b := 1; b < ballots; b++ {
		if m.chosen(s.votes[at][b])&bottom != 0 {
			return true
		}
	}
	return false
}

func (m *skipModel) each(s *segment, yield func(step, *segment)) {
	do := func(text string, a, b, c, d int, f func(n *segment) bool) {
		if n := *s; f(&n) {
			yield(step{text, [4]uint8{uint8(a), uint8(b), uint8(c), uint8(d)}}, &n)
		}
	}
	m.leaderSteps(s, do)
	for b := uint8(0); b <= m.highest; b++ {
		for i := range m.members {
			m.acceptorSteps(s, b, i, do)
		}
		if o := s.opener[b]; o != 0 && o < reopens {
			m.proposerSteps(s, b, do)
		}
	}
	for i := range m.members {
		do("{m} crashes and starts again", i, 0, 0, 0, func(n *segment) bool { return m.crash(n, i) })
	}
}

type segmentDoer func(text string, a, b, c, d int, f func(n *segment) bool)

// leaderSteps: what the leader sends in ballot 0. Its own vote is a step of an acceptor, so its proposals are sent
// before that is durable.
func (m *skipModel) leaderSteps(s *segment, do segmentDoer) {
	if s.incarnation == retired && !m.startsAgain {
		return
	}
	// Its promise declared that it proposes nothing new.
	barred := s.promise[0] != 0 && !m.neverBroken
	if m.neverForgotten {
		barred = s.barred != 0
	}
	for i := range m.numbers {
		if s.mine[i] != 0 {
			continue
		}
		send := func(value uint8) func(n *segment) bool {
			return func(n *segment) bool {
				if n.incarnation == retired {
					n.again = 1
				}
				if n.incarnation == fresh {
					n.incarnation = active
				}
				n.mine[i], n.sent[i] = value, n.sent[i]|value
				m.decide(n)
				return true
			}
		}
		do("1 skips sequence number {n}", i+1, 0, 0, 0, send(bottom))
		if barred {
			continue
		}
		value := uint8(first)
		if s.sent[i]&first != 0 {
			value = second
		}
		do("1 proposes {v} for sequence number {n} in ballot 0", int(value), i+1, 0, 0, send(value))
	}
}

// acceptorSteps: what a member does with messages of a ballot.
func (m *skipModel) acceptorSteps(s *segment, b uint8, i int, do segmentDoer) {
	if b > 0 {
		if o := s.opener[b]; o == 0 || o == reopens+uint8(i)+1 {
			do("{m} opens ballot {n}", i, int(b), 0, 0, func(n *segment) bool { return m.open(n, b, i) })
		} else {
			m.promiseSteps(s, b, i, do)
		}
	}
	if s.promise[i] > b {
		return
	}
	for at := range m.numbers {
		values := s.asked[b][at]
		if b == 0 {
			values = s.sent[at] &^ bottom // a skip is learned, not voted for
		}
		for _, v := range []uint8{bottom, first, second} {
			if values&v == 0 || s.vote[i][at] == voted(b, v) {
				continue
			}
			do("{m} votes for {v} at sequence number {n} in ballot {n}", i, int(v), at+1, int(b), func(n *segment) bool {
				n.promise[i], n.vote[i][at] = b, voted(b, v)
				n.votes[at][b][i] |= v
				m.decide(n)
				return true
			})
		}
	}
}

// open: the opener promises its own ballot to itself first, so that it never opens it twice.
func (m *skipModel) open(n *segment, b uint8, i int) bool {
	if n.promise[i] >= b {
		return false
	}
	n.opener[b] = uint8(i) + 1
	if !m.openForgotten {
		m.promises(n, b, i, 0)
	}
	return true
}

func (m *skipModel) promises(n *segment, b uint8, i int, knows uint8) {
	for at := range m.numbers {
		switch {
		case n.opener[b] >= reopens:
		case n.asked[b][at] != 0 && !m.openForgotten:
			n.reports[b][i][at] = promised // too late
		default:
			n.reports[b][i][at] = m.report(n, i, at, knows>>at&1 == 1)
		}
	}
	n.promise[i] = b
	if i == 0 && m.neverForgotten {
		n.barred = 1
	}
}

// promiseSteps: a member may or may not know each decision.
func (m *skipModel) promiseSteps(s *segment, b uint8, i int, do segmentDoer) {
	if s.promise[i] > b || s.promise[i] == b && (!m.openForgotten || s.reports[b][i][0] != 0) {
		return
	}
	for knows := uint8(0); knows < 1<<m.numbers; knows++ {
		possible := true
		for at := range m.numbers {
			possible = possible && (knows>>at&1 == 0 || s.decided[at] != 0)
		}
		if !possible || knows != 0 && m.votesOnly {
			continue
		}
		do("{m} promises ballot {n}, knowing decisions {n}", i, int(b), int(knows), 0, func(n *segment) bool {
			m.promises(n, b, i, knows)
			return true
		})
	}
}

// report is the part of a member's promise about a sequence number.
func (m *skipModel) report(s *segment, i, at int, knows bool) report {
	if knows && m.hidesDecided {
		return promised
	}
	decided := uint8(0)
	if knows {
		decided = s.decided[at]
	}
	r := report(0).with(s.vote[i][at], decided)
	if i != 0 {
		return r
	}
	unsent := s.mine[at]&(first|second) == 0
	switch {
	case s.incarnation != retired && unsent, s.incarnation == retired && m.neverFromDisk && s.vote[0][at] == 0:
		r |= never
	}
	return r
}

// proposerSteps: the opener uses the promises of a quorum, or of more, for a sequence number.
func (m *skipModel) proposerSteps(s *segment, b uint8, do segmentDoer) {
	who := uint8(0)
	for i := range m.members {
		if s.reports[b][i][0] != 0 {
			who |= 1 << i
		}
	}
	for at := range m.numbers {
		for q := uint8(1); q < 1<<m.members; q++ {
			if q&^who != 0 || bits.OnesCount8(q) < m.phase1 || s.spent[b] != 0 || s.asked[b][at] != 0 && !m.openForgotten {
				continue
			}
			var reports []report
			for i := range m.members {
				if q>>i&1 == 1 {
					reports = append(reports, s.reports[b][i][at])
				}
			}
			m.propose(s, b, at, q, choose(reports), do)
		}
	}
}

func (m *skipModel) propose(s *segment, b uint8, at int, q uint8, c choice, do segmentDoer) {
	if c.decided != 0 {
		return // it announces the value, which is decided already
	}
	nothing := !c.found && c.value == bottom
	fast := nothing && (bits.OnesCount8(q) == m.members || c.never)
	fast = fast || m.fastAlways && c.value == bottom || m.fastQuorum && nothing
	text := "ballot {n} proposes {v} for sequence number {n}, having heard {n} members"
	if fast {
		text = "ballot {n} decides {v} for sequence number {n} at once, having heard {n} members"
	}
	do(text, int(b), int(c.value), at+1, bits.OnesCount8(q), func(n *segment) bool {
		n.asked[b][at] |= c.value
		if fast {
			n.decided[at] |= bottom
		}
		m.forget(n, b, at)
		return true
	})
}

// forget drops promises that were used. If a ballot may be opened again, they are kept.
func (m *skipModel) forget(n *segment, b uint8, at int) {
	if m.openForgotten {
		n.reports[b], n.spent[b] = [most][longest]report{}, 1
		return
	}
	all := true
	for i := range m.numbers {
		all = all && n.asked[b][i] != 0
	}
	if all {
		n.reports[b], n.opener[b] = [most][longest]report{}, gone
		return
	}
	for i := range m.members {
		n.reports[b][i][at] &= promised
	}
}

// decide records the values that may be learned: a skip as soon as it is sent, regardless of promises, and what a
// quorum voted for in one ballot.
func (m *skipModel) decide(s *segment) {
	for at := range m.numbers {
		s.decided[at] |= s.sent[at] & bottom
		for b := range ballots {
			s.decided[at] |= m.chosen(s.votes[at][b])
		}
	}
}

// chosen are the values for which a quorum voted in a ballot.
func (m *skipModel) chosen(votes [most]uint8) (values uint8) {
	for _, v := range []uint8{bottom, first, second} {
		count := 0
		for _, set := range votes {
			if set&v != 0 {
				count++
			}
		}
		if count >= m.phase2 {
			values |= v
		}
	}
	return values
}

// crash ends a member's incarnation and starts the next one. It forgets the promises that it received, and what it
// sent in ballot 0, but not that it sent anything.
func (m *skipModel) crash(s *segment, i int) bool {
	before := *s
	for b := range ballots {
		if s.opener[b] != uint8(i)+1 {
			continue
		}
		s.reports[b] = [most][longest]report{}
		s.opener[b] = gone
		if m.openForgotten {
			s.opener[b], s.spent[b] = reopens+uint8(i)+1, 0
		}
	}
	if i == 0 {
		s.mine, s.barred = [longest]uint8{}, 0
		if s.incarnation == active {
			s.incarnation = retired
		}
		if m.noStarted {
			s.incarnation = fresh
		}
	}
	if m.promiseLost {
		s.promise[i] = 0
		for at := range m.numbers {
			s.promise[i] = max(s.promise[i], s.vote[i][at]>>3)
		}
	}
	if m.voteLost {
		s.vote[i] = [longest]uint8{}
	}
	return *s != before
}
