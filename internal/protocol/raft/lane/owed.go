package lane

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/raftlog"
	"github.com/braidlog/braid/protocol"
)

// A leader's answers to lanes go along with its Appends: to each member that has a lane it sends Appends
// anyway. An answer of its own is as long as half of a small command, and would be sent for every batch that
// goes around the leader. The lane's member says where that is soon enough.

// owedAnswer is an answer that waits for an Append; since is when it began to, an instant + 1ns, 0: there is
// none.
type owedAnswer struct {
	since, context uint64
	round          uint64 // the generation that the lane's member named
	said           uint64 // that the lane is held up to here needs no word: it was said, or its member knew
}

// owe has the answer to a part of a lane wait for an Append.
func (h *heldLane) owe(m message.Message, now time.Duration) {
	known := uint64(m.Entries[0].Index) - 1
	if h.owed.since == 0 {
		h.owed = owedAnswer{since: message.Stamp(now), said: known}
	}
	h.owed.said = min(h.owed.said, known)
	h.owed.round, h.owed.context = max(h.owed.round, m.Round), max(h.owed.context, m.Context)
}

// countsFor is the generation for which this member's answer counts to a lane's member that named one; 0:
// for none, as it promised so.
func (f *fenced) countsFor(s *protocol.Settings, generation uint64) uint64 {
	if generation < f.number && s.Mutant != MutantNoPromise {
		return 0
	}
	return generation
}

// later reports whether a member's answer to a part of this member's lane is not needed soon: it leads, and
// others are a quorum without it and answer as soon as it does. Of a body more than a quorum must have their
// part, so that is needed of all.
func (o *ownLane) later(v *View, t *target, batches []protocol.Entry) bool {
	if t.id != v.Leader || t.trip == 0 || untilBody(batches) < len(batches) {
		return false
	}
	soon := t.trip + t.trip/8
	return v.Members.Electorate(v.Given).Agreed(func(id protocol.MemberID) uint64 {
		if id == v.Settings.Self {
			return 1
		}
		for _, u := range o.to {
			if u.id == id && u != t && u.trip > 0 && u.trip <= soon && u.answers(v.Now, 2*soon) {
				return 1
			}
		}
		return 0
	}) == 1
}

// answers reports whether a target was heard from lately, or has nothing to answer.
func (t *target) answers(now, lately time.Duration) bool {
	return !t.probe && !t.paused && (len(t.frames) == 0 || now <= t.moved+lately)
}

// PayAlong puts the answer that is owed to a member into an Append to it.
func (l *Lanes) PayAlong(d *raftlog.Disk, s *protocol.Settings, m message.Message) {
	if l == nil || m.ID.Seq > 0 {
		return
	}
	i := slices.IndexFunc(l.held, func(h *heldLane) bool { return h.lane.Member == m.To && h.owed.since > 0 })
	if i < 0 {
		return
	}
	h := l.held[i]
	high := h.durable(d)
	if s.Mutant == MutantAckEarly {
		high = h.high()
	}
	if high <= h.owed.said {
		return
	}
	m.ID, m.Fence = protocol.ProposalID{Session: h.lane, Seq: high}, l.fence.countsFor(s, h.owed.round)
	if h.owed.said = high; high == h.high() {
		h.owed = owedAnswer{}
	}
}

// Pay sends the answers that have waited for too long, or all if this member does not lead any more.
func (l *Lanes) Pay(v *View) {
	for _, h := range l.held {
		if h.owed.since == 0 {
			continue
		}
		if due := time.Duration(h.owed.since-1) + v.owing(); v.Role != protocol.Leader || v.Now >= due {
			l.answer(v, h, h.lane.Member, h.owed.context, l.fence.countsFor(v.Settings, h.owed.round))
		} else {
			v.Out.WakeBy(due)
		}
	}
}

// PaidAlong takes in a leader's answer that came with an Append.
func (l *Lanes) PaidAlong(v *View, m message.Message) {
	if l != nil && m.ID.Seq > 0 && m.ID.Session == l.own.lane {
		l.heldBy(v, m.From, heldBy{high: m.ID.Seq, round: m.Fence, context: message.Stamp(v.Now), along: true})
	}
}
