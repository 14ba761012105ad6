package multipaxos

import (
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
)

// A read index is the leader's last decided slot at a moment when no other member can have decided more. A quorum
// of phase 2 confirms that it has promised no higher ballot: a proposer under a higher ballot has a promise of one
// of them. Reads wait while a confirmation is in progress; the next one confirms them all. Other members forward
// reads and keep no state: the asker repeats a read that was lost.

// pendingRead is a read that waits at the leader.
type pendingRead struct {
	context     uint64
	from        protocol.MemberID // Self: asked here
	incarnation uint64            // the asking member's, returned to it
}

type reads struct {
	// waiting are part of the next confirmation.
	waiting []pendingRead
	// asked are part of the confirmation in progress: they are served at index when a quorum has confirmed round.
	// Empty if there is none.
	asked []pendingRead
	round uint64
	index protocol.Index
}

func onReadInput(s *Paxos, context uint64) {
	switch {
	case s.closed():
		s.refuse(context, protocol.ReasonSealing)
	case s.role == protocol.Leader:
		addQuery(s, pendingRead{context: context, from: s.cfg.Self})
	case s.removed():
		s.refuse(context, protocol.ReasonRemoved)
	case s.leader == 0 || s.incarnation == 0:
		s.refuse(context, protocol.ReasonNoLeader)
	default:
		s.send(s.leader, MsgRead, Part{Round: s.incarnation}).Context = context
	}
}

func onRead(s *Paxos, m *protocol.Message, p Part) {
	q := pendingRead{context: m.Context, from: m.From, incarnation: p.Round}
	switch {
	case s.closed():
		s.failRead(q, protocol.ReasonSealing)
	case s.role != protocol.Leader:
		s.failRead(q, protocol.ReasonNotLeader)
	default:
		addQuery(s, q)
	}
}

// onReadAnswer delivers the leader's answer, unless an earlier incarnation of this member asked.
func onReadAnswer(s *Paxos, m *protocol.Message, p Part) {
	switch {
	case p.Round != s.incarnation:
	case p.Reason != protocol.ReasonNone:
		s.refuse(m.Context, p.Reason)
	case s.closed(): // the new instances may have decided more
		s.refuse(m.Context, protocol.ReasonSealing)
	default:
		s.out.Reads = append(s.out.Reads, protocol.ReadIndex{Context: m.Context, Index: p.Slot})
	}
}

// addQuery adds a read at the leader.
func addQuery(s *Paxos, q pendingRead) {
	rd := &s.lead.reads
	switch {
	case s.suspended():
		s.failRead(q, protocol.ReasonSealing)
	case s.cfg.Mutant == MutantReadAlone && s.current():
		s.serve(q, s.settled())
	case len(rd.asked)+len(rd.waiting) >= paxos.MaxReads:
		s.failRead(q, protocol.ReasonOverloaded)
	default:
		rd.waiting = append(rd.waiting, q)
		s.startReads()
	}
}

// current reports whether the leader knows everything that was decided before it led.
func (s *Paxos) current() bool {
	return s.prop.Phase == paxos.Ready && (s.log.Last() >= s.prop.Floor || s.cfg.Mutant == MutantReadBelowFloor)
}

// startReads asks a quorum to confirm leadership, for all waiting reads.
func (s *Paxos) startReads() {
	rd := &s.lead.reads
	if len(rd.waiting) == 0 || len(rd.asked) > 0 || !s.current() {
		return
	}
	rd.asked, rd.waiting = rd.waiting, rd.asked[:0]
	s.lead.round++
	rd.round, rd.index = s.lead.round, s.log.Last()
	for _, p := range s.lead.peers {
		if s.votes(p.ID) {
			s.heartbeat(p)
		}
	}
	s.confirmReads() // enough for the only voter
}

// confirmReads serves the reads in progress if a quorum has confirmed their round.
func (s *Paxos) confirmReads() {
	rd := &s.lead.reads
	for len(rd.asked) > 0 && s.confirmed() >= rd.round && s.prop.Phase == paxos.Ready {
		for _, q := range rd.asked {
			s.serve(q, rd.index)
		}
		rd.asked = rd.asked[:0]
		s.startReads()
	}
}

func (s *Paxos) confirmed() uint64 {
	return s.acceptors().Agreed(func(id protocol.MemberID) uint64 {
		if id == s.cfg.Self {
			return s.lead.round
		}
		if p := s.lead.peer(id); p != nil {
			return p.Round
		}
		return 0
	})
}

func (s *Paxos) serve(q pendingRead, index protocol.Index) {
	if q.from == s.cfg.Self {
		s.out.Reads = append(s.out.Reads, protocol.ReadIndex{Context: q.context, Index: index})
		return
	}
	s.send(q.from, MsgReadAnswer, Part{Round: q.incarnation, Slot: index}).Context = q.context
}

func (s *Paxos) failRead(q pendingRead, reason protocol.Reason) {
	if q.from == s.cfg.Self {
		s.refuse(q.context, reason)
		return
	}
	s.send(q.from, MsgReadAnswer, Part{Round: q.incarnation, Reason: reason}).Context = q.context
}

// failReads refuses all waiting reads.
func (s *Paxos) failReads(reason protocol.Reason) {
	rd := &s.lead.reads
	for _, q := range append(rd.asked, rd.waiting...) {
		s.failRead(q, reason)
	}
	*rd = reads{}
}
