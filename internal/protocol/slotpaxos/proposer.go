package slotpaxos

import (
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// phase is the state of a proposer in its slot.
type phase uint8

const (
	idle      phase = iota // does not propose
	preparing              // asks for promises
	ready                  // a quorum has promised, and there is nothing to propose
	accepting              // asks the voters to accept an entry
)

// try is one member's attempt to have the slot after its last decided, under its ballot.
type try struct {
	phase phase
	slot  protocol.Index // the log's last + 1, unless idle
	// answered are the members that promised, and later those that accepted; without duplicates.
	answered []protocol.MemberID
	// found is the ballot of value while preparing: the highest one under which an acceptor that promised has accepted
	// an entry. 0: none has.
	found Ballot
	value protocol.Entry
	// early: the origin of value is told when it is accepted.
	early bool
	// again is when to ask those again that have not answered, and pause the time between two requests.
	again, pause time.Duration
}

// begin starts phase 1 for the next slot.
func (s *Paxos) begin() {
	s.try = try{phase: preparing, slot: s.log.Last() + 1}
	s.askVoters()
}

// runTryTimers asks those again that have not answered. Requests under a ballot that is not durable yet are held
// until it is.
func (s *Paxos) runTryTimers() {
	switch t := &s.try; {
	case t.phase != preparing && t.phase != accepting || s.now < t.again:
	case !s.disk.stateDurable():
		t.again = s.now + t.pause
	default:
		s.askVoters()
	}
}

// askVoters sends the request of the phase to those that have not answered.
func (s *Paxos) askVoters() {
	t := &s.try
	t.pause = s.backoff(t.pause)
	t.again = s.now + t.pause
	for _, id := range s.conf.Voters() {
		if slices.Contains(t.answered, id) {
			continue
		}
		p := Part{Slot: t.slot, Ballot: s.ballot}
		if t.phase == accepting {
			p.Early = t.early
			s.sendDurable(id, MsgAccept, p).Entries = []protocol.Entry{t.value}
		} else {
			p.Force = s.lead.forced
			s.sendDurable(id, MsgPrepare, p)
		}
	}
}

// backoff is how long to wait for an answer the next time: twice as long, from a heartbeat to an election timeout. So
// repeated requests do not slow down a slow member further.
func (s *Paxos) backoff(pause time.Duration) time.Duration {
	return min(max(2*pause, s.cfg.Heartbeat), s.cfg.ElectionTimeout)
}

// sendDurable sends a request under this member's ballot, once the ballot is durable. Otherwise the member could
// crash, forget it, and use the same ballot for another entry.
func (s *Paxos) sendDurable(to protocol.MemberID, t protocol.MessageType, p Part) *protocol.Message {
	if s.disk.stateDurable() || s.cfg.Mutant == MutantBallotReused {
		return s.send(to, t, p)
	}
	return s.release(to, t, p)
}

// countAnswer records an answer to the request of a phase. It reports whether a quorum has answered now.
func (s *Paxos) countAnswer(m *protocol.Message, p Part, in phase) bool {
	t := &s.try
	if t.phase != in || p.Slot != t.slot || p.Ballot != s.ballot {
		return false // to an earlier request
	}
	if !slices.Contains(t.answered, m.From) {
		t.answered = append(t.answered, m.From)
	}
	return s.majority(t.answered)
}

// majority reports whether the members are a quorum in the slot after the log's last.
func (s *Paxos) majority(ids []protocol.MemberID) bool { return majorityOf(quorum.Of(&s.conf), ids) }

func majorityOf(set quorum.Set, ids []protocol.MemberID) bool {
	return set.Vote(func(id protocol.MemberID) quorum.Answer {
		if slices.Contains(ids, id) {
			return quorum.Granted
		}
		return quorum.Missing
	}) == quorum.Won
}

// onPromise counts promises, and keeps the entry with the highest ballot.
func onPromise(s *Paxos, m *protocol.Message, p Part) {
	t := &s.try
	if p.Accepted != 0 && (len(m.Entries) != 1 || m.Entries[0].BodySize > 0 && m.Entries[0].Form != protocol.FormWhole) {
		return // bodies of what it accepted are missing here
	}
	if t.phase == preparing && p.Slot == t.slot && p.Ballot == s.ballot && p.Accepted > t.found &&
		len(m.Entries) == 1 && m.Entries[0].Index == p.Slot && s.cfg.Mutant != MutantOwnValue {
		t.found, t.value = p.Accepted, m.Entries[0]
	}
	if peer := s.peer(m.From); peer != nil && p.Ballot == s.ballot {
		if p.Slot >= peer.promised {
			peer.promised, peer.lacking = p.Slot, p.Lacking
		}
	}
	if !s.countAnswer(m, p, preparing) {
		return
	}
	t.phase, t.answered = ready, nil
	if s.role != protocol.Leader {
		s.becomeLeader()
	}
	s.fill()
}

// fill proposes an entry for the slot: the one that was found, because it may be decided already; otherwise one that
// waits here.
func (s *Paxos) fill() {
	t := &s.try
	if t.phase != ready {
		return
	}
	if t.found == 0 {
		next, early, ok := s.next()
		if !ok {
			return
		}
		t.value, t.early = next, early
	}
	if t.found == 0 || s.cfg.Mutant == MutantNamedByBallot {
		t.value.Seal(t.slot, protocol.Term(s.ballot), make([]byte, protocol.HeadSize))
	}
	t.phase, t.pause = accepting, 0
	s.askVoters()
}

// onAccepted decides the slot when a quorum has accepted.
func onAccepted(s *Paxos, m *protocol.Message, p Part) {
	if peer := s.peer(m.From); peer != nil && p.Ballot == s.ballot {
		peer.accepted = max(peer.accepted, p.Slot)
	}
	decided := s.countAnswer(m, p, accepting)
	if t := &s.try; s.cfg.Mutant == MutantAcceptedByOne && t.phase == accepting && len(t.answered) > 0 {
		s.accepted(&t.value)
	}
	if !decided {
		return
	}
	told := append(s.conf.All(), s.leaving...)
	s.learn(s.try.value)
	told = append(told, s.conf.All()...)
	slices.Sort(told)
	for _, id := range slices.Compact(told) {
		if id != s.cfg.Self {
			s.send(id, MsgDecided, p)
		}
	}
	if s.role == protocol.Leader {
		s.begin()
	}
}

// onRefused does nothing: receive has recorded the higher ballot.
func onRefused(*Paxos, *protocol.Message, Part) {}

// propose accepts entries on the member where they were proposed.
func (s *Paxos) propose(in *protocol.Propose) {
	for from := 0; from < len(in.Entries); {
		to, early := from+1, in.OptionsOf(from).Mode == protocol.ModeAccepted
		for to < len(in.Entries) && (in.OptionsOf(to).Mode == protocol.ModeAccepted) == early {
			to++
		}
		s.proposeAlike(in.Entries[from:to], early)
		from = to
	}
}

// proposeAlike accepts entries that are answered in the same mode.
func (s *Paxos) proposeAlike(entries []protocol.Entry, early bool) {
	if s.role != protocol.Leader && s.leader != 0 {
		for len(entries) > 0 {
			n := protocol.Fitting(entries, s.cfg.MaxFrameBytes)
			s.send(s.leader, MsgPropose, Part{Early: early}).Entries = entries[:n:n]
			entries = entries[n:]
		}
		return
	}
	s.enqueue(entries, early, func(id protocol.ProposalID, reason protocol.Reason) {
		s.out.Reject = append(s.out.Reject, protocol.Rejection{ID: id, Reason: reason, Leader: s.leader})
	})
}

func onPropose(s *Paxos, m *protocol.Message, p Part) {
	s.enqueue(m.Entries, p.Early, func(id protocol.ProposalID, reason protocol.Reason) {
		s.send(m.From, MsgProposeRefused, Part{ID: id, Reason: reason})
	})
}

func onProposeRefused(s *Paxos, _ *protocol.Message, p Part) {
	if p.ID != (protocol.ProposalID{}) && p.Reason != protocol.ReasonNone {
		s.out.Reject = append(s.out.Reject, protocol.Rejection{ID: p.ID, Reason: p.Reason, Leader: s.leader})
	}
}

// enqueue accepts what fits and refuses the rest, by id. An accepted proposal may be lost with the leadership: its
// member proposes it again.
func (s *Paxos) enqueue(entries []protocol.Entry, early bool, refuse func(protocol.ProposalID, protocol.Reason)) {
	for i := range entries {
		e := &entries[i]
		switch reason := s.refusal(e); {
		case reason == protocol.ReasonNone:
			s.lead.queue, s.lead.early = append(s.lead.queue, *e), append(s.lead.early, early)
			s.lead.queued += e.Bytes()
		case e.ID != protocol.ProposalID{}:
			refuse(e.ID, reason)
		}
	}
	s.fill()
}

func (s *Paxos) refusal(e *protocol.Entry) protocol.Reason {
	switch {
	case e.Kind == protocol.EntryConfig, e.Kind == protocol.EntryNoop, e.Kind == protocol.EntrySeal:
		return protocol.ReasonInvalidChange // they are proposed otherwise
	case e.Bytes() > min(s.cfg.MaxUncommittedBytes, protocol.MaxEntryBytes):
		return protocol.ReasonTooLarge
	case e.CheckProposal() != nil:
		return protocol.ReasonMalformed
	case s.removed():
		return protocol.ReasonRemoved
	case s.role != protocol.Leader && s.leader != 0:
		return protocol.ReasonNotLeader
	case s.role != protocol.Leader:
		return protocol.ReasonNoLeader
	case s.lead.queued > 0 && s.lead.queued+e.Bytes() > s.cfg.MaxUncommittedBytes:
		return protocol.ReasonOverloaded
	}
	return protocol.ReasonNone
}

// dequeue returns one entry for the head of the queue: a group, if several batches without bodies fit into a message
// together. early: an origin is told when the entry is accepted.
func (s *Paxos) dequeue() (e protocol.Entry, early bool) {
	l := &s.lead
	n := protocol.Fitting(l.queue, s.cfg.MaxFrameBytes)
	if most := s.cfg.MaxFrameEntries; most > 0 {
		n = min(n, most)
	}
	if other := slices.IndexFunc(l.queue[:n],
		func(e protocol.Entry) bool { return e.Kind != protocol.EntryBatch || e.BodySize > 0 }); other >= 0 {
		n = max(1, other)
	}
	taken := l.queue[:n]
	early = slices.Contains(l.early[:n], true)
	l.queue, l.early = l.queue[n:], l.early[n:]
	for i := range taken {
		l.queued -= taken[i].Bytes()
	}
	if n == 1 {
		return taken[0], early
	}
	return protocol.NewGroup(taken), early
}

// next is the entry to propose if the slot is free.
func (s *Paxos) next() (e protocol.Entry, early, ok bool) {
	l := &s.lead
	if e, ok = s.nextConfig(); ok {
		return e, false, true
	}
	if len(l.queue) > 0 {
		e, early = s.dequeue()
		return e, early, true
	}
	if l.fill || s.cell.accepted != 0 || s.settled() < s.log.Last() {
		e = protocol.Entry{Kind: protocol.EntryNoop}
		e.SealPayload()
		return e, false, true
	}
	return e, false, false
}
