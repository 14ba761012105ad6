package multipaxos

import (
	"cmp"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// leading is the state of a member that proposes; zero on others, but for round.
type leading struct {
	// peers are all others that get the log, sorted by id.
	peers []*peer
	// beat is when the next heartbeat is due. beaten is how many slots were decided at the last one.
	beat   time.Duration
	beaten protocol.Index
	// queue waits until something can be proposed, and has queued bytes. open is the bytes of what is
	// proposed and not decided.
	queue        []protocol.Entry
	queued, open int
	// change is a membership change that waits until all that was proposed is decided; nil: none.
	change *protocol.ProposeChange
	// forced: the last leader handed over, and nobody need be faithful to it.
	forced bool
	// frame is the last one that was built. Peers that are equally far get the same.
	frame frame
	// round is the number of the latest confirmation of leadership that was asked for.
	round uint64
	reads reads
	hand  handover
	// relays are between this member and the others.
	relays relaying
	paces  pacing
}

// becomeLeader: a quorum of those that were asked has promised.
func (s *Paxos) becomeLeader(asked []*asked) {
	s.role, s.leader, s.lead.forced = protocol.Leader, s.cfg.Self, false
	s.lead.beat, s.lead.beaten = s.now, s.log.Last()
	s.trackPeers()
	for _, a := range asked {
		if p := s.peer(a.id); p != nil && a.done {
			p.heardOf(s.now)
			p.promisedTo(a, s.log.Last())
			p.restart(p.match + 1)
		}
	}
	s.tendLead()
}

// trackPeers keeps the peers as the configuration says. Those that left it stay until they know that, or
// for a while.
func (s *Paxos) trackPeers() {
	all := s.conf.All()
	for _, p := range s.lead.peers {
		switch {
		case slices.Contains(all, p.id):
			p.leaving, p.leaveBy = 0, 0
		case p.leaving == 0:
			p.leaving = s.log.ConfigAt
		}
	}
	known := s.lead.peers
	for _, id := range append(all, s.leaving...) {
		if id == s.cfg.Self || slices.ContainsFunc(known, func(p *peer) bool { return p.id == id }) {
			continue
		}
		p := &peer{id: id, heard: s.now, next: s.log.Last() + 1, lost: true}
		if s.conf.Find(id) == nil {
			p.leaving = max(1, s.log.ConfigAt)
		}
		known = append(known, p)
	}
	slices.SortFunc(known, func(a, b *peer) int { return cmp.Compare(a.id, b.id) })
	s.lead.peers = known
	s.groupPeers()
}

// letGo stops sending to removed members that know that they are removed, or had time to learn it.
func (s *Paxos) letGo() {
	s.lead.peers = slices.DeleteFunc(s.lead.peers, func(p *peer) bool {
		if p.leaving == 0 || s.settled() < p.leaving {
			return false
		}
		if p.leaveBy == 0 {
			p.leaveBy = s.now + s.cfg.ElectionTimeout
		}
		return s.now >= p.leaveBy || p.match > p.leaving && p.logged > p.leaving
	})
}

// tendLead is what a leader does from time to time.
func (s *Paxos) tendLead() {
	if s.now >= s.quorumHeard()+s.cfg.ElectionTimeout || s.stalled() {
		s.giveWay()
		return
	}
	if h := &s.lead.hand; h.to != 0 && s.now >= h.until {
		*h = handover{}
	}
	if s.now < s.lead.beat {
		return
	}
	s.lead.beat = s.now + s.cfg.Heartbeat
	s.lead.relays.turn++
	s.letGo()
	for _, p := range s.lead.peers {
		s.heartbeat(p)
	}
	s.promote()
	s.fill()
	s.lead.beaten = s.log.Last()
}

// quorumHeard is the latest instant at which those had been heard of that this leader needs: a quorum for phase 2, and
// one for phase 1 too while it asks for the promises of new voters.
func (s *Paxos) quorumHeard() time.Duration {
	heard := func(id protocol.MemberID) uint64 {
		if p := s.peer(id); p != nil {
			return uint64(p.heard)
		}
		if id == s.cfg.Self {
			return uint64(s.now)
		}
		return 0
	}
	at := s.acceptors().Agreed(heard)
	if s.prop.phase == preparing {
		at = min(at, s.preparers().Agreed(heard))
	}
	return time.Duration(at)
}

func (s *Paxos) heartbeat(p *peer) {
	s.send(p.id, MsgHeartbeat, Part{
		Ballot: s.ballot, Slot: p.match, Promised: p.promised, Round: s.lead.round,
	}).Context = stamp(s.now)
}

// onHeartbeat answers at once: what this member's disk has, and what its memory has.
func onHeartbeat(s *Paxos, m *protocol.Message, p Part) {
	if p.Ballot < s.acc.promised {
		s.send(m.From, MsgRefused, Part{Ballot: s.acc.promised})
		return
	}
	if p.More {
		s.rest()
		return
	}
	if !s.remembers(p) {
		s.stopped = true // docs/internals/identity.md
		s.out.Forgot = &protocol.Forgot{Leader: m.From, Term: m.Term, Acked: p.Slot, Last: s.log.Last()}
		return
	}
	s.promiseTo(m.From, p.Ballot)
	s.hear(m.From, p.Ballot)
	s.learnCommit(m.Commit)
	a := s.send(m.From, MsgAlive, Part{
		Ballot: p.Ballot, Slot: s.stable(), Hint: s.acc.reach, Logged: s.disk.Durable.Last, Round: p.Round,
		Lacking: s.bodies.Missing, Promised: s.disk.Durable.Under == p.Ballot,
	})
	a.Context = m.Context
}

// remembers reports whether this member still has what it acknowledged under a ballot.
func (s *Paxos) remembers(p Part) bool {
	if p.Ballot == s.acc.promised {
		return s.acc.reach >= p.Slot
	}
	return s.log.Last() >= p.Slot && !p.Promised // it promised less than that
}

func onAlive(s *Paxos, m *protocol.Message, p Part) {
	peer := s.heardPeer(m, p)
	if peer == nil {
		return
	}
	peer.logged = max(peer.logged, min(p.Logged, s.log.Last()))
	if p.Round > peer.round && p.Round <= s.lead.round {
		peer.round = p.Round
	}
	if m.Context != 0 {
		peer.measured(s.now - time.Duration(m.Context-1))
		switch {
		case peer.lost && m.Context > peer.lostAt, peer.gap(m.Context, p.Hint, s.lead.relays.wait(peer, &s.cfg, s.now, grouper{s}.fit)):
			s.lead.relays.missed(peer, s.now+s.cfg.ElectionTimeout)
			peer.resume(p.Hint, s.now)
		case peer.forgot(m.Context, p.Hint):
			peer.resume(p.Hint, s.now)
		}
	}
	s.progressed(peer)
	s.confirmReads()
}

func onAccepted(s *Paxos, m *protocol.Message, p Part) {
	if s.gathered(m, p) {
		return
	}
	if peer := s.heardPeer(m, p); peer != nil {
		s.progressed(peer)
	}
}

// heardPeer notes what every acknowledgement tells, and returns the member that gave it.
func (s *Paxos) heardPeer(m *protocol.Message, p Part) *peer {
	peer := s.peer(m.From)
	if peer == nil || p.Ballot != s.ballot || s.role != protocol.Leader {
		return nil
	}
	peer.heardOf(s.now)
	peer.promised = peer.promised || p.Promised
	peer.told(p.Lacking, p.Slot, s.prop.end)
	return peer
}

// progressed goes on after a peer acknowledged something.
func (s *Paxos) progressed(p *peer) {
	s.advance()
	if s.role == protocol.Leader { // else that was the end of its membership
		s.replicateGroup(p)
		s.handOver(p)
	}
}

// advance decides what a quorum has accepted.
func (s *Paxos) advance() {
	for s.prop.phase == ready {
		to := min(s.prop.end, protocol.Index(s.acceptors().Agreed(s.accepted)))
		if to <= s.log.Last() {
			break
		}
		for s.prop.phase == ready && s.log.Last() < to {
			s.learn(s.acc.votes[s.log.Last()+1].entry)
		}
		s.fill()
		if s.role != protocol.Leader {
			return
		}
		for _, p := range s.lead.peers {
			s.replicate(p)
		}
	}
	s.startReads()
}

// accepted is up to where a member is known to have accepted, on its disk.
func (s *Paxos) accepted(id protocol.MemberID) uint64 {
	if id == s.cfg.Self {
		return uint64(s.stable())
	}
	if p := s.peer(id); p != nil {
		return uint64(p.match)
	}
	return 0
}

// fill proposes what there is, as far as it can be proposed now.
func (s *Paxos) fill() {
	before := s.prop.end
	for s.role == protocol.Leader && s.prop.phase == ready && !s.barrier() {
		slot, v, bound, found := s.prop.next()
		e := v.entry
		if !bound {
			next, ok := s.next()
			if !ok {
				break
			}
			e = next
		} else if !found {
			e = noop()
		}
		if !found {
			e.Seal(slot, protocol.Term(s.ballot), make([]byte, protocol.HeadSize))
		}
		s.vote(e)
		s.lead.open += e.Bytes()
		s.prop.proposed()
	}
	if s.role != protocol.Leader || s.prop.end == before {
		return
	}
	for _, p := range s.lead.peers {
		s.replicate(p)
	}
}

// barrier reports whether nothing can be proposed until a membership is decided: who decides in the slots
// after it is not known before.
func (s *Paxos) barrier() bool {
	v, ok := s.acc.votes[s.prop.end]
	return s.prop.end > s.log.Last() && ok && v.entry.Kind == protocol.EntryConfig && s.cfg.Mutant != MutantChangeEarly
}

// next is what to propose in a free slot: a membership change once all before it is decided, and nothing
// until then.
func (s *Paxos) next() (e protocol.Entry, ok bool) {
	l := &s.lead
	if l.change != nil {
		if s.prop.end > s.log.Last() {
			return e, false
		}
		if e, ok = s.nextConfig(); ok {
			return e, true
		}
	}
	if len(l.queue) > 0 {
		e = l.queue[0]
		l.queue[0] = protocol.Entry{} // its memory
		l.queue = l.queue[1:]
		l.queued -= e.Bytes()
		return e, true
	}
	return noop(), s.settled() < s.log.Last() && s.prop.end == s.log.Last()
}

// propose takes entries in on the member where they were proposed.
func (s *Paxos) propose(entries []protocol.Entry) {
	if s.role != protocol.Leader && s.leader != 0 && !s.removed() {
		for len(entries) > 0 {
			n := protocol.Fitting(entries, s.cfg.MaxFrameBytes)
			s.send(s.leader, MsgPropose, Part{}).Entries = entries[:n:n]
			entries = entries[n:]
		}
		return
	}
	s.enqueue(entries, func(id protocol.ProposalID, reason protocol.Reason) {
		s.out.Reject = append(s.out.Reject, protocol.Rejection{ID: id, Reason: reason, Leader: s.leader})
	})
}

func onPropose(s *Paxos, m *protocol.Message, _ Part) {
	s.enqueue(m.Entries, func(id protocol.ProposalID, reason protocol.Reason) {
		s.send(m.From, MsgProposeRefused, Part{ID: id, Reason: reason})
	})
}

func onProposeRefused(s *Paxos, _ *protocol.Message, p Part) {
	if p.ID != (protocol.ProposalID{}) && p.Reason != protocol.ReasonNone {
		s.out.Reject = append(s.out.Reject, protocol.Rejection{ID: p.ID, Reason: p.Reason, Leader: s.leader})
	}
}

// enqueue takes what it can, and refuses each of the others by its id. What is taken may be lost with the
// leadership: its member proposes it again.
func (s *Paxos) enqueue(entries []protocol.Entry, refuse func(protocol.ProposalID, protocol.Reason)) {
	for i := range entries {
		e := &entries[i]
		switch reason := s.refusal(e); {
		case reason == protocol.ReasonNone:
			s.lead.queue = append(s.lead.queue, *e)
			s.lead.queued += e.Bytes()
		case e.ID != protocol.ProposalID{}:
			refuse(e.ID, reason)
		}
	}
	s.fill()
	s.advance()
}

// refusal says why this member does not take a proposal; ReasonNone if it does.
func (s *Paxos) refusal(e *protocol.Entry) protocol.Reason {
	l := &s.lead
	switch {
	case e.Kind == protocol.EntryConfig, e.Kind == protocol.EntryNoop:
		return protocol.ReasonInvalidChange // they have ways of their own
	case e.Bytes() > min(s.cfg.MaxUncommittedBytes, protocol.MaxEntryBytes), e.BodySize > 0 && (e.Form != protocol.FormWhole || !e.Resident()):
		return protocol.ReasonTooLarge
	case e.CheckProposal() != nil:
		return protocol.ReasonMalformed
	case s.removed():
		return protocol.ReasonRemoved
	case s.role != protocol.Leader && s.leader != 0:
		return protocol.ReasonNotLeader
	case s.role != protocol.Leader:
		return protocol.ReasonNoLeader
	case l.hand.to != 0:
		return protocol.ReasonTransferring
	case l.open+l.queued > 0 && l.open+l.queued+e.Bytes() > s.cfg.MaxUncommittedBytes:
		return protocol.ReasonOverloaded
	}
	return protocol.ReasonNone
}
