package raft

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

// A leader's answers to lanes go along with its Appends: to each member that has a lane it sends Appends
// anyway. An answer of its own is as long as half of a small command, and would be sent for every batch that
// goes around the leader. The lane's member says where that is soon enough.

// laneOwed is an answer that waits for an Append; since is when it began to, an instant + 1ns, 0: there is
// none.
type laneOwed struct {
	since, context uint64
	round          uint64 // the generation that the lane's member named
	said           uint64 // that the lane is held up to here needs no word: it was said, or its member knew
}

// owe has the answer to a part of a lane wait for an Append.
func (h *heldLane) owe(m message.Message, now time.Duration) {
	known := uint64(m.Entries[0].Index) - 1
	if h.owed.since == 0 {
		h.owed = laneOwed{since: message.Stamp(now), said: known}
	}
	h.owed.said = min(h.owed.said, known)
	h.owed.round, h.owed.context = max(h.owed.round, m.Round), max(h.owed.context, m.Context)
}

// owing is for how long an answer waits for an Append.
func (r *Raft) owing() time.Duration { return r.cfg.Heartbeat / 8 }

// countsFor is the generation for which this member's answer counts to a lane's member that named one; 0:
// for none, as it promised so.
func (r *Raft) countsFor(generation uint64) uint64 {
	if generation < r.lanes.fence.number && r.cfg.Mutant != MutantLaneNoPromise {
		return 0
	}
	return generation
}

// laneLater reports whether a member's answer to a part of this member's lane is not needed soon: it leads, and
// others are a quorum without it, who answer as soon as it does. Of a body more than a quorum must have their
// part, so that is needed of all.
func (r *Raft) laneLater(t *laneTarget, batches []protocol.Entry) bool {
	if t.id != r.leader || t.trip == 0 || untilBody(batches) < len(batches) {
		return false
	}
	soon := t.trip + t.trip/8
	return r.members.Electorate(r.given).Agreed(func(id protocol.MemberID) uint64 {
		if id == r.cfg.Self {
			return 1
		}
		for _, o := range r.lanes.own.to {
			if o.id == id && o != t && o.trip > 0 && o.trip <= soon && o.answers(r.now, 2*soon) {
				return 1
			}
		}
		return 0
	}) == 1
}

// answers reports whether a target was heard from lately, or has nothing to answer.
func (t *laneTarget) answers(now, lately time.Duration) bool {
	return !t.probe && !t.paused && (len(t.frames) == 0 || now <= t.moved+lately)
}

// payAlong puts the answer that is owed to a member into an Append to it.
func (r *Raft) payAlong(m message.Message) {
	if r.lanes == nil || m.ID.Seq > 0 {
		return
	}
	i := slices.IndexFunc(r.lanes.held, func(h *heldLane) bool { return h.lane.Member == m.To && h.owed.since > 0 })
	if i < 0 {
		return
	}
	h := r.lanes.held[i]
	high := h.durable(&r.disk)
	if r.cfg.Mutant == MutantLaneAckEarly {
		high = h.high()
	}
	if high <= h.owed.said {
		return
	}
	m.ID, m.Fence = protocol.ProposalID{Session: h.lane, Seq: high}, r.countsFor(h.owed.round)
	if h.owed.said = high; high == h.high() {
		h.owed = laneOwed{}
	}
}

// payLanes sends the answers that have waited for too long, or all if this member does not lead any more.
func (r *Raft) payLanes() {
	for _, h := range r.lanes.held {
		if h.owed.since == 0 {
			continue
		}
		if due := time.Duration(h.owed.since-1) + r.owing(); r.role != protocol.Leader || r.now >= due {
			r.answerLane(h, h.lane.Member, h.owed.context, r.countsFor(h.owed.round))
		} else {
			r.out.WakeBy(due)
		}
	}
}

// paidAlong takes in a leader's answer that came with an Append.
func (r *Raft) paidAlong(m message.Message) {
	if l := r.lanes; l != nil && m.ID.Seq > 0 && m.ID.Session == l.own.lane {
		r.heldByOther(m.From, laneHeld{high: m.ID.Seq, round: m.Fence, context: message.Stamp(r.now), along: true})
	}
}
