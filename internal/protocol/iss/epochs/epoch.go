package epochs

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Epoch is a run of slots that some members lead. It never changes, and is safe for concurrent use.
type Epoch struct {
	// Number counts epochs from 1.
	Number uint64
	// First and Last are its slots. Each leader has some of them.
	First, Last protocol.Index
	// Voters are the voters throughout the epoch, and Leaders those of them that lead: 1 to MaxLeaders. Both are
	// ascending, and are never modified.
	Voters, Leaders []protocol.MemberID
	// Zones has the zone of each voter throughout the epoch, and is nil if none has one. It is never modified.
	Zones []string
	// turns are the leaders of the first slots, as places in Leaders; they repeat until the end. Each
	// leader has a turn, and the number of slots is a multiple of that of turns.
	turns []uint8
	// gaps is, for each turn, after how many slots the same leader has the next one.
	gaps []uint16
	// ends are the last slots of the leaders' segments.
	ends []protocol.Index
	// owners are the leaders of the buckets, as places in Leaders.
	owners [Buckets]uint8
}

// MaxLeaders limits the leaders of an epoch. Of more voters those with the lowest ids lead.
const MaxLeaders = 128

// newEpoch makes an epoch of rounds of turns. shares has the number of turns of each leader in a round, from 1 to
// fullShare.
func newEpoch(number uint64, first protocol.Index, rounds int, voters, leaders []protocol.MemberID,
	shares []uint8) *Epoch {
	e := &Epoch{Number: number, First: first, Voters: voters, Leaders: leaders, turns: spread(shares),
		ends: make([]protocol.Index, len(leaders))}
	n := len(e.turns)
	e.Last = first + protocol.Index(rounds*n) - 1
	e.gaps = make([]uint16, n)
	for at, turn := range e.turns {
		for e.gaps[at] = 1; e.turns[(at+int(e.gaps[at]))%n] != turn; {
			e.gaps[at]++
		}
		e.ends[turn] = e.Last + 1 - protocol.Index(n-at)
	}
	for b := range e.owners {
		e.owners[b] = owner(Bucket(b), leaders)
	}
	return e
}

// fullShare is the largest number of turns that a leader has in a round.
const fullShare = 4

// spread orders the turns so that those of a leader do not follow each other where that can be avoided: each turn
// goes to the leader that is furthest behind its share, the first one of equals.
func spread(shares []uint8) []uint8 {
	sum := 0
	for _, s := range shares {
		sum += int(s)
	}
	turns, had := make([]uint8, 0, sum), make([]int, len(shares))
	for len(turns) < sum {
		best, most := 0, -sum
		for at, s := range shares {
			if behind := int(s)*(len(turns)+1) - had[at]*sum; behind > most {
				best, most = at, behind
			}
		}
		had[best]++
		turns = append(turns, uint8(best))
	}
	return turns
}

// Slots is how many slots the epoch has.
func (e *Epoch) Slots() int { return int(e.Last - e.First + 1) }

// turn is the place of a slot of the epoch in turns.
func (e *Epoch) turn(i protocol.Index) int {
	if i < e.First || i > e.Last {
		panic(fmt.Sprintf("epochs: slot %d in epoch %d of %d…%d", i, e.Number, e.First, e.Last))
	}
	return int(uint64(i-e.First) % uint64(len(e.turns)))
}

// Place is that of the leader of a slot of the epoch, in Leaders.
func (e *Epoch) Place(i protocol.Index) int { return int(e.turns[e.turn(i)]) }

// Leads reports whether a member leads in the epoch.
func (e *Epoch) Leads(id protocol.MemberID) bool {
	_, ok := slices.BinarySearch(e.Leaders, id)
	return ok
}

// Owner is the leader of a bucket.
func (e *Epoch) Owner(b Bucket) protocol.MemberID { return e.Leaders[e.owners[b]] }

// OwnerAmong is the leader that a bucket would have if only some leaders led. If none of them does, it is the
// bucket's owner.
func (e *Epoch) OwnerAmong(b Bucket, some func(protocol.MemberID) bool) protocol.MemberID {
	var those []protocol.MemberID
	for _, id := range e.Leaders {
		if some(id) {
			those = append(those, id)
		}
	}
	if len(those) == 0 {
		return e.Owner(b)
	}
	return those[owner(b, those)]
}

// Owned are the buckets of a leader, ascending. A session that may choose takes one whose leader is near.
func (e *Epoch) Owned(leader protocol.MemberID) (list []Bucket) {
	for b := range e.owners {
		if e.Owner(Bucket(b)) == leader {
			list = append(list, Bucket(b))
		}
	}
	return list
}
