package multipaxos

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// election is a follower's view of the leader and of the next election.
type election struct {
	// heardAt is when a message of the leader last arrived, standAt when this member stands for election.
	heardAt, standAt time.Duration
	// granted are the members that would promise, while this member probes.
	granted []protocol.MemberID
	// seen is the highest ballot that others have promised, as they reported: the next ballot of this member must be
	// above it.
	seen paxos.Ballot
}

// resetElectionTimer postpones the election. The timeout is random, so that members do not stand at the same time.
func (s *Paxos) resetElectionTimer() {
	s.election.standAt = s.now + s.cfg.ElectionTimeout + time.Duration(s.chance.Draw()%uint64(s.cfg.ElectionTimeout))
}

// promiseTo promises another member its ballot. A proposer under a lower ballot steps down.
func promiseTo(s *Paxos, from protocol.MemberID, b paxos.Ballot) {
	if b <= s.ballot {
		return
	}
	s.stepDown()
	if s.leader != from {
		s.leader = 0
	}
	s.promise(b)
}

// onRefused handles a refusal: the sender has promised a higher ballot. A proposer steps down, and takes a higher
// ballot the next time.
func onRefused(s *Paxos, _ *protocol.Message, p Part) {
	s.election.seen = max(s.election.seen, p.Ballot)
	if p.Ballot > s.ballot && s.prop.Phase != paxos.Idle {
		s.stepDown()
	}
}

// stepDown ends phase 1, or leadership.
func (s *Paxos) stepDown() {
	if s.role == protocol.Follower {
		return
	}
	if c := s.lead.change; c != nil {
		s.refuse(c.Context, protocol.ReasonNoLeader)
	}
	s.failReads(protocol.ReasonNoLeader)
	s.role, s.leader, s.election.granted = protocol.Follower, 0, nil
	s.lead, s.prop = leading{round: s.lead.round}, paxos.Proposer{Seg: s.prop.Seg}
	s.resetElectionTimer()
}

// follow records that a member proposes under the promised ballot.
func follow(s *Paxos, from protocol.MemberID, b paxos.Ballot) {
	if b != s.ballot {
		return
	}
	if s.role != protocol.Follower {
		s.stepDown()
	}
	s.leader, s.election.heardAt = from, s.now
	s.resetElectionTimer()
}

// ignoresCandidate reports whether to ignore a candidate because the leader was active within an election timeout.
// Otherwise a member that was partitioned for a while would disrupt the cluster.
func (s *Paxos) ignoresCandidate(from protocol.MemberID, forced bool) bool {
	return !forced && s.leader != 0 && from != s.leader &&
		(s.role == protocol.Leader || s.now < s.election.heardAt+s.cfg.ElectionTimeout)
}

// alone reports whether this member is the only voter, and does not lead or stand yet.
func (s *Paxos) alone() bool {
	if s.role != protocol.Follower || len(s.conf.Members) == 0 {
		return false
	}
	for i := range s.conf.Members { // without allocation: every step calls this
		if m := &s.conf.Members[i]; !m.Learner && m.ID != s.cfg.Self {
			return false
		}
	}
	return s.votes(s.cfg.Self)
}

// probe asks whether a quorum would promise, before this member disrupts the cluster with a ballot. A member that
// may not stand asks for decided entries instead: it may have been removed, and no leader sends it any.
func (s *Paxos) probe() {
	s.stepDown()
	s.resetElectionTimer()
	s.leader = 0
	if m := s.conf.Find(s.cfg.Self); m == nil || m.Learner || s.stalled() {
		s.sendToVoters(MsgAsk)
		return
	}
	s.role, s.election.granted = protocol.PreCandidate, append(s.election.granted[:0], s.cfg.Self)
	s.sendToVoters(MsgProbe)
	s.countProbes()
}

// sendToVoters sends a question to all other voters.
func (s *Paxos) sendToVoters(t protocol.MessageType) {
	for _, id := range s.conf.Voters() {
		if id != s.cfg.Self {
			s.send(id, t, Part{Slot: s.furthest()})
		}
	}
}

// furthest is the last slot that is decided or accepted here.
func (s *Paxos) furthest() protocol.Index { return max(s.log.Last(), s.acc.Top) }

