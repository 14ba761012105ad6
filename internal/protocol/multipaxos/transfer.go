package multipaxos

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
)

// transferring is a transfer of leadership in progress. Nothing is proposed meanwhile.
type transferring struct {
	// to is the member that should lead, 0 if there is no transfer; until is when the transfer is aborted.
	to    protocol.MemberID
	until time.Duration
	// retryAt is when the member is asked again to stand; 0: it was not asked.
	retryAt time.Duration
}

func transfer(s *Paxos, in protocol.Transfer) {
	if reason := beginTransfer(s, in.To); reason != protocol.ReasonNone {
		s.refuse(in.Context, reason)
	}
}

func beginTransfer(s *Paxos, to protocol.MemberID) protocol.Reason {
	switch {
	case s.closed():
		return protocol.ReasonSealing
	case s.role != protocol.Leader && s.leader == 0:
		return protocol.ReasonNoLeader
	case s.role != protocol.Leader:
		return protocol.ReasonNotLeader
	case to == s.cfg.Self:
		return protocol.ReasonNone
	case s.changing(), s.lead.transfer.to != 0 && s.lead.transfer.to != to:
		return protocol.ReasonTransferring
	}
	p := s.lead.peer(to)
	if to == 0 {
		p = s.mostAdvanced()
	}
	if p == nil || !s.votes(p.ID) {
		return protocol.ReasonNotVoter
	}
	s.lead.transfer = transferring{to: p.ID, until: s.now + s.cfg.ElectionTimeout}
	sendLead(s, p)
	return protocol.ReasonNone
}

// votes reports whether a member is a voter.
func (s *Paxos) votes(id protocol.MemberID) bool {
	m := s.conf.Find(id)
	return m != nil && !m.Learner
}

// mostAdvanced is the active voter with the highest acknowledged slot; nil if there is none.
func (s *Paxos) mostAdvanced() (best *paxos.Peer) {
	for _, p := range s.lead.peers {
		if s.votes(p.ID) && s.active(p) && (best == nil || p.Match > best.Match) {
			best = p
		}
	}
	return best
}

// sendLead asks the next leader to stand once it has everything that is proposed and nothing waits. It is asked
// again if it does not.
func sendLead(s *Paxos, p *paxos.Peer) {
	h := &s.lead.transfer
	if p.ID != h.to || p.Match < s.prop.End || len(s.lead.queue) > 0 || s.now < h.retryAt {
		return
	}
	h.retryAt = s.now + s.cfg.Heartbeat
	s.send(p.ID, MsgLead, Part{Ballot: s.ballot})
}

func onLead(s *Paxos, m *protocol.Message, p Part) {
	if s.leader == m.From && p.Ballot == s.ballot {
		s.elect(true)
	}
}
