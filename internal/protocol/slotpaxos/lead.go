package slotpaxos

import (
	"cmp"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// The leader is the member that proposes. Safety does not depend on it: with two leaders nothing wrong is decided,
// and nothing may be decided at all until one of them learns of the other.

// leading is the state of a member that proposes; zero on others.
type leading struct {
	// peers are all others of the configuration, sorted by id.
	peers []*peer
	// heartbeatAt is when the next heartbeat is due. endAtHeartbeat is the last slot that was decided at the last one.
	heartbeatAt    time.Duration
	endAtHeartbeat protocol.Index
	// queue waits for slots, and has queued bytes. With fill a no-op is proposed if it is empty: another member has
	// accepted an entry in the slot, and was not asked for a promise in time. A reader may wait for the slot to be
	// decided.
	queue  []protocol.Entry
	queued int
	// early tells for each entry of queue whether its origin is told when it is accepted.
	early []bool
	fill  bool
	// change is a membership change that waits for a slot; nil: none.
	change *protocol.ProposeChange
	// forced: the last leader transferred leadership, so voters do not wait for it to time out.
	forced bool
}

// peer is the leader's view of another member.
type peer struct {
	id       protocol.MemberID
	heard    time.Duration  // when it last answered, or was first tracked
	answered bool           // at all
	last     protocol.Index // it knows the slots up to this one
	// promised and accepted are the last slots in which it did so under this leader's ballot. It still has a cell there,
	// or knows the decision, or has lost its disk.
	promised, accepted protocol.Index
	// lacking: bodies are missing there, as it last reported.
	lacking bool
}

// acked is what the peer has acknowledged and must still know.
func (p *peer) acked(b Ballot) Part {
	if p.accepted > 0 && p.accepted >= p.promised {
		return Part{Slot: p.accepted, Ballot: b, Accepted: b}
	}
	return Part{Slot: p.promised, Ballot: b}
}

func (s *Paxos) peer(id protocol.MemberID) *peer {
	i, ok := slices.BinarySearchFunc(s.lead.peers, id,
		func(p *peer, id protocol.MemberID) int { return cmp.Compare(p.id, id) })
	if !ok {
		return nil
	}
	return s.lead.peers[i]
}

func (s *Paxos) active(p *peer) bool { return p.answered && s.now < p.heard+s.cfg.ElectionTimeout }

// resetElectionTimer postpones the election. The timeout is random, so that members do not stand at the same time.
func (s *Paxos) resetElectionTimer() {
	s.standAt = s.now + s.cfg.ElectionTimeout + time.Duration(s.chance.Draw()%uint64(s.cfg.ElectionTimeout))
}

// observeBallot records a ballot. A proposer under a lower one steps down.
func (s *Paxos) observeBallot(b Ballot, from protocol.MemberID) {
	if b <= s.ballot {
		return
	}
	s.stepDown()
	s.ballot = b
	s.writeState()
	if s.leader != from {
		s.leader = 0
	}
}

// stepDown ends this member's attempts to propose.
func (s *Paxos) stepDown() {
	if s.role == protocol.Follower {
		return
	}
	if c := s.lead.change; c != nil {
		s.refuse(c.Context, protocol.ReasonNoLeader)
	}
	s.role, s.leader, s.lead, s.try = protocol.Follower, 0, leading{}, try{}
	s.resetElectionTimer()
}

// follow records that a member proposes under a current ballot.
func (s *Paxos) follow(from protocol.MemberID, b Ballot) {
	if from == s.cfg.Self || b != s.ballot {
		return
	}
	s.leader, s.heardAt = from, s.now
	s.resetElectionTimer()
}

// ignoresCandidate reports whether to ignore a candidate because the leader was active within an election timeout.
// Otherwise a member that was partitioned for a while, and has a high ballot, would disrupt the cluster.
func (s *Paxos) ignoresCandidate(m *protocol.Message, p Part) bool {
	return !p.Force && s.leader != 0 && m.From != s.leader &&
		(s.role == protocol.Leader || s.now < s.heardAt+s.cfg.ElectionTimeout)
}

// alone reports whether this member is the only voter.
func (s *Paxos) alone() bool {
	v := s.conf.Voters()
	return len(v) == 1 && v[0] == s.cfg.Self && s.role == protocol.Follower
}

// standForElection takes a new ballot, and begins with the next slot. A member that gets promises of a quorum there
// leads.
func (s *Paxos) standForElection(forced bool) {
	s.stepDown()
	s.resetElectionTimer()
	self := s.conf.Find(s.cfg.Self)
	if self == nil || self.Learner || !s.disk.stateDurable() ||
		s.disk.Stalled(s.now, protocol.StallTimeouts*s.cfg.ElectionTimeout) {
		s.leader = 0
		s.askToLeave()
		return
	}
	s.role, s.leader = protocol.Candidate, 0
	s.lead.forced = forced
	s.ballot = s.ballot.After(self)
	s.writeState()
	s.disk.state = s.disk.Seq
	s.begin()
}

// askToLeave asks the others whether the configuration that removed this member is resolved: no leader sends it
// anything any more.
func (s *Paxos) askToLeave() {
	if s.settled() == s.log.Last() {
		return
	}
	for _, id := range s.conf.Voters() {
		if id != s.cfg.Self {
			s.send(id, MsgAsk, Part{})
		}
	}
}

func (s *Paxos) becomeLeader() {
	s.role, s.leader, s.lead.forced = protocol.Leader, s.cfg.Self, false
	s.trackPeers()
	s.lead.heartbeatAt, s.lead.endAtHeartbeat = s.now, s.log.Last()
}

// trackPeers updates the peers to the configuration.
func (s *Paxos) trackPeers() {
	var peers []*peer
	for _, id := range s.conf.All() {
		if id == s.cfg.Self {
			continue
		}
		p := s.peer(id)
		if p == nil {
			p = &peer{id: id, heard: s.now}
		}
		peers = append(peers, p)
	}
	s.lead.peers = peers
}

// runLeaderTimers does the periodic work of a leader.
func (s *Paxos) runLeaderTimers() {
	if s.now >= max(s.quorumHeard(), s.tunedAt)+s.cfg.ElectionTimeout ||
		s.disk.Stalled(s.now, protocol.StallTimeouts*s.cfg.ElectionTimeout) {
		s.stepDown()
		return
	}
	if s.now < s.lead.heartbeatAt {
		return
	}
	s.lead.heartbeatAt = s.now + s.cfg.Heartbeat
	for _, p := range s.lead.peers {
		beat := p.acked(s.ballot)
		beat.Chain = s.log.chain.sum
		s.send(p.id, MsgHeartbeat, beat)
	}
	s.promote()
	s.fill() // in case this member's own promise came too late
	s.lead.endAtHeartbeat = s.log.Last()
}

// quorumHeard is the latest instant by which a quorum was active.
func (s *Paxos) quorumHeard() time.Duration {
	return time.Duration(quorum.Of(&s.conf).Agreed(func(id protocol.MemberID) uint64 {
		if p := s.peer(id); p != nil {
			return uint64(p.heard)
		}
		if id == s.cfg.Self {
			return uint64(s.now)
		}
		return 0
	}))
}

func onHeartbeat(s *Paxos, m *protocol.Message, p Part) {
	s.follow(m.From, p.Ballot)
	if !s.compare(m, p) {
		return
	}
	if !s.remembers(p) {
		s.stopped = true // docs/internals/identity.md
		s.out.Forgot = &protocol.Forgot{Leader: m.From, Term: m.Term, Acked: p.Slot, Last: s.log.Last()}
		return
	}
	s.send(m.From, MsgAlive, Part{Slot: s.furthest(), Ballot: p.Ballot, Lacking: s.bodies.Missing})
}

// remembers reports whether this member still has what it promised or accepted under a ballot: the leader sends the
// last slot in which it did.
func (s *Paxos) remembers(p Part) bool {
	switch {
	case p.Slot <= s.log.Last():
		return true
	case p.Accepted != 0:
		return s.cell.slot == p.Slot && s.cell.accepted >= p.Accepted
	}
	return s.cell.slot == p.Slot && s.cell.promised >= p.Ballot
}

func onAlive(s *Paxos, m *protocol.Message, p Part) {
	peer := s.peer(m.From)
	if peer == nil || p.Ballot != s.ballot {
		return
	}
	peer.heard, peer.answered = s.now, true
	if m.Commit >= peer.last && m.Commit+1 >= peer.promised { // otherwise the answer may be older than what is known
		peer.lacking = p.Lacking
	}
	peer.last = max(peer.last, min(m.Commit, s.log.Last()))
	if p.Slot > s.log.Last() {
		s.lead.fill = true
		s.fill()
	}
}

func (s *Paxos) transfer(in protocol.Transfer) {
	switch {
	case s.role != protocol.Leader && s.leader == 0:
		s.refuse(in.Context, protocol.ReasonNoLeader)
		return
	case s.role != protocol.Leader:
		s.refuse(in.Context, protocol.ReasonNotLeader)
		return
	case in.To == s.cfg.Self:
		return
	}
	to := in.To
	if to == 0 {
		to = s.mostAdvanced()
	}
	if m := s.conf.Find(to); m == nil || m.Learner {
		s.refuse(in.Context, protocol.ReasonNotVoter)
		return
	}
	s.send(to, MsgLead, Part{})
}

// mostAdvanced is the active voter that knows the most slots; 0 if there is none.
func (s *Paxos) mostAdvanced() (id protocol.MemberID) {
	last := protocol.Index(0)
	for _, p := range s.lead.peers {
		if m := s.conf.Find(p.id); m != nil && !m.Learner && s.active(p) && p.last >= last {
			id, last = p.id, p.last
		}
	}
	return id
}

func onLead(s *Paxos, m *protocol.Message, _ Part) {
	if s.leader == m.From {
		s.standForElection(true)
	}
}