// onProbe answers whether this member would promise. It would not if a leader is active, or if slots are decided
// here that the other member does not know of. Those are sent to it: this is how a removed member learns that it
// was removed.
func onProbe(s *Paxos, m *protocol.Message, p Part) {
	lacks := p.Slot < s.log.Last()
	s.send(m.From, MsgProbed, Part{}).Reject = lacks || s.ignoresCandidate(m.From, false)
	if lacks || m.Commit < s.log.Last() && slices.Contains(s.conf.Removed, m.From) {
		sendDecided(s, m.From, m.Commit)
	}
}

func onProbed(s *Paxos, m *protocol.Message, _ Part) {
	if s.role != protocol.PreCandidate || m.Reject || slices.Contains(s.election.granted, m.From) {
		return
	}
	s.election.granted = append(s.election.granted, m.From)
	s.countProbes()
}

func (s *Paxos) countProbes() {
	won := s.preparers().Vote(func(id protocol.MemberID) quorum.Answer {
		if slices.Contains(s.election.granted, id) {
			return quorum.Granted
		}
		return quorum.Missing
	})
	if won == quorum.Won {
		s.elect(false)
	}
}

// elect takes a new ballot and asks for promises. forced: the leader transfers leadership.
func (s *Paxos) elect(forced bool) {
	if s.closed() {
		return
	}
	s.stepDown()
	s.resetElectionTimer()
	self := s.conf.Find(s.cfg.Self)
	if self == nil || self.Learner || s.stalled() {
		return
	}
	s.role, s.leader = protocol.Candidate, 0
	s.lead.forced = forced
	s.promise(max(s.ballot, s.election.seen).After(self))
	s.hard.state = s.disk.Written
	s.prepare()
}

// prepare starts phase 1.
func (s *Paxos) prepare() {
	s.prop.Begin(s.ballot, s.log.Last())
	s.lead.open = 0
	if s.cfg.Mutant == MutantLeadUnasked && s.lead.forced {
		s.prop.BecomeReady()
		s.becomeLeader(nil)
		return
	}
	s.sendPrepares()
	s.tally()
}

// sendPrepares asks those acceptors again that have not answered. Questions under a ballot that is not durable yet
// wait for the disk.
func (s *Paxos) sendPrepares() {
	if s.prop.Phase != paxos.Preparing || s.closed() {
		return
	}
	for _, id := range s.conf.Voters() {
		if id == s.cfg.Self {
			continue
		}
		if a := s.prop.Request(id, s.log.Last()); !a.Done && s.now >= a.RetryAt {
			s.sendPrepare(a)
		}
	}
}

// sendPrepare asks an acceptor for the next part of what it has accepted.
func (s *Paxos) sendPrepare(a *paxos.Request) {
	a.RetryAfter = min(max(2*a.RetryAfter, s.cfg.Heartbeat), s.cfg.ElectionTimeout)
	a.RetryAt, a.Asked = s.now+a.RetryAfter, a.Next
	p := Part{Ballot: s.ballot, Slot: a.Next, Force: s.lead.forced}
	switch {
	case s.cfg.Mutant == MutantBallotReused, a.RetryAfter > s.cfg.Heartbeat && s.disk.Done >= s.hard.state:
		s.send(a.ID, MsgPrepare, p)
	case a.RetryAfter == s.cfg.Heartbeat:
		s.release(a.ID, MsgPrepare, p)
	}
}

// onPrepare is phase 1 at an acceptor.
func onPrepare(s *Paxos, m *protocol.Message, p Part) {
	if p.Ballot < s.acc.Promised {
		s.send(m.From, MsgRefused, Part{Ballot: s.acc.Promised})
		return
	}
	s.resetElectionTimer() // another member stands for election
	promiseTo(s, m.From, p.Ballot)
	if p.Slot <= s.log.Base {
		s.sendSnapshot(m.From) // what was decided there is compacted
		return
	}
	answer, entries := promiseEntries(s, p)
	t := sendDurable(s, m.From, MsgPromise, answer, MutantPromiseEarly)
	t.Entries = entries
}

// sendDurable sends an answer when what it reports is durable. early is the mutant that does not wait.
func sendDurable(s *Paxos, to protocol.MemberID, t protocol.MessageType, p Part,
	early protocol.Mutant) *protocol.Message {
	if s.cfg.Mutant == early {
		return s.send(to, t, p)
	}
	return s.release(to, t, p)
}

