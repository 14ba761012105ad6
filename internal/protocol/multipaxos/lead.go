package multipaxos

import (
	"cmp"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// leading is the state of a member that proposes. On others it is zero, except for round.
type leading struct {
	// peers are the other members to which the log is replicated, sorted by id.
	peers []*paxos.Peer
	// heartbeatAt is when the next heartbeat is due. endAtHeartbeat is how many slots were decided at the last one.
	heartbeatAt    time.Duration
	endAtHeartbeat protocol.Index
	// tunedAt is when the settings last changed; 0: they have not since this member led.
	tunedAt time.Duration
	// queue waits until something can be proposed, and has queued bytes. open is the bytes of what is
	// proposed and not decided.
	queue        []protocol.Entry
	queued, open int
	// sealedAt is the slot of the last EntrySeal that is proposed; 0: there is none.
	sealedAt protocol.Index
	// change is a membership change that waits until all that was proposed is decided; nil: none.
	change *protocol.ProposeChange
	// forced: the last leader transferred leadership, so voters do not wait for it to time out.
	forced bool
	// frame is the last one that was built. Peers with the same next slot share it.
	frame paxos.Frame
	// round is the number of the latest confirmation of leadership.
	round    uint64
	reads    reads
	transfer transferring
	// relays are the groups of the peers, and their relays.
	relays relay.Relays
	pacing relay.Pacing
}

// becomeLeader starts leading: a quorum of those that were asked has promised.
func (s *Paxos) becomeLeader(asked []*paxos.Request) {
	s.role, s.leader, s.lead.forced = protocol.Leader, s.cfg.Self, false
	s.lead.heartbeatAt, s.lead.endAtHeartbeat = s.now, s.log.Last()
	s.trackPeers()
	for _, a := range asked {
		if p := s.lead.peer(a.ID); p != nil && a.Done {
			p.MarkHeard(s.now)
			p.RecordPromise(a, s.log.Last())
			p.Restart(p.Match + 1)
		}
	}
	s.runLeaderTimers()
}

// trackPeers updates the peers to the configuration. Members that left it stay peers until they know that, or for
// an election timeout.
func (s *Paxos) trackPeers() {
	all := s.conf.All()
	for _, p := range s.lead.peers {
		switch {
		case slices.Contains(all, p.ID):
			p.Leaving, p.LeaveBy = 0, 0
		case p.Leaving == 0:
			p.Leaving = s.log.ConfigAt
		}
	}
	known := s.lead.peers
	for _, id := range append(all, s.leaving...) {
		if id == s.cfg.Self || slices.ContainsFunc(known, func(p *paxos.Peer) bool { return p.ID == id }) {
			continue
		}
		p := &paxos.Peer{ID: id, Heard: s.now, Next: s.log.Last() + 1, Lost: true}
		if s.conf.Find(id) == nil {
			p.Leaving = max(1, s.log.ConfigAt)
		}
		known = append(known, p)
	}
	slices.SortFunc(known, func(a, b *paxos.Peer) int { return cmp.Compare(a.ID, b.ID) })
	s.lead.peers = known
	s.lead.groupPeers(&s.conf, s.relayGroups)
}

// removeDeparted stops replicating to removed members that know that they are removed, or had time to learn it.
func (s *Paxos) removeDeparted() {
	s.lead.peers = slices.DeleteFunc(s.lead.peers, func(p *paxos.Peer) bool {
		if p.Leaving == 0 || s.settled() < p.Leaving {
			return false
		}
		if p.LeaveBy == 0 {
			p.LeaveBy = s.now + s.cfg.ElectionTimeout
		}
		return s.now >= p.LeaveBy || p.Match > p.Leaving && p.Logged > p.Leaving
	})
}

// runLeaderTimers sends heartbeats, and steps down without an active quorum.
func (s *Paxos) runLeaderTimers() {
	if s.now >= max(s.quorumHeard(), s.lead.tunedAt)+s.cfg.ElectionTimeout || s.stalled() {
		s.stepDown()
		return
	}
	if h := &s.lead.transfer; h.to != 0 && s.now >= h.until {
		*h = transferring{}
	}
	if s.now < s.lead.heartbeatAt {
		return
	}
	s.lead.heartbeatAt = s.now + s.cfg.Heartbeat
	s.lead.relays.Turn++
	s.removeDeparted()
	for _, p := range s.lead.peers {
		s.heartbeat(p)
	}
	s.promote()
	s.fill()
	s.lead.endAtHeartbeat = s.log.Last()
}

// quorumHeard is the latest instant by which a quorum that this leader needs was active: a quorum for phase 2, and
// one for phase 1 too while it asks new voters for promises.
func (s *Paxos) quorumHeard() time.Duration {
	heard := func(id protocol.MemberID) uint64 {
		if p := s.lead.peer(id); p != nil {
			return uint64(p.Heard)
		}
		if id == s.cfg.Self {
			return uint64(s.now)
		}
		return 0
	}
	at := s.acceptors().Agreed(heard)
	if s.prop.Phase == paxos.Preparing {
		at = min(at, s.preparers().Agreed(heard))
	}
	return time.Duration(at)
}

func (s *Paxos) heartbeat(p *paxos.Peer) {
	s.send(p.ID, MsgHeartbeat, Part{
		Ballot: s.ballot, Slot: p.Match, Promised: p.Promised, Round: s.lead.round,
	}).Context = paxos.Stamp(s.now)
}

// onHeartbeat answers at once with what this member has on its disk and in memory.
func onHeartbeat(s *Paxos, m *protocol.Message, p Part) {
	if p.Ballot < s.acc.Promised {
		s.send(m.From, MsgRefused, Part{Ballot: s.acc.Promised})
		return
	}
	if p.More {
		s.resetElectionTimer()
		return
	}
	if !remembers(s, p) {
		s.stopped = true // docs/internals/identity.md
		s.out.Forgot = &protocol.Forgot{Leader: m.From, Term: m.Term, Acked: p.Slot, Last: s.log.Last()}
		return
	}
	promiseTo(s, m.From, p.Ballot)
	follow(s, m.From, p.Ballot)
	learnCommit(s, m.Commit)
	a := s.send(m.From, MsgAlive, Part{
		Ballot: p.Ballot, Slot: s.stable(), Hint: s.acc.Reach, Logged: s.disk.Durable.Last, Round: p.Round,
		Lacking: s.bodies.Missing, Promised: s.disk.Durable.Under == p.Ballot,
	})
	a.Context = m.Context
}

// remembers reports whether this member still has what it acknowledged under a ballot.
func remembers(s *Paxos, p Part) bool {
	if p.Ballot == s.acc.Promised {
		return s.acc.Reach >= p.Slot
	}
	return s.log.Last() >= p.Slot && !p.Promised // it has promised less
}

func onAlive(s *Paxos, m *protocol.Message, p Part) {
	peer := recordAnswer(s, m, p)
	if peer == nil {
		return
	}
	peer.Logged = max(peer.Logged, min(p.Logged, s.log.Last()))
	if p.Round > peer.Round && p.Round <= s.lead.round {
		peer.Round = p.Round
	}
	if m.Context != 0 {
		peer.RecordTrip(s.now - time.Duration(m.Context-1))
		switch {
		case peer.Lost && m.Context > peer.LostAt,
			peer.Gap(m.Context, p.Hint, s.lead.relays.LossTimeout(peer, &s.cfg, s.now, grouper{s}.Fit)):
			s.lead.relays.ReportLost(peer, s.now+s.cfg.ElectionTimeout)
			peer.Resume(p.Hint, s.now)
		case peer.Forgot(m.Context, p.Hint):
			peer.Resume(p.Hint, s.now)
		}
	}
	progressed(s, peer)
	s.confirmReads()
}

func onAccepted(s *Paxos, m *protocol.Message, p Part) {
	if gatherAnswer(s, m, p) {
		return
	}
	if peer := recordAnswer(s, m, p); peer != nil {
		progressed(s, peer)
	}
}

// recordAnswer records what every acknowledgement contains, and returns the peer that sent it; nil if it does not
// count.
func recordAnswer(s *Paxos, m *protocol.Message, p Part) *paxos.Peer {
	peer := s.lead.peer(m.From)
	if peer == nil || p.Ballot != s.ballot || s.role != protocol.Leader {
		return nil
	}
	peer.MarkHeard(s.now)
	peer.Promised = peer.Promised || p.Promised
	peer.Acknowledge(p.Lacking, p.Slot, s.prop.End)
	return peer
}

// progressed continues after a peer has acknowledged something.
func progressed(s *Paxos, p *paxos.Peer) {
	s.advance()
	if s.role == protocol.Leader { // otherwise it was removed
		replicateGroup(s, p)
		sendLead(s, p)
	}
}

// advance decides what a quorum has accepted.
func (s *Paxos) advance() {
	if s.closed() {
		return
	}
	for s.prop.Phase == paxos.Ready {
		to := min(s.prop.End, protocol.Index(s.acceptors().Agreed(s.accepted)))
		if to <= s.log.Last() {
			break
		}
		for s.prop.Phase == paxos.Ready && s.log.Last() < to {
			s.appendDecided(s.acc.Votes[s.log.Last()+1].Entry)
		}
		s.fill()
		if s.role != protocol.Leader {
			return
		}
		for _, p := range s.lead.peers {
			s.replicate(p)
		}
	}
	s.confirmReads() // fewer voters may be left, and all of them have confirmed
	s.startReads()
}

// accepted is the last slot up to which a member is known to have accepted everything, on its disk.
func (s *Paxos) accepted(id protocol.MemberID) uint64 {
	if id == s.cfg.Self {
		return uint64(s.stable())
	}
	if p := s.lead.peer(id); p != nil {
		return uint64(p.Match)
	}
	return 0
}

// fill proposes what waits, as far as it can be proposed now.
func (s *Paxos) fill() {
	if s.closed() {
		return
	}
	before := s.prop.End
	for s.role == protocol.Leader && s.prop.Phase == paxos.Ready && !s.barrier() {
		slot, v, bound, found := s.prop.NextSlot()
		e := v.Entry
		if !bound {
			next, ok := s.next()
			if !ok {
				break
			}
			e = next
		} else if !found {
			e = paxos.Noop()
		}
		if !found {
			e.Seal(slot, protocol.Term(s.ballot), make([]byte, protocol.HeadSize))
		}
		s.vote(e)
		if e.Kind == protocol.EntrySeal {
			s.lead.sealedAt = slot
		}
		s.lead.open += e.Bytes()
		s.prop.MarkProposed()
	}
	if s.role != protocol.Leader || s.prop.End == before {
		return
	}
	for _, p := range s.lead.peers {
		s.replicate(p)
	}
}

// barrier reports whether nothing can be proposed until a configuration is decided: its voters decide the slots
// after it.
func (s *Paxos) barrier() bool {
	v, ok := s.acc.Votes[s.prop.End]
	return s.prop.End > s.log.Last() && ok && v.Entry.Kind == protocol.EntryConfig && s.cfg.Mutant != MutantChangeEarly
}

// next returns what to propose in a free slot: a configuration once everything before it is decided, and nothing
// until then. Behind a seal there is nothing.
func (s *Paxos) next() (e protocol.Entry, ok bool) {
	l := &s.lead
	if s.ends() {
		return e, false
	}
	if l.change != nil {
		if s.prop.End > s.log.Last() {
			return e, false
		}
		if e, ok = s.nextConfig(); ok {
			return e, true
		}
	}
	if len(l.queue) > 0 {
		e, l.queue = slots.Pop(l.queue)
		l.queued -= e.Bytes()
		return e, true
	}
	return paxos.Noop(), s.settled() < s.log.Last() && s.prop.End == s.log.Last()
}

// onProposeInput accepts or forwards entries on the member where they were proposed.
func onProposeInput(s *Paxos, entries []protocol.Entry) {
	if s.role != protocol.Leader && s.leader != 0 && !s.closed() && !s.removed() {
		for len(entries) > 0 {
			n := protocol.Fitting(entries, s.cfg.MaxFrameBytes)
			s.send(s.leader, MsgPropose, Part{}).Entries = entries[:n:n]
			entries = entries[n:]
		}
		return
	}
	enqueue(s, entries, func(id protocol.ProposalID, reason protocol.Reason) {
		s.out.Reject = append(s.out.Reject, protocol.Rejection{ID: id, Reason: reason, Leader: s.leader})
	})
}

func onPropose(s *Paxos, m *protocol.Message, _ Part) {
	if slices.ContainsFunc(m.Entries, func(e protocol.Entry) bool { return e.Kind == protocol.EntrySeal }) {
		return // who sent it has not checked it against this log
	}
	enqueue(s, m.Entries, func(id protocol.ProposalID, reason protocol.Reason) {
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
func enqueue(s *Paxos, entries []protocol.Entry, refuse func(protocol.ProposalID, protocol.Reason)) {
	for i := range entries {
		e := &entries[i]
		switch reason := refusal(s, e); {
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

// refusal is the reason for refusing a proposal; ReasonNone if it is accepted.
func refusal(s *Paxos, e *protocol.Entry) protocol.Reason {
	l := &s.lead
	switch {
	case e.Kind == protocol.EntryConfig, e.Kind == protocol.EntryNoop:
		return protocol.ReasonInvalidChange // they are proposed otherwise
	case e.Bytes() > min(s.cfg.MaxUncommittedBytes, protocol.MaxEntryBytes),
		e.BodySize > 0 && (e.Form != protocol.FormWhole || !e.Resident()):
		return protocol.ReasonTooLarge
	case e.CheckProposal() != nil:
		return protocol.ReasonMalformed
	case s.removed():
		return protocol.ReasonRemoved
	case s.closed():
		return protocol.ReasonSealing
	case s.role != protocol.Leader && s.leader != 0:
		return protocol.ReasonNotLeader
	case s.role != protocol.Leader:
		return protocol.ReasonNoLeader
	case s.sealing():
		return protocol.ReasonSealing
	case e.Kind == protocol.EntrySeal && s.changing():
		return protocol.ReasonChangePending
	case l.transfer.to != 0:
		return protocol.ReasonTransferring
	case l.open+l.queued > 0 && l.open+l.queued+e.Bytes() > s.cfg.MaxUncommittedBytes:
		return protocol.ReasonOverloaded
	}
	return protocol.ReasonNone
}
