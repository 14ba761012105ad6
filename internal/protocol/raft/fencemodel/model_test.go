package fencemodel

import (
	"bytes"
	"math/bits"
)

const (
	// members is how many there are, voters or not. Member n of the text is index n−1.
	members = 4
	// slots is the longest log.
	slots = 14
	// lane is the most entries that the owner's lane can have.
	lane = 2
)

// Kinds of log entries. An entry is one byte: kind, argument, term.
const (
	noop   = 0 // a leader's first entry
	signal = 1 // confirms the lane up to the argument
	change = 2 // the argument is the configuration, active when it is in the log
	gener  = 3 // a generation; the argument is its number
	opens  = 4 // the owner's lane opens again, behind what it had before
)

func entry(kind, arg, term uint8) uint8 { return kind<<5 | arg<<2 | term }
func kindOf(e uint8) uint8              { return e >> 5 }
func argOf(e uint8) uint8               { return e >> 2 & 7 }
func termOf(e uint8) uint8              { return e & 3 }

// config is a configuration: masks of voters.
type config struct {
	voters uint8
	// outgoing is the other half of a joint configuration; else 0.
	outgoing uint8
	// closes: the lane's owner is gone, so nothing of the lane is confirmed after it.
	closes bool
	// off: it turns lanes off. Then closes is set.
	off bool
	// next are the configurations that may follow; they index the scenario's configs.
	next []uint8
}

// decides reports whether the members of a mask are enough in each quorum set.
func (c *config) decides(who uint8) bool {
	return most(c.voters, who) && (c.outgoing == 0 || most(c.outgoing, who))
}

func most(set, who uint8) bool { return 2*bits.OnesCount8(set&who) > bits.OnesCount8(set) }

// almost is like decides with one member fewer in each set.
func (c *config) almost(who uint8) bool {
	few := func(set uint8) bool { return 2*(bits.OnesCount8(set&who)+1) > bits.OnesCount8(set) }
	return few(c.voters) && (c.outgoing == 0 || few(c.outgoing))
}

func (c *config) has(m int) bool { return (c.voters|c.outgoing)>>m&1 == 1 }

// journal is a log: its entries, then zeros. No entry is zero, because terms begin at 1.
type journal [slots]uint8

func (j *journal) len() int {
	if n := bytes.IndexByte(j[:], 0); n >= 0 {
		return n
	}
	return slots
}

// common is how many entries two logs share.
func common(a, b *journal) int {
	for i := range a {
		if a[i] != b[i] || a[i] == 0 {
			return i
		}
	}
	return slots
}

// state is all that is true at one moment. What survives a crash: log, term, cells, fence. A vote is
// part of an election, which is one step. Only what can still matter is set; the rest is zero, so
// that equal situations are equal states.
type state struct {
	log   [members]journal
	term  [members]uint8
	cells [members]uint8 // how much of the lane is on disk, alongside the log
	fence [members]uint8 // messages of lower generations are refused

	lead   [members]uint8          // 1: leads its term
	commit [members]uint8          // a leader's commit index
	froze  [members][members]uint8 // what a leader knows of a follower that is in a later term now
	resp   [members][members]uint8 // answers to a leader's fence: 1 + what the lane had

	alive uint8 // 1: the owner's incarnation that has the lane continues
	heard uint8 // what the owner knows of its lane: 1 it was turned off, 2 it opened again
	gen   uint8 // the generation that the owner has adopted
	conf  uint8 // and its configuration
	ack   [members]uint8
	old   [members]uint8 // acks of earlier generations, where a variant counts them

	done     journal     // what is committed; no one knows all of it
	accepted [lane]uint8 // the generation under which an entry was accepted first; 0 not
	crashes  uint8
}

