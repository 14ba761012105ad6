package slotpaxos

import (
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// Any member finds read indexes, without a leader: it asks the others for the last slot that is decided or accepted
// there, and waits until it knows what was decided in it. If those that answered are a quorum of the next slot,
// nothing can have been decided there before the request: one of them would have accepted it, and reported it. So its
// last slot is a read index.

// reads are the reads in progress here.
type reads struct {
	// waiting are the reads for the next request, asked those of the one in progress.
	waiting, asked []uint64
	// round numbers the requests. It begins at a random number, so that answers to an earlier incarnation are
	// recognized. 0 before the first tick: until then no request is sent.
	round    uint64
	answered []protocol.MemberID
	// furthest is the highest slot in an answer.
	furthest     protocol.Index
	again, until time.Duration // when to ask again, and when to fail the reads
}

// maxReads bounds the reads that wait, 8 bytes each.
const maxReads = 1 << 18

func (s *Paxos) read(context uint64) {
	r := &s.reads
	switch {
	case s.removed():
		s.refuse(context, protocol.ReasonRemoved)
	case len(s.conf.Members) == 0:
		s.refuse(context, protocol.ReasonNoLeader)
	case s.cfg.Mutant == MutantReadAlone:
		s.out.Reads = append(s.out.Reads, protocol.ReadIndex{Context: context, Index: s.log.Last()})
	case len(r.waiting)+len(r.asked) >= maxReads:
		s.refuse(context, protocol.ReasonOverloaded)
	default:
		r.waiting = append(r.waiting, context)
	}
}

// runReadTimers sends requests, repeats them, and fails reads after a timeout.
func (s *Paxos) runReadTimers() {
	r := &s.reads
	if len(r.asked) > 0 && s.now >= r.until {
		for _, context := range r.asked {
			s.refuse(context, protocol.ReasonNoLeader)
		}
		r.asked = r.asked[:0]
	}
	if len(r.asked) == 0 && len(r.waiting) > 0 && r.round != 0 {
		r.asked, r.waiting = r.waiting, r.asked
		r.round++
		r.answered, r.furthest = r.answered[:0], 0
		r.again, r.until = s.now, s.now+s.cfg.ElectionTimeout
		s.note(s.cfg.Self, s.furthest())
	}
	if len(r.asked) == 0 || s.now < r.again {
		return
	}
	r.again = s.now + s.cfg.Heartbeat
	for _, id := range s.conf.Voters() {
		if !slices.Contains(r.answered, id) {
			s.send(id, MsgRead, Part{}).Context = r.round
		}
	}
}

func onRead(s *Paxos, m *protocol.Message, _ Part) {
	s.send(m.From, MsgReadAnswer, Part{Slot: s.furthest(), Ballot: s.ballot}).Context = m.Context
}

func onReadAnswer(s *Paxos, m *protocol.Message, p Part) {
	if m.Context == s.reads.round && len(s.reads.asked) > 0 {
		s.note(m.From, p.Slot)
	}
}

func (s *Paxos) note(from protocol.MemberID, furthest protocol.Index) {
	r := &s.reads
	if !slices.Contains(r.answered, from) {
		r.answered = append(r.answered, from)
	}
	r.furthest = max(r.furthest, furthest)
}

// serveReads serves the reads in progress if enough is known, and then asks for the waiting ones.
func (s *Paxos) serveReads() {
	r := &s.reads
	for len(r.asked) > 0 && s.log.Last() >= r.furthest && s.majority(r.answered) {
		for _, context := range r.asked {
			s.out.Reads = append(s.out.Reads, protocol.ReadIndex{Context: context, Index: s.log.Last()})
		}
		r.asked = r.asked[:0]
		s.runReadTimers()
	}
}
