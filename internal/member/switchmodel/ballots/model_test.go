package ballots

import (
	"math/bits"

	"github.com/braidlog/braid/internal/explore"
)

const (
	members = 3
	slots   = 4 // of the old order
	ballots = 3 // ballot 0 belongs to a segment's first leader, ballot b to member b
	again   = 3 // ballot 0 of the new order, in another incarnation of its first leader
)

// value is what is proposed in a slot: kind<<4 | argument; 0: nothing is.
type value uint8

const (
	empty  = (1 + iota) << 4
	put    // with the ballot in which it was first proposed
	change // of the members; active from the next epoch on
	seal   // with the first leader
)

func (v value) kind() value { return v &^ 15 }
func (v value) arg() int    { return int(v & 15) }

// slot is what was ever proposed in a slot and voted for. Votes are durable before they are sent.
type slot struct {
	value [ballots + 1]value
	votes [ballots + 1]uint8
}

// segment are slots with one proposer at a time.
type segment struct {
	promised [members]uint8 // a member takes part in no lower ballot
	promises [ballots]uint8 // members that promised
	opened   uint8          // ballots that were ever opened
	active   uint8          // those that their proposers know of: a crash ends a ballot
}

type cluster struct {
	slots    [slots]slot
	segments [2]segment
	next     slot // the first slot of the new order
	heir     segment
	m        uint8 // member+1 that is the new order's first leader; 0: no member has begun
	begun    uint8
	rec      uint8 // members whose first record is durable
	dropped  uint8 // members without cells of the old order
	crashes  uint8
	opens    uint8
	wrong    fault
}

type fault uint8

const (
	right fault = iota
	otherPlace
	twoValues
	staleRead
)

// model is the bounds, what is decided in slots, and a variant of the rules.
type model struct {
	epoch   uint8 // slots of an epoch: 1 is multi-Paxos, otherwise two leaders take turns, as in ISS
	slots   uint8
	crashes uint8
	opens   uint8 // ballots that are opened, in both orders
	puts    bool
	changes bool
	seals   int // who may be the first leader: the proposer or, if 2, the next member

	variant
}

// variant is what a wrong implementation does; the zero value is the rules.
type variant struct {
	gap         bool // W2: begins when S is decided, whatever is undecided before it
	shortEpoch  bool // W2: one member takes the slot of S for p
	ownMembers  bool // W7: S counts although the members change with the next epoch
	bornTwice   bool // W3: the first leader speaks before its first record is durable
	leadsAgain  bool // W6: the first leader proposes in ballot 0 after a restart
	oldAnswers  bool // W4: promises and votes in the old order after it has begun
	dropsCells  bool // W8: gives up its cells and still promises
	leasedReads bool // W5: a proposer reads because its ballot was not replaced
}

func majority(set uint8) bool   { return bits.OnesCount8(set) > members/2 }
func has(set uint8, x int) bool { return set>>x&1 == 1 }

func (m *model) space() explore.Space[cluster, step] {
	return explore.Space[cluster, step]{Each: m.each, Describe: step.String, Judge: m.judge, Normalize: m.normalize,
		Beginning: m.beginning()}
}

// beginning: the first leaders of the old order's segments know of their ballots.
func (m *model) beginning() (s cluster) {
	for i := range s.segments {
		s.segments[i].opened, s.segments[i].active = 1, 1
	}
	return s
}

// segment is the one that a slot of the old order belongs to, and the first leader of both.
func (m *model) segment(at uint8) int {
	if m.epoch == 1 {
		return 0
	}
	return int(at % 2)
}

// level orders ballots.
func level(ballot int) int { return ballot % again }

// proposer is the member that a ballot of a segment belongs to.
func proposer(seg, ballot int) int {
	if level(ballot) == 0 {
		return seg
	}
	return ballot
}

// decided is the value that a slot has; 0: none yet.
func (s *slot) decided() (v value, two bool) {
	for b, votes := range s.votes {
		if !majority(votes) {
			continue
		}
		if v != 0 && v != s.value[b] {
			return v, true
		}
		v = s.value[b]
	}
	return v, false
}

// sealed is the place p, from 1, and the first leader, by the decisions that member x can know; 0: no seal counts yet.
func (m *model) sealed(s *cluster, x int) (p, first uint8) {
	for from := uint8(0); from < m.slots; from += m.epoch {
		first, at, changes := uint8(0), uint8(0), false
		for i := from; i < from+m.epoch; i++ {
			v, _ := s.slots[i].decided()
			switch {
			case v == 0 && !m.gap:
				return 0, 0
			case v == 0:
				continue
			}
			changes = changes || v.kind() == change
			if v.kind() == seal && first == 0 {
				first, at = uint8(v.arg())+1, i+1
			}
			if first > 0 && m.shortEpoch && x == 0 {
				return at, first
			}
		}
		if first > 0 && (!changes || m.ownMembers) {
			return from + m.epoch, first
		}
	}
	return 0, 0
}
