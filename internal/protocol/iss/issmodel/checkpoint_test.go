package issmodel

import (
	"fmt"
	"math/bits"
)

// The second model: one sequence number of one epoch, and when a member may forget which part of it. It covers votes,
// decisions and checkpoints; the first model covers skips.
//
// A member that knows the decision has closed the epoch: it answers every message of the epoch with the decision, and
// neither promises nor votes. Member 1 leads. A member that dies never returns.
const (
	crowd  = 4 // members
	rounds = 4 // ballots with ballot 0
)

// closing is a state. Durable: promise, vote, freed, and what is known if durable has the member.
type closing struct {
	told     [rounds][crowd]report
	promise  [crowd]uint8
	vote     [crowd]uint8
	known    [crowd]uint8
	durable  uint8 // members that have what they know on their disks
	freed    uint8 // members that have freed their votes and promises, if that matters
	reported uint8 // members whose checkpoint was sent
	dead     uint8

	sent    uint8 // 1: the leader has proposed in ballot 0
	opener  [rounds]uint8
	asked   [rounds]uint8
	votes   [rounds][crowd]uint8 // all votes that were ever cast
	decided uint8                // values that some member may have learned
}

// checkpointRules are the rules of when a member frees its state. The zero value is the rules in
// docs/reports/iss-models.md.
type checkpointRules struct {
	onOwn        bool // a member frees at its own checkpoint
	onDelivery   bool // a member frees when it knows the decision
	early        bool // a checkpoint is sent before the decisions are durable
	withoutOwn   bool // a member frees when the epoch is stable, with or without the decisions
	marked       bool // and records that the epoch is stable, and no longer promises or votes in it
	emptyPromise bool // a member that has freed its state promises and votes as if the epoch were new
	silent       bool // a member that has closed the epoch does not answer
	few          bool // a phase-2 quorum of checkpoints is stable
}

type checkpointModel struct {
	checkpointRules
	members int
	phase1  int // the size of a quorum in each phase
	phase2  int
	highest uint8 // ballot
	// ignoreLost: a possible loss is no error, only an actual one is.
	ignoreLost bool
}

func (m *checkpointModel) beginning() closing { return closing{} }

// mirror exchanges the last two members.
func (m *checkpointModel) mirror(s *closing) closing {
	n := *s
	a, b := m.members-2, m.members-1
	swap := func(mask uint8) uint8 {
		if mask>>a&1 != mask>>b&1 {
			mask ^= 1<<a | 1<<b
		}
		return mask
	}
	n.promise[a], n.promise[b] = s.promise[b], s.promise[a]
	n.vote[a], n.vote[b] = s.vote[b], s.vote[a]
	n.known[a], n.known[b] = s.known[b], s.known[a]
	n.durable, n.freed, n.reported, n.dead = swap(s.durable), swap(s.freed), swap(s.reported), swap(s.dead)
	for r := range rounds {
		n.told[r][a], n.told[r][b] = s.told[r][b], s.told[r][a]
		n.votes[r][a], n.votes[r][b] = s.votes[r][b], s.votes[r][a]
		switch int(s.opener[r]) {
		case a + 1:
			n.opener[r] = uint8(b + 1)
		case b + 1:
			n.opener[r] = uint8(a + 1)
		}
	}
	return n
}

// most is a majority, and losses the number of members that may die permanently with majority quorums.
func (m *checkpointModel) most() int   { return m.members/2 + 1 }
func (m *checkpointModel) losses() int { return m.members - m.most() }

// enough is the number of checkpoints that make an epoch stable: a majority, which is also one more than may be lost.
func (m *checkpointModel) enough() int {
	if m.few {
		return m.phase2
	}
	return max(m.most(), m.losses()+1)
}

func (m *checkpointModel) stable(s *closing) bool {
	return bits.OnesCount8(s.reported) >= m.enough()
}

