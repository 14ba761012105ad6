package raft

import (
	"time"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// votes is when a member stands for election, and who voted for it.
type votes struct {
	// heard is when the leader was last heard from. stand is when to stand for election; while a
	// leader is known, not before what was promised to it is over.
	heard, stand time.Duration
	// tries counts how often this member stood since it last heard from a leader or voted.
	tries int
	// needed: since the leader was last heard from, a member that counts this one as a voter has asked
	// for its vote, and has less in its log.
	needed  bool
	ballots []ballot // of the election in progress
	// promised: this member may have answered a leader, also before it started: then its log has a term, because a term
	// is durable before the first answer in it leaves.
	promised bool
}

type ballot struct {
	from    protocol.MemberID
	granted bool
}

// add takes in an answer. The first one of a member counts.
func (v *votes) add(from protocol.MemberID, granted bool) {
	for i := range v.ballots {
		if v.ballots[i].from == from {
			return
		}
	}
	v.ballots = append(v.ballots, ballot{from, granted})
}

// of is what a member answered.
func (v *votes) of(id protocol.MemberID) quorum.Answer {
	for _, b := range v.ballots {
		if b.from == id && b.granted {
			return quorum.Granted
		} else if b.from == id {
			return quorum.Refused
		}
	}
	return quorum.Missing
}
