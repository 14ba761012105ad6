package issmodel

import "math/bits"

// A value is a bit, so that a byte holds one, none, or a set of them.
const (
	bottom = 1 // ⊥: nothing was proposed here, and nothing will be
	first  = 2 // what the segment's leader proposes
	second = 4 // what it proposes after it forgot the first
)

func valueName(v uint8) string {
	return [...]string{"nothing", "⊥", "v", "{⊥ v}", "w", "{⊥ w}", "{v w}", "{⊥ v w}"}[v&7]
}

// several reports whether a set has more than one value.
func several(set uint8) bool { return set&(set-1) != 0 }

// States of a ballot in place of its opener, 1 + the member.
const (
	gone    = 15 // it has proposed, or forgotten the promises: its phase 1 is over permanently
	reopens = 8  // added to an opener that has forgotten the ballot, if it opens it again then
)

// report is the part of a promise about one sequence number: the vote of the highest ballot, the decision, and
// whether the segment's leader declares that it never proposes here. 0 is no promise.
type report uint16

const (
	promised report = 1 << 15
	never    report = 1 << 14
)

func voted(ballot, value uint8) uint8 { return ballot<<3 | value }

func (r report) vote() uint8    { return uint8(r & 0x1f) }
func (r report) decided() uint8 { return uint8(r >> 8 & 7) }

// with adds a vote and a decision to a promise's report; 0 is none.
func (r report) with(vote, decided uint8) report {
	return r | promised | report(vote) | report(decided)<<8
}

// choice is a proposer's conclusion from reports.
type choice struct {
	decided uint8 // it only announces this
	value   uint8 // it proposes this
	found   bool  // a member had voted for it
	never   bool  // the leader's declaration is among them
}

func choose(reports []report) (c choice) {
	highest := uint8(0)
	for _, r := range reports {
		highest = max(highest, r.vote())
		c.decided |= r.decided()
		c.never = c.never || r&never != 0
	}
	c.value, c.found = bottom, highest != 0
	if c.found {
		c.value = highest & 7
	}
	return c
}

// majority reports whether a mask has a majority of a set.
func majority(mask, set uint8) bool { return 2*bits.OnesCount8(mask&set) > bits.OnesCount8(set) }
