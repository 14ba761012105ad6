package raft

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// handover is a transfer of leadership in progress (Raft §3.10).
type handover struct {
	// to is the member that should lead, 0 if no transfer is in progress. No proposals are taken
	// meanwhile.
	to protocol.MemberID
	// until is when it is given up.
	until time.Duration
	// waits: coded entries are not committed yet. The next leader would have to make their bodies
	// whole first.
	waits bool
	// told is when that member was last told to stand; 0: it was not.
	told time.Duration
	// sent: someone was told to stand in this term; stays true.
	sent bool
}

func (r *Raft) transfer(in protocol.Transfer) {
	if reason, leader := r.beginTransfer(in.To); reason != protocol.ReasonNone {
		r.out.Refuse(in.Context, reason, leader)
	}
}

func (r *Raft) beginTransfer(to protocol.MemberID) (protocol.Reason, protocol.MemberID) {
	switch {
	case r.closed():
		return protocol.ReasonSealing, 0
	case r.role != protocol.Leader && r.leader == 0:
		return protocol.ReasonNoLeader, 0
	case r.role != protocol.Leader:
		return protocol.ReasonNotLeader, r.leader
	case to == r.cfg.Self:
		return protocol.ReasonNone, 0
	case !r.lead.ready || r.lead.hand.to != 0 && r.lead.hand.to != to:
		return protocol.ReasonTransferring, r.cfg.Self
	}
	p := r.lead.peer(to)
	if to == 0 {
		p = r.lead.mostAdvanced(&r.members, r.now, r.cfg.ElectionTimeout)
	}
	if p == nil || !r.members.Remains(p.ID) {
		return protocol.ReasonNotVoter, r.cfg.Self
	}
	r.lead.hand = handover{to: p.ID, until: r.now + r.cfg.ElectionTimeout, sent: r.lead.hand.sent}
	r.replicate(p)
	r.handOver(p)
	return protocol.ReasonNone, 0
}

// handOver tells the next leader to stand, once its disk holds the whole log.
func (r *Raft) handOver(p *tracker.Progress) {
	h := &r.lead.hand
	if p == nil || p.ID != h.to || p.Match < r.log.Last {
		return
	}
	if h.waits = len(r.bodies.Coded.Indexes) > 0; h.waits {
		return
	}
	h.told, h.sent = r.now, true
	m := message.With(protocol.Message{Type: message.TimeoutNow, To: p.ID}, message.Part{})
	if r.bodies.Coded.Last > 0 {
		m.Commit = r.commit
	}
	r.send(m)
}

// handOverAgain tells the next leader again. It answers a heartbeat that left after it was told to
// stand, and still follows: it did not learn of it.
func (r *Raft) handOverAgain(p *tracker.Progress, m message.Message) {
	if h := &r.lead.hand; h.to == p.ID && h.told > 0 && m.Context > message.Stamp(h.told) {
		r.handOver(p)
	}
}

func onTimeoutNow(r *Raft, m message.Message) {
	if r.leader == m.From {
		r.learnCommit(m.Commit, max(r.verified, r.commit))
		r.campaign(forcedVote)
	}
}
