package reshapemodel

import (
	"fmt"
	"math/bits"

	"github.com/braidlog/braid/internal/explore"
)

const (
	members = 4 // member n of the text is index n−1
	room    = 4 // entries of a log
	bodies  = 2

	first, second = 0, 1 // the instances
)

// entry is an entry of a log: its kind, then an argument. 0: there is none.
type entry uint8

const (
	put     entry = 1 << 4 // a coded body, with its number; fills a round
	skip    entry = 2 << 4 // fills a round
	config  entry = 3 << 4 // with a mask of voters; fills no round
	reshape entry = 4 << 4 // fills a round; the second instance is retired after that round
)

func (e entry) kind() entry { return e &^ 15 }
func (e entry) arg() uint8  { return uint8(e & 15) }

// form is what a member holds of a body.
type form uint8

const (
	none form = iota
	row       // its own
	whole
)

// cluster is a state. Logs, and what is held, are on disks at once.
type cluster struct {
	log    [2][room]entry
	last   [2]uint8
	commit [2]uint8
	match  [2][members]uint8 // how much of each log a member has
	holds  [bodies][members]form
	in     [bodies]uint8 // the instance that has the body, from 1; 0: none yet
	// asked: a reshape was proposed, and refused. It will be proposed again.
	asked uint8
}

// rules are the variants; the zero value is what the product does.
type rules struct {
	countBehind  bool // who has not applied the last reshape counts as a holder
	leaderBehind bool // a leader that has not applied it changes members
	unrepeated   bool // a reshape that is proposed again is not checked

	deaf         bool // the first instance's core is not told of bodies of the retired one
	lacksNothing bool // nor what is missing of them
	stateless    bool // no one asks who has the state
	unchecked    bool // a reshape is not checked at all
	naive        bool // any majority commits a body
	followFreely bool // the second instance follows whatever becomes of its bodies
	unmatched    bool // who is behind in the log itself counts as a holder

	rowsAtOnce   bool // a learner becomes a voter without its rows
	whilePending bool // members change between a reshape and the place where it takes effect
	joinAtOnce   bool // a member is added before the second instance has followed
}

// before are the rules that lost bodies.
var before = rules{countBehind: true, leaderBehind: true, unrepeated: true}

// setting is a cluster, and how far it goes.
type setting struct {
	name   string
	voters uint8
	k      int
	next   []uint8 // voters to which the first instance may change
	length [2]uint8
	bodies int
	copies bool // members may make whole copies
	one    bool // bodies go through the second instance only
	// bodiesOnly: whether those that are left come to the state is not judged.
	bodiesOnly bool
}

type model struct {
	setting
	rules
}

func (m *model) space() explore.Space[cluster, step] {
	return explore.Space[cluster, step]{Each: m.each, Describe: step.String, Judge: m.judge, Normalize: arrange,
		Show: show}
}

func size(set uint8) int        { return bits.OnesCount8(set) }
func majority(n int) int        { return n/2 + 1 }
func has(set uint8, i int) bool { return set>>i&1 == 1 }

// newest is the newest configuration in an instance's log, and its index; 0: the first one.
func (m *model) newest(s *cluster, in int, upTo uint8) (voters, at uint8) {
	voters = m.voters
	for i, e := range s.log[in][:upTo] {
		if e.kind() == config {
			voters, at = e.arg(), uint8(i)+1
		}
	}
	return voters, at
}

// place is where a body stands, in the log of its instance, from 1.
func (s *cluster) place(body int) (in int, at uint8) {
	in = int(s.in[body]) - 1
	for i, e := range s.log[in][:s.last[in]] {
		if e == put|entry(body) {
			return in, uint8(i) + 1
		}
	}
	panic("a body without entry")
}

// durable is docs/internals/craft.md, 2.1. An entry that is committed already needs no majority for itself.
func (m *model) durable(s *cluster, body int, voters uint8, committed bool) bool {
	copies, rows := 0, 0
	for i, f := range s.holds[body] {
		if has(voters, i) && f == whole {
			copies++
		} else if has(voters, i) && f == row {
			rows++
		}
	}
	n := size(voters)
	q := majority(n)
	return (committed || copies+rows >= q) && (copies > n-q || copies+rows >= n-q+m.k)
}

// decide commits what may be, in order.
func (m *model) decide(s *cluster, in int) {
	voters, _ := m.newest(s, in, s.last[in])
	for s.commit[in] < s.last[in] {
		have := 0
		for i := range members {
			if has(voters, i) && s.match[in][i] > s.commit[in] {
				have++
			}
		}
		e := s.log[in][s.commit[in]]
		if have < majority(size(voters)) || e.kind() == put && !m.naive && !m.durable(s, int(e.arg()), voters, false) {
			return
		}
		s.commit[in]++
	}
}

// arrange gives members 1 to 3, which play the same part, an order.
func arrange(s *cluster) bool {
	for _, pair := range [...][2]int{{0, 1}, {1, 2}, {0, 1}} {
		if a, b := pair[0], pair[1]; s.part(a) < s.part(b) {
			s.swap(a, b)
		}
	}
	return true
}

func (s *cluster) part(i int) (key uint32) {
	key = uint32(s.match[first][i])<<8 | uint32(s.match[second][i])
	for b := range s.holds {
		key = key<<4 | uint32(s.holds[b][i])
	}
	return key
}

func (s *cluster) swap(a, b int) {
	for in := range s.match {
		s.match[in][a], s.match[in][b] = s.match[in][b], s.match[in][a]
	}
	for i := range s.holds {
		s.holds[i][a], s.holds[i][b] = s.holds[i][b], s.holds[i][a]
	}
}

func show(s *cluster) string {
	out := ""
	for in := range s.log {
		out += fmt.Sprintf("instance %d:", in+1)
		for _, e := range s.log[in][:s.last[in]] {
			out += fmt.Sprintf(" %s%d", [...]string{"", "body ", "skip ", "voters ", "reshape "}[e>>4], e.arg())
		}
		out += fmt.Sprintf(", committed %d, members have %v; ", s.commit[in], s.match[in])
	}
	return out + fmt.Sprintf("bodies %v", s.holds)
}
