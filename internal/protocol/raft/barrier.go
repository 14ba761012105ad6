package raft

import (
	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/protocol"
)

// A barrier read sees all that was accepted before it was asked for (docs/internals/lcr.md, 1.5 (c)). Accepted batches
// are held by a quorum, and the leader confirms its leadership with a quorum anyway. So at least one of those that
// answer says that it holds it. The leader puts all that a quorum holds into the log, and the read is served when that
// is committed.

// barrier is the condition for the reads in progress beyond the confirmation of the leader.
type barrier struct {
	on   bool
	said lane.Answers
	// until is where the log had all that a quorum holds; 0: it has not yet.
	until protocol.Index
}

// beginBarrier begins a barrier if one of the reads in progress is one.
func (rd *reads) beginBarrier(lanes *lane.Lanes, self protocol.MemberID) {
	rd.barrier = barrier{}
	for _, q := range rd.asked {
		rd.barrier.on = rd.barrier.on || q.barrier
	}
	if rd.barrier.on {
		rd.barrier.said.Hear(self, lanes.HeldHighs())
	}
}

// passedBarrier reports whether all that a quorum held when it was asked is committed, if a read wants
// that.
func (r *Raft) passedBarrier() bool {
	rd := &r.lead.reads
	b := &rd.barrier
	if !b.on || r.cfg.Mutant == lane.MutantBarrierAlone {
		return true
	}
	if b.until == 0 {
		if !r.lanes.Cover(r.seeLanes(), r.members.Confirmers(r.members.Deciders()), &b.said) {
			return false
		}
		b.until = r.log.Last
	}
	if r.commit < b.until {
		return false
	}
	rd.index = max(rd.index, b.until)
	return true
}