// rules is how the fence works. The zero value is what docs/internals/lcr.md says.
type rules struct {
	// entryIsGeneration: a configuration entry is a generation, numbered by its index.
	entryIsGeneration bool

	// Variants.
	countOld         bool // the owner counts acks of earlier generations too
	countOldSets     bool // and continues with the sets of its first generation
	ackFenced        bool // members take messages of fenced generations
	uncovered        bool // the configuration does not wait for signals
	fewAnswers       bool // one answer fewer than a quorum is enough
	newAnswers       bool // a quorum of the next configuration answers
	adoptInLog       bool // a generation is adopted when it is in the log
	noSuccessor      bool // no one starts a generation because of a fence that it did not finish
	forget           bool // fence does not survive a crash
	ownerUnfenced    bool // a fenced owner continues counting
	ackFromLog       bool // a signal in the log is taken for the entry on disk
	keepAnswers      bool // answers stay valid when a generation was started after the fence
	skipAdd          bool // no fence where the number of voters grows
	skipRemove       bool // no fence where it falls
	skipJoin         bool // no fence for the entry of a joint configuration
	skipLeave        bool // no fence for leaving a joint configuration
	dropOnGeneration bool // what is not confirmed is dropped with the generation
	openForEver      bool // a removed owner's lane is not closed
	openOff          bool // generations begin and lanes open while lanes are off
	sameNumbers      bool // a lane that opens again uses its numbers again
	// sameLane: members hold what comes of a lane that opened again before their log says that it did. They drop it
	// when they learn that the lane closed.
	sameLane bool
	// skipOff is a configuration that turns lanes off without a fence; 0: none does.
	skipOff uint8
}

// scenario is a cluster and what may happen to it.
type scenario struct {
	name    string
	configs []config
	owner   int
	entries uint8 // of the lane
	terms   uint8 // elections
	crashes uint8
	gens    uint8 // generations that may be started without a change
	// second is the first entry of the lane after it opens again; 0: it never does.
	second uint8
	// absent are the members that take no part.
	absent uint8
	length int // of a log
	// mirror swaps two members that play the same part, and maps configurations accordingly.
	mirror    [2]int
	mirrored  []uint8
	mayMirror bool
	// first is who leads in term 1.
	first int
	// lazy: copies come as late as they may; see laneSteps.
	lazy bool
}

type model struct {
	scenario
	rules
	judges
}

// view is what a log says at its end.
type view struct {
	n        int
	term     uint8
	conf     uint8 // the last configuration
	confAt   int   // its index, from 1
	gen      uint8
	genConf  uint8
	genAt    int
	signaled uint8
	closed   bool // by a configuration in this log
	off      bool // lanes are
	opened   bool // the lane opened again
	before   uint8
	fresh    uint8
}

// has reports whether the log confirms an entry.
func (v *view) has(m *model, e uint8) bool {
	if v.opened && e < m.second {
		return v.before >= e
	}
	return v.signaled >= e
}

func (m *model) view(j *journal, n int) view {
	v := view{gen: 1}
	for i := range n {
		e := j[i]
		v.n, v.term = i+1, termOf(e)
		switch kindOf(e) {
		case signal:
			v.signaled = argOf(e)
		case change:
			v.conf, v.confAt = argOf(e), i+1
			v.closed = v.closed || m.configs[v.conf].closes && !m.openForEver
			v.off = m.configs[v.conf].off
			if m.entryIsGeneration {
				v.gen, v.genConf, v.genAt = uint8(i+2), v.conf, i+1
			}
		case gener:
			if v.genAt >= v.confAt {
				v.fresh++
			}
			v.gen, v.genConf, v.genAt = argOf(e), v.conf, i+1
			if m.entryIsGeneration {
				v.gen = uint8(i + 2)
			}
			v.closed = v.closed || m.dropOnGeneration
		case opens:
			v.opened, v.closed, v.before = true, false, v.signaled
			v.signaled = m.second - 1
		}
	}
	return v
}

func (m *model) logView(s *state, i int) view { return m.view(&s.log[i], s.log[i].len()) }

// follow puts a member into a later term. Leaders of its term until now keep what it told them.
func (s *state) follow(i int, term uint8) {
	if s.term[i] == term {
		return
	}
	for l := range s.lead {
		if l != i && s.lead[l] == 1 && s.term[l] == s.term[i] {
			s.froze[l][i] = uint8(common(&s.log[l], &s.log[i]))
		}
	}
	s.stepDown(i)
	s.term[i] = term
}

func (s *state) stepDown(i int) {
	s.lead[i], s.commit[i] = 0, 0
	s.froze[i], s.resp[i] = [members]uint8{}, [members]uint8{}
}

// matched is how far leader l knows that i's log is its own.
func (s *state) matched(l, i int) int {
	switch {
	case l == i:
		return s.log[l].len()
	case s.term[i] == s.term[l]:
		return common(&s.log[l], &s.log[i])
	}
	return int(s.froze[l][i])
}