// promiseEntries lists the decided entries and votes of this member from a slot on, as many as fit into one
// message.
func promiseEntries(s *Paxos, p Part) (answer Part, entries []protocol.Entry) {
	answer = Part{Ballot: p.Ballot, Slot: p.Slot, Hint: max(s.furthest(), p.Slot-1), Lacking: s.bodies.Missing}
	last := s.log.Last()
	if p.Slot <= last {
		entries = s.log.Run(p.Slot-1, s.cfg.MaxFrameBytes, mostBallots)
		if through := entries[len(entries)-1].Index; through < last {
			answer.Hint, answer.More = through, true
		}
	}
	bytes := 0
	for i := range entries {
		bytes += entries[i].Bytes()
	}
	if s.cfg.Mutant == MutantPromiseUndecided {
		entries = nil
	}
	for i := max(last+1, p.Slot); !answer.More && i <= s.acc.Top && s.cfg.Mutant != MutantPromiseForgets; i++ {
		v, ok := s.acc.Votes[i]
		if !ok {
			continue
		}
		if bytes += v.Entry.Bytes(); len(entries) > 0 && (bytes > s.cfg.MaxFrameBytes || len(answer.Ballots) == mostBallots) {
			answer.Hint, answer.More = i-1, true
			break
		}
		entries, answer.Ballots = append(entries, v.Entry), append(answer.Ballots, v.Ballot)
	}
	return answer, entries
}

// onPromise adds what an acceptor has, and asks for the rest.
func onPromise(s *Paxos, m *protocol.Message, p Part) {
	if s.prop.Phase != paxos.Preparing || p.Ballot != s.ballot || !addPromise(s, m, p) || s.prop.Phase != paxos.Preparing {
		return
	}
	a := s.prop.Request(m.From, 0)
	if !a.Report(p.Slot, p.Hint, p.More && s.cfg.Mutant != MutantPromiseFirstPart) {
		return
	}
	a.Decided, a.MissingBodies = m.Commit, p.Lacking
	s.resetElectionTimer()
	if !a.Done {
		sendProgress(s)
		s.prop.Request(m.From, s.log.Last())
		s.sendPrepare(a)
	}
	if peer := s.lead.peer(m.From); peer != nil {
		peer.MarkHeard(s.now)
		peer.RecordPromise(a, s.log.Last())
	}
	s.tally()
}

// sendProgress tells the other voters that phase 1 is in progress while promises arrive in parts, so that no other
// member stands for election.
func sendProgress(s *Paxos) {
	if s.role != protocol.Candidate || s.now < s.lead.heartbeatAt {
		return
	}
	s.lead.heartbeatAt = s.now + s.cfg.Heartbeat
	for _, id := range s.conf.Voters() {
		if id != s.cfg.Self {
			s.send(id, MsgHeartbeat, Part{Ballot: s.ballot, More: true})
		}
	}
}

// addPromise adds the entries of a promise. It reports whether all of them are usable.
func addPromise(s *Paxos, m *protocol.Message, p Part) bool {
	undecided := 0
	for i := range m.Entries {
		e := &m.Entries[i]
		if e.Index <= m.Commit {
			continue
		}
		if undecided++; undecided > len(p.Ballots) || !s.acc.Whole(e) || !slots.Readable(e) {
			return false
		}
	}
	at := 0
	for i := range m.Entries {
		e := m.Entries[i]
		if e.Index <= m.Commit {
			if !learnFrom(s, m.From, &e) {
				return false
			}
			continue
		}
		if s.cfg.Mutant != MutantOwnValue {
			s.prop.AddVote(paxos.Vote{Ballot: p.Ballots[at], Entry: e}, s.cfg.Mutant == MutantAnyFound)
		}
		at++
	}
	return true
}

// tally ends phase 1 if a quorum has promised. This member's own votes count too.
func (s *Paxos) tally() {
	self := s.cfg.Self
	if s.disk.Done < s.hard.state {
		self = 0
	}
	if !s.prop.Promised(s.preparers(), self) {
		return
	}
	for i := s.log.Last() + 1; i <= s.acc.Top; i++ {
		if v, ok := s.acc.Votes[i]; ok && s.cfg.Mutant != MutantOwnValue {
			s.prop.AddVote(v, s.cfg.Mutant == MutantAnyFound)
		}
	}
	asked := s.prop.Requests
	s.prop.BecomeReady()
	if s.role != protocol.Leader {
		s.becomeLeader(asked)
	}
	s.fill()
	s.advance()
}
