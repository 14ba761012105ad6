package issmodel

import "math/bits"

// The third model: two epochs, and what is decided in them changes the members. Each sequence number
// of the scenario is to add or remove members, or to be an ordinary value; ⊥ may be decided instead.
//
// What a member learns or promises is durable at once: what is not is the second model's subject.
// Votes are never given up. Who knows the decisions of an epoch neither promises nor votes in it any
// more, and answers with them instead.
const (
	seats  = 4 // members; the last one is not in the first configuration
	epochs = 2
	places = 3 // sequence numbers of all epochs
	tries  = 3 // ballots, with ballot 0
	joiner = seats - 1
)

// change is what a value does to the configuration. It does nothing where the members that it presumes
// are not in it.
type change struct{ add, remove, presumes uint8 }

func (c change) apply(conf uint8) uint8 {
	if c.presumes&^conf != 0 {
		return conf
	}
	return conf&^c.remove | c.add
}

// story is a cluster, what its leaders propose, and what may happen to it.
type story struct {
	changes   [places]change
	first     [epochs + 1]int // an epoch's first sequence number; the last one is how many there are
	highest   [epochs]uint8   // ballot
	deaths    int             // how many may die, if no configuration loses more than it survives
	mayMirror bool
}

// turn is a state.
type turn struct {
	known   [seats]uint8         // decisions, two bits for each sequence number
	promise [epochs][seats]uint8 //
	opener  [epochs][tries]uint8 // 1 + who
	told    [epochs][tries]uint8 // who promised
	asked   [places][tries]uint8 // the value that a ballot proposes
	votes   [places][tries]uint8 // whose votes there ever were
	decided [places]uint8        // values that had a quorum, or that some member has learned
	dead    uint8
	left    uint8 // who has left; it answers nobody any more
	fasted  uint8 // which sequence numbers were decided at once
	early   uint8 // 1: the joiner takes part in epoch 1 and has not got what was decided before
	swapped uint8 // who learned the second decision of epoch 0 before the first
}

// changeRules is how changes take effect. The zero value is what docs/iss-models.md says.
type changeRules struct {
	midEpoch        bool // a change takes effect at the next sequence number
	asLearned       bool // changes are folded in the order in which a member learns them
	joinsEarly      bool // a joiner takes part before it has the decisions
	honest          bool // but until then it does not count among those that have them
	leavesOwn       bool // a member leaves when it has the decisions itself
	leavesStable    bool // when a majority of the old configuration has them
	leavesFew       bool // when one member fewer of the new configuration has them
	noStrangers     bool // a member hears only members of configurations that it knows
	newcomersSilent bool // a member answers only for epochs whose configuration it was in
	readsOnce       bool // a read asks a quorum of its member's epoch, and no later one
	joinerSpared    bool // a joiner is not counted among those that may fail
	fast            bool // ⊥ is decided at once where all promised and none had voted
	fastNotLast     bool // but not at the last sequence number of an epoch
}

type changeModel struct {
	changeRules
	story
	// ignoreConfigs: do not judge that configurations differ, but what comes of it.
	ignoreConfigs bool
	// ignoreFuture: do not judge what may come of a state, nor reads.
	ignoreFuture bool
}

func (m *changeModel) beginning() turn { return turn{} }

const firstConfig = 0b0111

func (s *turn) knows(i, at int) uint8 { return s.known[i] >> (2 * at) & 3 }

func (m *changeModel) epochOf(at int) int {
	if at >= m.first[1] {
		return 1
	}
	return 0
}

// closed reports whether a member has ended an epoch.
func (m *changeModel) closed(s *turn, i, e int) bool {
	if i == joiner && e == 0 && s.early == 1 {
		return true
	}
	return m.has(s, i, e)
}

// has reports whether a member knows all decisions of an epoch.
func (m *changeModel) has(s *turn, i, e int) bool {
	for at := m.first[e]; at < m.first[e+1]; at++ {
		if s.knows(i, at) == 0 {
			return false
		}
	}
	return true
}

// lacks reports whether a member wants the decisions of an epoch: its own epoch, or one that it has
// passed without them.
func (m *changeModel) lacks(s *turn, i, e int) bool {
	return !m.has(s, i, e) && m.now(s, i) >= e
}

// now is a member's epoch.
func (m *changeModel) now(s *turn, i int) int {
	for e := range epochs {
		if !m.closed(s, i, e) {
			return e
		}
	}
	return epochs
}

// fold applies decisions up to a sequence number to the first configuration.
func (m *changeModel) fold(known uint8, until int, swapped bool) uint8 {
	conf := uint8(firstConfig)
	for n := range until {
		at := n
		if swapped && n < 2 && m.first[1] == 2 {
			at = 1 - n
		}
		if known>>(2*at)&3 == first {
			conf = m.changes[at].apply(conf)
		}
	}
	return conf
}

// config is what a member takes for the configuration at a sequence number.
func (m *changeModel) config(s *turn, i, at int) uint8 {
	known, until := s.known[i], at
	if !m.midEpoch && at < m.first[epochs] {
		until = m.first[m.epochOf(at)]
	}
	if i == joiner && s.early == 1 {
		for n := range m.first[1] { // it was told the outcome
			known |= s.decided[n] << (2 * n)
		}
	}
	return m.fold(known, until, s.swapped>>i&1 == 1)
}

