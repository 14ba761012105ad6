package epaxos

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// Any member finds read indexes. It asks the others for the highest commands that they know of, and waits until it
// has executed all of these. A command that was answered before the request is known to a quorum. Each quorum that
// answers the request has one of its members.

// reads are the reads in progress here.
type reads struct {
	// waiting are the reads for the next request, asked those of the one in progress.
	waiting, asked []uint64
	// round numbers the requests. It begins at a random number, so that answers to an earlier incarnation are
	// recognized. 0 before the first tick: until then no request is sent.
	round    uint64
	answered members
	highest  Vector        // in answers
	again    time.Duration // when to ask again
	until    time.Duration // when to fail the reads
}

// maxReads bounds the reads that wait, 8 bytes each.
const maxReads = 1 << 18

func (r *reads) begin(c *slots.Chance) {
	if r.round == 0 {
		r.round = c.Draw() | 1
	}
}

func (s *EPaxos) read(context uint64) {
	r := &s.reads
	switch {
	case s.self == 0:
		s.refuse(context, protocol.ReasonNoLeader)
	case len(r.waiting)+len(r.asked) >= maxReads:
		s.refuse(context, protocol.ReasonOverloaded)
	default:
		r.waiting = append(r.waiting, context)
	}
}

// runReadTimers sends requests, repeats them, and fails reads after a timeout.
func (s *EPaxos) runReadTimers() {
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
		r.answered, r.highest = members{s.self}, s.known()
		r.again, r.until = s.now, s.now+s.cfg.ElectionTimeout
	}
	if len(r.asked) == 0 || s.now < r.again {
		return
	}
	r.again = s.now + s.cfg.Heartbeat
	for _, p := range s.peers {
		if !r.answered.has(p.column) {
			s.send(p, MsgRead, Part{}).Context = r.round
		}
	}
}

func onRead(s *EPaxos, from *peer, m *protocol.Message, _ *Part) {
	s.send(from, MsgReadAnswer, Part{Deps: s.known()}).Context = m.Context
}

func onReadAnswer(s *EPaxos, from *peer, m *protocol.Message, p *Part) {
	if r := &s.reads; m.Context == r.round && len(r.asked) > 0 {
		r.answered = r.answered.with(from.column)
		r.highest = r.highest.unite(p.Deps)
		s.target = s.target.unite(p.Deps)
	}
}

// serveReads serves the reads in progress if enough was executed, and then asks for the waiting ones.
func (s *EPaxos) serveReads() {
	r := &s.reads
	for len(r.asked) > 0 && s.enough(r) {
		for _, context := range r.asked {
			s.out.Reads = append(s.out.Reads, protocol.ReadIndex{Context: context, Index: s.log.Last()})
		}
		r.asked = r.asked[:0]
		s.runReadTimers()
	}
}

func (s *EPaxos) enough(r *reads) bool {
	if s.cfg.Mutant == MutantReadAlone {
		return true
	}
	return len(r.answered) >= s.size.Quorum() && s.has(r.highest)
}

// has reports whether all of these commands are executed here, except for no-ops for which nothing waits.
func (s *EPaxos) has(v Vector) bool {
	for i, n := range v {
		if c := Column(i + 1); n >= s.replica.open(c).Number {
			return false
		}
	}
	return true
}

// known has for each column the highest command that this member knows. For its own column it has only what is on its
// disk: a later incarnation may reuse numbers that are neither there nor reserved.
func (s *EPaxos) known() Vector {
	v := s.graph.Executed().Clone()
	for i := range s.replica.columns {
		if c := Column(i + 1); c != s.self || s.cfg.Mutant == MutantSayUnused {
			v = v.raise(ID{c, s.replica.Window(c)})
		}
	}
	if s.self != 0 {
		v = v.raise(ID{s.self, s.disk.used})
	}
	return v
}