// advance commits what a quorum of the configuration in the leader's log holds.
func (m *model) advance(s *state, l int) {
	v := m.logView(s, l)
	for n := v.n; n > int(s.commit[l]) && termOf(s.log[l][n-1]) == s.term[l]; n-- {
		var who uint8
		for i := range members {
			if s.matched(l, i) >= n {
				who |= 1 << i
			}
		}
		if !m.configs[v.conf].decides(who) {
			continue
		}
		s.commit[l] = uint8(n)
		if known := s.done.len(); n > known {
			if common(&s.log[l], &s.done) != known {
				panic("the model's Raft is wrong: a committed entry was replaced")
			}
			s.done = journal{}
			copy(s.done[:n], s.log[l][:n])
		} else if common(&s.log[l], &s.done) < n {
			panic("the model's Raft is wrong: two entries are committed at one index")
		}
		return
	}
}

// counts reports whether the owner counts at all.
func (m *model) counts(s *state) bool {
	return s.alive == 1 && !m.configs[s.conf].closes && (s.fence[m.owner] <= s.gen || m.ownerUnfenced)
}

// writes are the entries that the owner writes now: from, before to.
func (m *model) writes(s *state) (from, to uint8) {
	switch {
	case m.second == 0:
		return 1, m.entries + 1
	case s.heard == 2:
		return m.second, m.entries + 1
	}
	return 1, m.second
}

// takes reports whether a member may hold what the owner sends of its lane.
func (m *model) takes(s *state, f int) bool {
	if m.absent>>f&1 == 1 || s.fence[f] > s.gen && !m.ackFenced {
		return false
	}
	v := m.logView(s, f)
	return s.heard < 2 || f == m.owner || v.opened || m.sameLane || m.sameNumbers
}

// hold writes an entry of the lane to a disk.
func (m *model) hold(s *state, f int, e uint8) {
	if m.sameNumbers && e >= m.second && s.cells[f] > 0 && f != m.owner {
		return // it has that number
	}
	s.cells[f] = max(s.cells[f], e)
}

// accept counts: the owner accepts an entry as soon as it may. Nothing depends on when it does, so
// the earliest moment is the worst.
func (m *model) accept(s *state) {
	from, to := m.writes(s)
	for e := from; e < to && s.cells[m.owner] >= e && m.counts(s); e++ {
		if s.accepted[e-1] == 0 && m.configs[s.conf].decides(m.ackers(s, e)) {
			s.accepted[e-1] = s.gen
		}
	}
}

// ackers are the owner and those that it heard from that they hold an entry.
func (m *model) ackers(s *state, e uint8) uint8 {
	who := uint8(1) << m.owner
	for i := range members {
		if i != m.owner && max(s.ack[i], s.old[i]) >= e || m.sameNumbers && s.heard == 2 && s.ack[i] > 0 {
			who |= 1 << i
		}
	}
	return who
}

// beginning is a cluster with a leader whose first entry all have.
func (m *model) beginning() state {
	s := state{alive: 1, gen: 1}
	for i := range members {
		s.term[i], s.log[i][0] = 1, entry(noop, 0, 1)
	}
	s.done[0], s.lead[m.first], s.commit[m.first] = entry(noop, 0, 1), 1, 1
	return s
}

// settle leaves out what cannot matter any more, and reports whether anything can.
func (m *model) settle(s *state) bool {
	accepted, all := false, true
	for _, g := range s.accepted[:m.entries] {
		accepted = accepted || g != 0
		all = all && g != 0
	}
	if all || m.configs[s.conf].closes || m.second > 0 && s.accepted[m.second-1] != 0 {
		s.alive = 0
	}
	if m.settled(s) {
		s.ack, s.old, s.gen, s.conf = [members]uint8{}, [members]uint8{}, 0, 0
		s.fence = [members]uint8{}
		for l := range members {
			for f, r := range s.resp[l] {
				if r == s.cells[f]+1 && s.term[f] <= s.term[l] {
					s.resp[l][f] = 0
				}
			}
		}
	}
	covered := m.view(&s.done, s.done.len()).signaled >= m.entries
	return m.stuck || m.everything || !covered && (accepted || s.alive == 1 || m.second > 0 && s.heard < 2)
}

// settled: the owner counts no more, so what is accepted, and who holds it, is resolved. Then a fence is answered when
// the answers are used, and generations do not matter.
func (m *model) settled(s *state) bool {
	return s.alive == 0 && !m.stuck && m.lazy && (m.second == 0 || s.heard == 2)
}

// keptAcks is what remains of the acks when they count no more under the rules.
func (m *model) keptAcks(s *state) (kept [members]uint8) {
	if m.countOld || m.countOldSets {
		for i := range kept {
			kept[i] = max(s.ack[i], s.old[i])
		}
	}
	return kept
}
