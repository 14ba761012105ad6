package merged

import (
	"math/bits"

	"github.com/braidlog/braid/internal/explore"
)

const (
	members   = 4
	instances = 3
	room      = 4 // entries of a log
	bodies    = 2

	first, second = 0, 1 // the instances of the old order
	behind        = 2    // the instance of the new order
)

// entry is a kind and its argument; 0: there is none.
type entry uint16

const (
	put    entry = (1 + iota) << 8
	coded        // put with a coded body, with its number
	config       // with the voters, and the number of the change; fills no round
	seal         // with the voters that it expects, and the bodies that its proposer has checked
)

func (e entry) kind() entry { return e &^ 255 }
func (e entry) set() uint8  { return uint8(e & 15) }
func (e entry) high() uint8 { return uint8(e>>4) & 15 }

// cluster is a state. An instance's log is the one that its members agree on; members have it in order, at any pace.
type cluster struct {
	log    [instances][room]entry
	last   [instances]uint8
	commit [instances]uint8
	match  [instances][members]uint8 // entries that a member has on disk
	begun  uint8                     // members that have begun
	whole  [bodies]uint8             // members with a whole copy of a body
	bodies uint8
	stale  bool // a read missed a write
}

// model is the bounds, and a variant of the rules.
type model struct {
	voters  uint8
	next    []uint8 // voters to which the first instance may change
	seals   int
	length  [instances]uint8
	bodies  uint8 // how many there may be
	rows    int   // a coded body has as many rows, and is read from as many
	decides int   // members that decide in the old order; the new one has majorities
	reads   bool

	variant
}

// variant is what a wrong implementation does; the zero value is the rules.
type variant struct {
	beginsAtSeal bool // begins when S is decided, and not what is before p in the second instance
	uneven       bool // S counts although the second instance has other voters
	sameVoters   bool // S counts if the voters of both instances are the same, whichever change made them so
	hasty        bool // members change again before the second instance has followed
	unchecked    bool // S counts whatever bodies there are
	byProposer   bool // the proposer of S checks the bodies that it knows, and S counts whatever came in between
	secondReads  bool // a read asks the second instance alone, whose leader has a lease
}

// view is how far the merged log comes with what is known of the old instances' logs.
type view struct {
	at     [2]uint8 // entries that are in it
	voters [2]uint8
	change [2]uint8 // the number of the change that made them the voters
	bodies uint8    // coded bodies in it
	sealed bool     // a seal counts, and all up to p is in it
	seal   entry    // the last seal
}

func count(set uint8) int       { return bits.OnesCount8(set) }
func has(set uint8, x int) bool { return set>>x&1 == 1 }

func (m *model) space() explore.Space[cluster, step] {
	return explore.Space[cluster, step]{Each: m.each, Describe: step.String, Judge: m.judge, Normalize: m.arrange,
		Show: show}
}

// merge returns the global log of what is known: a round has one entry of each instance, in the order of instances.
func (m *model) merge(s *cluster, known [2]uint8) view {
	v := view{voters: [2]uint8{m.voters, m.voters}}
	for {
		pending := v.at
		for in := range 2 {
			if !fill(s, in, known[in], &v) {
				if in == second && m.beginsAtSeal && s.log[first][v.at[first]-1].kind() == seal {
					v.sealed = m.counts(&v)
				}
				return v
			}
		}
		if pending[first] < v.at[first] && s.log[first][v.at[first]-1].kind() == seal && m.counts(&v) {
			v.sealed = true
			return v
		}
	}
}

// fill takes entries up to one that fills the instance's place in the round. It reports whether there is one.
func fill(s *cluster, in int, known uint8, v *view) bool {
	for v.at[in] < known {
		e := s.log[in][v.at[in]]
		v.at[in]++
		switch e.kind() {
		case config:
			v.voters[in], v.change[in] = e.set(), e.high()
			continue
		case coded:
			v.bodies |= 1 << e.set()
		case seal:
			v.seal = e
		}
		return true
	}
	return false
}

// counts is the verdict at p.
func (m *model) counts(v *view) bool {
	agreed := v.voters[first] == v.seal.set()
	switch {
	case m.uneven:
	case m.sameVoters:
		agreed = agreed && v.voters[second] == v.seal.set()
	default:
		agreed = agreed && v.change[first] == v.change[second]
	}
	return agreed && (m.unchecked || m.byProposer || v.bodies&^v.seal.high() == 0)
}

// sees is the view of a member that knows what is decided of what it has.
func (m *model) sees(s *cluster, x int) view {
	known := [2]uint8{min(s.match[first][x], s.commit[first]), min(s.match[second][x], s.commit[second])}
	return m.merge(s, known)
}

func (m *model) truth(s *cluster) view {
	return m.merge(s, [2]uint8{s.commit[first], s.commit[second]})
}

// newest is the newest configuration of a log of the old order, and the one before it.
func (m *model) newest(s *cluster, in int, upTo uint8) (now, before entry) {
	now = config | entry(m.voters)
	before = now
	for _, e := range s.log[in][:upTo] {
		if e.kind() == config {
			now, before = e, now
		}
	}
	return now, before
}

// decide commits what may be, in order. A configuration, and what is before it, needs a quorum of both.
func (m *model) decide(s *cluster, in int) {
	for ; s.commit[in] < s.last[in]; s.commit[in]++ {
		c, b := m.newest(s, in, s.commit[in]+1)
		now, before := c.set(), b.set()
		if in == behind {
			now = m.truth(s).seal.set()
			before = now
		}
		have := uint8(0)
		for x := range members {
			if s.match[in][x] > s.commit[in] {
				have |= 1 << x
			}
		}
		if count(have&now) < m.quorum(in, now) || count(have&before) < m.quorum(in, before) {
			return
		}
	}
}

func (m *model) quorum(in int, of uint8) int {
	if in != behind && m.decides > 0 {
		return m.decides
	}
	return count(of)/2 + 1
}

// arrange orders members that play the same part, and reports true.
func (m *model) arrange(s *cluster) bool {
	for _, pair := range [...][2]int{{0, 1}, {1, 2}, {0, 1}} {
		a, b := pair[0], pair[1]
		if m.part(a) == m.part(b) && s.order(a) < s.order(b) {
			s.swap(a, b)
		}
	}
	return true
}

// part is in which configurations a member is.
func (m *model) part(x int) (set uint8) {
	for i, to := range m.next {
		set |= to >> x & 1 << (i + 1)
	}
	return set | m.voters>>x&1
}

func (s *cluster) order(x int) (key uint64) {
	for in := range s.match {
		key = key<<4 | uint64(s.match[in][x])
	}
	for b := range s.whole {
		key = key<<1 | uint64(s.whole[b]>>x&1)
	}
	return key<<1 | uint64(s.begun>>x&1)
}

func (s *cluster) swap(a, b int) {
	for in := range s.match {
		s.match[in][a], s.match[in][b] = s.match[in][b], s.match[in][a]
	}
	for _, set := range []*uint8{&s.begun, &s.whole[0], &s.whole[1]} {
		if has(*set, a) != has(*set, b) {
			*set ^= 1<<a | 1<<b
		}
	}
}