// begun reports whether the leader of an epoch has begun it, as a member of that epoch sees it. The
// leader is the first member of the configuration in a fixed order.
func (m *changeModel) begun(s *turn, i, e int) bool {
	conf := m.config(s, i, m.first[e])
	for _, l := range [seats]int{0, joiner, 1, 2} {
		if conf>>l&1 == 1 {
			return e == 0 || m.closed(s, l, e-1)
		}
	}
	return false
}

// takesPart reports whether a member votes at a sequence number: its epoch is open here.
func (m *changeModel) takesPart(s *turn, i, at int) bool {
	return m.now(s, i) == m.epochOf(at) && s.knows(i, at) == 0 && m.config(s, i, at)>>i&1 == 1
}

func (s *turn) works(i int) bool { return (s.dead|s.left)>>i&1 == 0 }

func survives(conf uint8) int { return (bits.OnesCount8(conf) - 1) / 2 }

// outcome is the configuration of an epoch if somebody knows it.
func (m *changeModel) outcome(s *turn, e int) (uint8, bool) {
	known := uint8(0)
	for at := range m.first[e] {
		if s.decided[at] == 0 {
			return 0, false
		}
		known |= s.decided[at] << (2 * at)
	}
	return m.fold(known, m.first[e], false), true
}

// handedOver reports whether an epoch is on enough disks of the old and the next configuration, so
// that members of the old one may leave, or die without harm.
func (m *changeModel) handedOver(s *turn, e int, old, next uint8) bool {
	had, have := uint8(0), uint8(0)
	for i := range seats {
		bit := uint8(1) << i
		if m.has(s, i, e) {
			had |= bit
		}
		if m.has(s, i, e) || m.closed(s, i, e) && !m.honest {
			have |= bit
		}
	}
	need := survives(next) + 1
	if m.leavesFew {
		need--
	}
	stable := majority(had, old)
	return stable && (m.leavesStable || bits.OnesCount8(have&next) >= need)
}

func (m *changeModel) each(s *turn, yield func(step, *turn)) {
	do := func(text string, a, b, c, d int, f func(n *turn)) {
		n := *s
		f(&n)
		m.tidy(&n)
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
			if m.lacks(s, i, e) {
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
	n.told[e][b] |= 1 << i
}

// proposeSteps: what different quorums of promises leave to propose.
func (m *changeModel) proposeSteps(s *turn, i, at int, b uint8, do turnDoer) {
	e := m.epochOf(at)
	conf, offered := m.config(s, i, at), uint8(0)
	if s.asked[at][b] != 0 || s.knows(i, at) != 0 {
		return
	}
	for q := uint8(1); q < 1<<seats; q++ {
		if q&^(s.told[e][b]&conf) != 0 || !majority(q, conf) {
			continue
		}
		v := m.found(s, at, q, b)
		if offered&v != 0 {
			continue
		}
		if !m.fast { // else a quorum that can decide at once may come later
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
	n.opener[e][b], n.told[e][b] = gone, 0
}

// forget: a member that stops proposes no more in the ballots that it has opened.
func (m *changeModel) forget(n *turn, i int) {
	for e := range epochs {
		for b := range uint8(tries) {
			if n.opener[e][b] == uint8(i)+1 {
				m.spend(n, e, b)
			}
		}
	}
}

// learningSteps: a member of the epoch counts votes, or anybody hears the decisions from one that
// works and has them. It learns all of an epoch at once. Where the model looks at what happens in
// between, it learns one after the other.
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

// source is a member from which another one can learn a decision: itself by counting votes, or one
// that works and has it; −1 none.
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
		if v := s.knows(x, at); v != 0 && s.works(x) && m.hears(s, i, x, at) {
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

// hears reports whether a member gets decisions from another one.
func (m *changeModel) hears(s *turn, i, from, at int) bool {
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

// tidy leaves out what cannot matter any more: promises of members that take no more part in an epoch,
// and all of an epoch in which nobody does.
func (m *changeModel) tidy(s *turn) {
	for e := range epochs {
		needed := m.midEpoch
		for i := range seats {
			now := m.now(s, i)
			if !s.works(i) || now > e {
				s.promise[e][i] = 0
			} else if now < e || m.config(s, i, m.first[e])>>i&1 == 1 {
				needed = true
			}
		}
		if needed {
			continue
		}
		s.opener[e], s.told[e] = [tries]uint8{}, [tries]uint8{}
		for at := m.first[e]; at < m.first[e+1]; at++ {
			s.asked[at], s.votes[at] = [tries]uint8{}, [tries]uint8{}
		}
	}
}

// mayDie: no configuration, with the member that may join it, loses more members than it survives, as
// long as it is needed.
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

// mirror exchanges two members that play the same part.
func (m *changeModel) mirror(s *turn) turn {
	n := *s
	if !m.mayMirror {
		return n
	}
	swap := func(masks ...*uint8) {
		for _, mask := range masks {
			if *mask>>1&1 != *mask>>2&1 {
				*mask ^= 0b0110
			}
		}
	}
	n.known[1], n.known[2] = s.known[2], s.known[1]
	for e := range epochs {
		n.promise[e][1], n.promise[e][2] = s.promise[e][2], s.promise[e][1]
		for b := range tries {
			if o := s.opener[e][b]; o == 2 || o == 3 {
				n.opener[e][b] = 5 - o
			}
			swap(&n.told[e][b])
		}
	}
	for at := range places {
		for b := range tries {
			swap(&n.votes[at][b])
		}
	}
	swap(&n.dead, &n.left, &n.swapped)
	return n
}
