package issmodel

import "math/bits"

// The third model: two epochs, and what is decided in them changes the members. Each sequence number of the scenario
// adds or removes members, or is an ordinary value; ⊥ may be decided instead.
//
// What a member learns or promises is durable at once; the second model covers the rest. Votes are never dropped. A
// member that knows the decisions of an epoch no longer promises or votes in it, and answers with the decisions
// instead.
const (
	seats  = 4 // members; the last one is not in the first configuration
	epochs = 2
	places = 3 // sequence numbers of all epochs
	tries  = 3 // ballots, with ballot 0
	joiner = seats - 1
)

// change is what a value does to the configuration. It has no effect if the members that it presumes are not in it.
type change struct{ add, remove, presumes uint8 }

func (c change) apply(conf uint8) uint8 {
	if c.presumes&^conf != 0 {
		return conf
	}
	return conf&^c.remove | c.add
}

// scenario is a cluster, its leaders' proposals, and the faults that may happen.
type scenario struct {
	changes   [places]change
	first     [epochs + 1]int // an epoch's first sequence number; the last one is how many there are
	highest   [epochs]uint8   // ballot
	deaths    int             // how many may die, if no configuration loses more than it tolerates
	mayMirror bool
}

// turn is a state.
type turn struct {
	known    [seats]uint8         // decisions, two bits for each sequence number
	promise  [epochs][seats]uint8 //
	opener   [epochs][tries]uint8 // 1 + the member
	promised [epochs][tries]uint8 // the members that promised
	asked    [places][tries]uint8 // the value that a ballot proposes
	votes    [places][tries]uint8 // all votes that were ever cast
	decided  [places]uint8        // values that had a quorum, or that some member has learned
	dead     uint8
	left     uint8 // members that have left; they answer no one
	fasted   uint8 // sequence numbers that were decided at once
	early    uint8 // 1: the joiner takes part in epoch 1 without the decisions of epoch 0
	swapped  uint8 // members that learned the second decision of epoch 0 before the first
}

// changeRules are the rules of changes. The zero value is the rules in docs/reports/iss-models.md.
type changeRules struct {
	midEpoch        bool // a change takes effect at the next sequence number
	asLearned       bool // changes are folded in the order in which a member learns them
	joinsEarly      bool // a joiner takes part before it has the decisions
	honest          bool // but until then it does not count as having them
	leavesOwn       bool // a member leaves when it has the decisions itself
	leavesStable    bool // when a majority of the old configuration has them
	leavesFew       bool // when one member fewer of the new configuration has them
	noStrangers     bool // a member receives only from members of configurations that it knows
	newcomersSilent bool // a member answers only for epochs whose configuration it was in
	readsOnce       bool // a read asks a quorum of its member's epoch, and no later one
	joinerSpared    bool // a joiner does not count among the members that may fail
	fast            bool // ⊥ is decided at once if all promised and none had voted
	fastNotLast     bool // but not at the last sequence number of an epoch
}

type changeModel struct {
	changeRules
	scenario
	// ignoreConfigs: differing configurations are no error, only their consequences are.
	ignoreConfigs bool
	// ignoreFuture: do not check what may follow from a state, nor reads.
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

// needs reports whether a member needs the decisions of an epoch: its own epoch, or one that it has passed without
// them.
func (m *changeModel) needs(s *turn, i, e int) bool {
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

// config is a member's view of the configuration at a sequence number.
func (m *changeModel) config(s *turn, i, at int) uint8 {
	known, until := s.known[i], at
	if !m.midEpoch && at < m.first[epochs] {
		until = m.first[m.epochOf(at)]
	}
	if i == joiner && s.early == 1 {
		for n := range m.first[1] { // it was sent the outcome
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

// outcome is the configuration of an epoch if any member knows it.
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

// handedOver reports whether an epoch is on enough disks of the old and the next configuration, so that members of
// the old one may leave or die safely.
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

// normalize drops state that has no effect any more: promises of members that no longer take part in an epoch, and
// all of an epoch in which no member does.
func (m *changeModel) normalize(s *turn) {
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
		s.opener[e], s.promised[e] = [tries]uint8{}, [tries]uint8{}
		for at := m.first[e]; at < m.first[e+1]; at++ {
			s.asked[at], s.votes[at] = [tries]uint8{}, [tries]uint8{}
		}
	}
}

// mirror exchanges two members with the same role.
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
			swap(&n.promised[e][b])
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
