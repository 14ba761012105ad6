package iss

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// A read index is the last slot of which a quorum for phase 1 knows anything: what is decided there was accepted by
// one of them. If the epoch has to end before the reader has everything up to it, the reader asks again in the next
// epoch, whose voters may differ (R9). Every member asks for itself. Reads wait while a question is in progress;
// the next one is for all of them.
type reads struct {
	waiting []uint64 // contexts of the next question
	asked   []uint64 // those of the question in progress; empty if there is none
	ended   []uint64 // those that wait for the epoch to end
	// round is the question's number, epoch the one in which it is asked, index the highest answer of those that
	// answered, retryAt when to ask the others again, and retryAfter the pause before that.
	round      uint64
	epoch      uint64
	answered   []protocol.MemberID
	index      protocol.Index
	retryAt    time.Duration
	retryAfter time.Duration
}

func onReadInput(s *ISS, context uint64) {
	r := &s.reads
	switch {
	case s.removed():
		s.refuse(context, protocol.ReasonRemoved)
	case s.closed():
		s.refuse(context, protocol.ReasonSealing)
	case s.epoch == nil || s.incarnation == 0:
		s.refuse(context, protocol.ReasonNoLeader)
	case len(r.asked)+len(r.waiting)+len(r.ended) >= paxos.MaxReads:
		s.refuse(context, protocol.ReasonOverloaded)
	case s.cfg.Mutant == MutantReadAlone:
		s.out.Reads = append(s.out.Reads, protocol.ReadIndex{Context: context, Index: s.top})
	default:
		r.waiting = append(r.waiting, context)
	}
}

// advanceReads starts or repeats the question for waiting reads.
func (s *ISS) advanceReads() {
	r := &s.reads
	if r.epoch != s.epoch.Number {
		r.waiting = slices.Concat(r.ended, r.asked, r.waiting)
		r.asked, r.ended = r.asked[:0], r.ended[:0]
	}
	if s.removed() {
		for _, context := range slices.Concat(r.ended, r.asked, r.waiting) {
			s.refuse(context, protocol.ReasonRemoved)
		}
		*r = reads{round: r.round}
	}
	switch {
	case len(r.asked) == 0 && len(r.waiting) > 0:
		r.asked, r.waiting = r.waiting, r.asked[:0]
		r.round++
		r.retryAfter = 0
		r.epoch, r.answered, r.index = s.epoch.Number, r.answered[:0], s.lastKnown()
		if s.votes(s.cfg.Self) {
			r.answered = append(r.answered, s.cfg.Self)
		}
		s.sendReadRequests()
		s.answerReads()
	case len(r.asked) > 0 && s.now >= r.retryAt:
		s.sendReadRequests()
	}
}

// sendReadRequests asks the voters that have not answered.
func (s *ISS) sendReadRequests() {
	r := &s.reads
	r.retryAfter = min(max(2*r.retryAfter, s.cfg.Heartbeat), s.cfg.ElectionTimeout)
	r.retryAt = s.now + r.retryAfter
	for _, id := range s.epoch.Voters {
		if id != s.cfg.Self && !slices.Contains(r.answered, id) {
			s.send(id, MsgRead, Part{Round: r.round}).Context = s.incarnation
		}
	}
}

// lastKnown is the last slot of which this member knows a vote or a decision. All earlier epochs count.
func (t *epochState) lastKnown() protocol.Index { return max(t.top, t.epoch.First-1) }

func onRead(s *ISS, m *protocol.Message, p *Part) {
	if s.epoch != nil {
		s.send(m.From, MsgReadAnswer, Part{Round: p.Round, Slot: s.lastKnown()}).Context = m.Context
	}
}

func onReadAnswer(s *ISS, m *protocol.Message, p *Part) {
	r := &s.reads
	if m.Context != s.incarnation || p.Round != r.round || len(r.asked) == 0 || slices.Contains(r.answered, m.From) {
		return
	}
	r.answered, r.index = append(r.answered, m.From), max(r.index, p.Slot)
	s.answerReads()
}

// answerReads returns the read index if a quorum has answered.
func (s *ISS) answerReads() {
	r := &s.reads
	won := s.elects.Vote(func(id protocol.MemberID) quorum.Answer {
		if slices.Contains(r.answered, id) {
			return quorum.Granted
		}
		return quorum.Missing
	})
	switch {
	case len(r.asked) == 0 || won != quorum.Won || r.epoch != s.epoch.Number:
		return
	case r.index >= s.epoch.Last:
		r.ended = append(r.ended, r.asked...)
	default:
		for _, context := range r.asked {
			s.out.Reads = append(s.out.Reads, protocol.ReadIndex{Context: context, Index: r.index})
		}
	}
	r.asked = r.asked[:0]
}
