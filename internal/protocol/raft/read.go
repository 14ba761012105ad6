package raft

import (
	"math"

	"github.com/braidlog/braid/internal/protocol/raft/effects"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

// A read index is the commit index at a moment when this member certainly led (Raft §6.4). Reads
// wait while one confirmation is in progress; the next one confirms them all. Followers forward
// reads and keep no state: the member that asked repeats a read that was lost. The question of a voter
// confirms itself, so with three voters a follower's read needs no other confirmation.

// query is one read that waits at the leader.
type query struct {
	context     uint64
	from        protocol.MemberID // Self: asked here
	incarnation uint64            // the asking member's, repeated to it
	barrier     bool              // it is to see all that was accepted
}

type reads struct {
	// waiting are to be part of the next confirmation.
	waiting []query
	// asked are part of the confirmation in progress: they are served at index when a quorum has
	// confirmed round. Empty if none is in progress.
	asked []query
	round uint64
	index protocol.Index
	// beat is the last message of the confirmation in progress. As long as it is the last one in
	// Effects.Send, no one can have answered yet, and reads may still join.
	beat *protocol.Message
	// barrier: one of asked is a barrier (barrier.go).
	barrier barrier
}

// maxQueries bounds the reads that wait, 24 bytes each.
const maxQueries = 1 << 18

func (r *Raft) read(in protocol.Read) {
	switch {
	case r.closed():
		r.out.Refuse(in.Context, protocol.ReasonSealing, 0)
	case r.role == protocol.Leader:
		r.query(query{context: in.Context, from: r.cfg.Self, barrier: in.Barrier && r.lanes != nil})
	case r.members.Removed(r.cfg.Self, r.commit):
		r.out.Refuse(in.Context, protocol.ReasonRemoved, 0)
	case r.leader == 0 || r.incarnation == 0:
		r.out.Refuse(in.Context, protocol.ReasonNoLeader, 0)
	default:
		r.send(message.With(protocol.Message{Type: message.Read, To: r.leader, Context: in.Context},
			message.Part{Round: r.incarnation, Force: in.Barrier}))
	}
}

func onRead(r *Raft, m message.Message) {
	q := query{context: m.Context, from: m.From, incarnation: m.Round, barrier: m.Force && r.lanes != nil}
	switch {
	case r.closed():
		q.fail(&r.out, protocol.ReasonSealing, 0)
		return
	case r.role != protocol.Leader:
		q.fail(&r.out, protocol.ReasonNotLeader, r.leader)
		return
	}
	r.query(q)
}

// onReadResp passes the leader's answer on, unless an earlier incarnation of this member asked.
func onReadResp(r *Raft, m message.Message) {
	switch {
	case m.Round != r.incarnation:
	case m.Reject:
		r.out.Refuse(m.Context, m.Reason, r.leader)
	case r.closed(): // the new instances may have decided more
		r.out.Refuse(m.Context, protocol.ReasonSealing, 0)
	default:
		r.out.Reads = append(r.out.Reads, protocol.ReadIndex{Context: m.Context, Index: m.Index})
	}
}

// query takes a read in at the leader.
func (r *Raft) query(q query) {
	rd := &r.lead.reads
	switch n := len(r.out.Send); {
	case r.suspended():
		q.fail(&r.out, protocol.ReasonSealing, 0)
	case !q.barrier && r.readable() && (r.leased() || r.vouched(q.from) || r.cfg.Mutant == MutantReadWithoutConfirm):
		q.serve(&r.out, r.commit)
	case len(rd.asked)+len(rd.waiting) >= maxQueries:
		q.fail(&r.out, protocol.ReasonOverloaded, r.cfg.Self)
	case len(rd.asked) > 0 && n > 0 && r.out.Send[n-1] == rd.beat && rd.index == r.commit && (!q.barrier || rd.barrier.on):
		rd.asked = append(rd.asked, q)
	default:
		rd.waiting = append(rd.waiting, q)
		r.startReads()
	}
}

// vouched reports whether the question of another member confirms that this one led when that one
// asked: it had voted for no later leader then, and both are enough to confirm. It confirms no other
// read: when that was asked for, the member may have voted since.
func (r *Raft) vouched(from protocol.MemberID) bool {
	if p := r.lead.peer(from); p == nil || p.Forgot {
		return false
	}
	return r.members.Confirmers(r.members.Deciders()).Agreed(func(id protocol.MemberID) uint64 {
		if id == from || id == r.cfg.Self {
			return 1
		}
		return 0
	}) > 0
}

// readable reports whether an entry of this term is committed. Before that the commit index may
// not be current (Raft §6.4).
func (r *Raft) readable() bool {
	return r.commit >= r.lead.first && r.lead.ready || r.cfg.Mutant == MutantReadWithoutOwnTerm
}

// startReads asks a quorum whether we still lead, for all reads that wait.
func (r *Raft) startReads() {
	rd := &r.lead.reads
	if len(rd.waiting) == 0 || len(rd.asked) > 0 || !r.readable() {
		return
	}
	rd.asked, rd.waiting = rd.waiting, rd.asked[:0]
	r.lead.round++
	rd.round, rd.index = r.lead.round, r.commit
	rd.beginBarrier(r.lanes, r.cfg.Self)
	for _, p := range r.lead.peers {
		if r.members.Voters.Has(p.ID) {
			rd.beat = r.heartbeat(p)
		}
	}
	r.confirmReads() // enough if we are alone
}

// confirmReads serves the reads in progress if a quorum confirmed their round.
func (r *Raft) confirmReads() {
	rd := &r.lead.reads
	for len(rd.asked) > 0 && r.lead.confirmed(r.members.Confirmers(r.members.Deciders()), r.cfg.Self) >= rd.round &&
		r.passedBarrier() {
		for _, q := range rd.asked {
			q.serve(&r.out, rd.index)
		}
		rd.asked, rd.beat = rd.asked[:0], nil
		r.startReads()
	}
}

// leased reports whether no other leader can have been elected yet: a quorum answered something
// that we sent less than a lease ago (members.Configs.Lease), and votes for no one until its own clock says
// that the timeout is over. A member that a transfer tells to stand for election does not wait,
// whenever that message arrives, so there is no lease after a transfer. r.now was read after the
// read was asked for. A lease that was valid then is enough, however much time has passed since
// (docs/internals/raft.md, "What clocks are assumed to do").
func (r *Raft) leased() bool {
	if !r.cfg.LeaseReads || r.lead.hand.sent {
		return false
	}
	// For each member the instant + 1ns at which its last answer is too old.
	until := r.members.Confirmers(r.members.Deciders()).Agreed(func(id protocol.MemberID) uint64 {
		if id == r.cfg.Self {
			return math.MaxUint64
		}
		p := r.lead.peer(id)
		if p == nil || p.Confirmed == 0 {
			return 0
		}
		if r.cfg.Mutant == MutantLeaseIgnoresDrift {
			return p.Confirmed + 2*uint64(r.cfg.ElectionTimeout)
		}
		return p.Confirmed + uint64(r.members.Lease(id, p.Match, r.commit))
	})
	return message.Stamp(r.now) < until
}

// serve answers a read.
func (q query) serve(o *effects.Out, index protocol.Index) {
	if q.from == o.Self {
		o.Reads = append(o.Reads, protocol.ReadIndex{Context: q.context, Index: index})
		return
	}
	o.Post(message.With(protocol.Message{Type: message.ReadResp, To: q.from, Context: q.context},
		message.Part{Round: q.incarnation, Index: index}))
}

// fail refuses a read.
func (q query) fail(o *effects.Out, reason protocol.Reason, leader protocol.MemberID) {
	if q.from == o.Self {
		o.Refuse(q.context, reason, leader)
		return
	}
	o.Post(message.With(protocol.Message{Type: message.ReadResp, To: q.from, Context: q.context, Reject: true},
		message.Part{Round: q.incarnation, Reason: reason}))
}

// fail refuses all reads that wait.
func (rd *reads) fail(o *effects.Out, reason protocol.Reason, leader protocol.MemberID) {
	for _, q := range rd.asked {
		q.fail(o, reason, leader)
	}
	for _, q := range rd.waiting {
		q.fail(o, reason, leader)
	}
	*rd = reads{}
}