// survives is the number of deaths that a decision must survive: one less than the votes for it, and any minority
// once the epoch is stable.
func (m *checkpointModel) survives(s *closing) int {
	if m.stable(s) {
		return m.losses()
	}
	return min(m.losses(), m.phase2-1)
}

func (m *checkpointModel) judge(s *closing) string {
	if several(s.decided) {
		return "disagreement: two values are decided for one sequence number"
	}
	if s.decided == 0 || m.ignoreLost {
		return ""
	}
	all := uint8(1)<<m.members - 1
	for dead := s.dead; dead <= all; dead++ {
		if dead&s.dead != s.dead || bits.OnesCount8(dead) > m.survives(s) {
			continue
		}
		if what := m.lost(s, all&^dead); what != "" {
			return what
		}
	}
	return m.stuck(s)
}

// lost: all crash, some restart, and these do not find the decision, or not with certainty.
func (m *checkpointModel) lost(s *closing, alive uint8) string {
	if s.durable&alive != 0 && !m.emptyPromise {
		return "" // it answers every member with the decision
	}
	if bits.OnesCount8(alive) < m.phase1 {
		return fmt.Sprintf("lost: the decision is not on %05b, who are no quorum", alive)
	}
	for q := uint8(1); q <= alive; q++ {
		if q&^alive != 0 || bits.OnesCount8(q) != m.phase1 || s.durable&q&^s.freed != 0 {
			continue
		}
		var reports []report
		for i := range m.members {
			if q>>i&1 == 1 {
				reports = append(reports, report(0).with(s.vote[i], 0))
			}
		}
		if choose(reports).value != s.decided {
			return fmt.Sprintf("lost: a quorum %05b does not find the decision", q)
		}
	}
	return ""
}

// stuck: some members do not know the decision and never will, even if all others answer.
func (m *checkpointModel) stuck(s *closing) string {
	open, answers := 0, 0
	for i := range m.members {
		switch {
		case s.dead>>i&1 == 1:
		case s.known[i] == 0:
			open++
		default:
			answers++
		}
	}
	if open > 0 && (answers == 0 || m.silent) && open < m.phase1 {
		return "stuck: who does not know the decision is no quorum, and nobody answers"
	}
	return ""
}

func (m *checkpointModel) each(s *closing, yield func(step, *closing)) {
	do := func(text string, a, b, c int, f func(n *closing)) {
		n := *s
		if f(&n); n != *s {
			yield(step{text, [4]uint8{uint8(a), uint8(b), uint8(c)}}, &n)
		}
	}
	for i := range m.members {
		if s.dead>>i&1 == 1 {
			continue
		}
		if s.known[i] == 0 || m.emptyPromise && s.freed>>i&1 == 1 {
			m.paxosSteps(s, i, do)
		}
		m.closingSteps(s, i, do)
		do("{m} crashes and starts again", i, 0, 0, func(n *closing) { m.crash(n, i) })
		if bits.OnesCount8(s.dead) < m.survives(s) {
			do("{m} dies", i, 0, 0, func(n *closing) { m.die(n, i) })
		}
	}
}

type closingDoer func(text string, a, b, c int, f func(n *closing))

// paxosSteps: what a member does in the epoch as long as it is open.
func (m *checkpointModel) paxosSteps(s *closing, i int, do closingDoer) {
	if m.marked && s.freed>>i&1 == 1 {
		return
	}
	if i == 0 && s.sent == 0 && s.promise[0] == 0 {
		do("1 proposes v in ballot 0", 0, 0, 0, func(n *closing) { n.sent, n.asked[0] = 1, first })
	}
	for b := uint8(0); b <= m.highest; b++ {
		if v := s.asked[b]; v != 0 && s.promise[i] <= b && s.vote[i] != voted(b, v) {
			do("{m} votes for {v} in ballot {n}", i, int(v), int(b), func(n *closing) {
				n.promise[i], n.vote[i], n.votes[b][i] = b, voted(b, v), v
				m.decide(n)
			})
		}
		if b == 0 || s.promise[i] >= b {
			continue
		}
		text := "{m} promises ballot {n}"
		if s.opener[b] == 0 {
			text = "{m} opens ballot {n}"
		}
		do(text, i, int(b), 0, func(n *closing) {
			if n.opener[b] == 0 {
				n.opener[b] = uint8(i) + 1
			}
			n.promise[i] = b
			if n.opener[b] != gone {
				n.told[b][i] = report(0).with(n.vote[i], 0)
			}
		})
	}
	for b := uint8(1); b <= m.highest; b++ {
		if s.opener[b] == uint8(i)+1 {
			m.proposeSteps(s, b, do)
		}
	}
}

