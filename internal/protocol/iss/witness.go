package iss

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
)

// What members of a segment learn from each other's votes. An acceptor sends its votes to all members, not only to
// the proposer. A member that receives those of a quorum knows a decision when the proposer does, not a hop later.
// A log is as late as its last known slot, so that hop would delay every value after the slot.

// witness is how far the others report to have accepted under one ballot.
type witness struct {
	ballot paxos.Ballot
	// most is the highest of reach.
	most protocol.Index
	// reach is the last slot up to which a member's disk has everything: decided, or accepted under the ballot.
	reach map[protocol.MemberID]protocol.Index
}

// record adds what a member has accepted. Earlier ballots do not count any more.
func (w *witness) record(from protocol.MemberID, ballot paxos.Ballot, reach protocol.Index) {
	if w.reach == nil || ballot > w.ballot {
		w.ballot, w.most, w.reach = ballot, 0, map[protocol.MemberID]protocol.Index{}
	}
	if ballot == w.ballot {
		w.reach[from] = max(w.reach[from], reach)
		w.most = max(w.most, reach)
	}
}

// far is a round trip that justifies more than one message, and farEach how much of it each of them must save at
// least: with many members each vote is as many messages.
const (
	far     = 2 * time.Millisecond
	farEach = far / 4
)

// sendVotes sends what this member has accepted to all but the proposer. With more than three voters it does so
// only on long links: on short ones the messages cost more time than they save. With relays they would cost more
// than relays save.
func (b *broadcast) sendVotes(proposer protocol.MemberID, said Part) {
	if b.s.relayGroups > 0 || !b.s.votes(b.s.cfg.Self) {
		return
	}
	n := len(b.s.epoch.Voters)
	few, worth := n <= 3, max(far, farEach*time.Duration(n-2))
	for _, o := range b.s.others {
		if o.id != proposer && b.s.inReach(o.id) && (few || o.trip >= worth) {
			b.accepted(o.id, said)
		}
	}
}

// learnVoted learns that slots are decided in which this member has accepted the same as a quorum. Only what was
// accepted under one and the same ballot counts: under another one it may have been something else.
func (b *broadcast) learnVoted() {
	w := &b.votes
	if b.acc.Top <= b.upto || w.reach == nil || w.ballot != b.acc.Promised && b.s.cfg.Mutant != MutantWitnessAny {
		return
	}
	own := b.stable()
	if max(own, w.most) <= b.upto {
		return // no other member has more
	}
	q := protocol.Index(b.s.decides.Agreed(func(id protocol.MemberID) uint64 {
		if id == b.s.cfg.Self {
			return uint64(own)
		}
		return uint64(w.reach[id])
	}))
	for i := b.seg.After(b.upto); i <= min(q, b.seg.Last); i = b.seg.After(i) {
		if v, ok := b.acc.Votes[i]; ok && (v.Ballot == w.ballot || b.s.cfg.Mutant == MutantWitnessAny) && !b.isDecided(i) {
			b.decide(v.Entry)
		}
	}
}