// proposeSteps: the opener proposes what a quorum of promises permits.
func (m *checkpointModel) proposeSteps(s *closing, b uint8, do closingDoer) {
	for q := uint8(1); q < 1<<m.members; q++ {
		if bits.OnesCount8(q) != m.phase1 {
			continue
		}
		var reports []report
		for i := range m.members {
			if r := s.told[b][i]; q>>i&1 == 1 && r != 0 {
				reports = append(reports, r)
			}
		}
		if len(reports) < m.phase1 {
			continue
		}
		c := choose(reports)
		do("ballot {n} proposes {v}", int(b), int(c.value), 0, func(n *closing) {
			n.asked[b], n.told[b], n.opener[b] = c.value, [crowd]report{}, gone
		})
	}
}

// closingSteps: the decision is known, durable, reported, and votes are dropped.
func (m *checkpointModel) closingSteps(s *closing, i int, do closingDoer) {
	bit := uint8(1) << i
	if s.known[i] == 0 {
		for _, v := range []uint8{bottom, first} {
			if s.decided&v != 0 {
				do("{m} learns {v}", i, int(v), 0, func(n *closing) {
					n.known[i] = v
					if m.early {
						n.reported |= bit
					}
				})
			}
		}
	} else if s.durable&bit == 0 {
		do("{m} has the decision on its disk", i, 0, 0, func(n *closing) {
			n.durable |= bit
			n.reported |= bit
		})
	}
	if m.mayFree(s, i) && s.freed&bit == 0 {
		do("{m} gives up its votes and promises", i, 0, 0, func(n *closing) {
			n.vote[i], n.promise[i] = 0, 0
			if m.emptyPromise || m.marked {
				n.freed |= bit
			}
		})
	}
}

// mayFree: the epoch is stable, and the member has its decisions on its own disk.
func (m *checkpointModel) mayFree(s *closing, i int) bool {
	own := s.durable>>i&1 == 1
	switch {
	case m.onDelivery:
		return s.known[i] != 0
	case m.onOwn:
		return own
	case m.withoutOwn:
		return m.stable(s)
	case m.early:
		return s.known[i] != 0 && m.stable(s)
	}
	return own && m.stable(s)
}

func (m *checkpointModel) decide(s *closing) {
	for b := range rounds {
		for _, v := range []uint8{bottom, first} {
			count := 0
			for _, vote := range s.votes[b] {
				if vote == v {
					count++
				}
			}
			if count >= m.phase2 {
				s.decided |= v
			}
		}
	}
}

// crash ends a member's incarnation and starts the next one, with its durable state.
func (m *checkpointModel) crash(s *closing, i int) {
	if s.durable>>i&1 == 0 {
		s.known[i] = 0
	}
	for b := range rounds {
		if s.opener[b] == uint8(i)+1 {
			s.opener[b], s.told[b] = gone, [crowd]report{}
		}
	}
}

func (m *checkpointModel) die(s *closing, i int) {
	bit := uint8(1) << i
	s.dead |= bit
	m.crash(s, i)
	s.known[i], s.vote[i], s.promise[i] = 0, 0, 0
	s.durable &^= bit
	s.freed &^= bit
}
