package multipaxos

import (
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// onAccept is phase 2 at an acceptor. Entries up to the message's commit index are decided.
func onAccept(s *Paxos, m *protocol.Message, p Part) {
	if proposerOf(m, p) == s.cfg.Self {
		return
	}
	if p.Ballot < s.acc.Promised {
		refuseAccept(s, m, p)
		return
	}
	for i := range m.Entries {
		e := &m.Entries[i]
		if i > 0 && e.Index != m.Entries[i-1].Index+1 || !slots.Readable(e) || e.Index > m.Commit && !s.acc.Whole(e) {
			return // no leader sends this
		}
	}
	promiseTo(s, proposerOf(m, p), p.Ballot)
	follow(s, proposerOf(m, p), p.Ballot)
	for i := range m.Entries {
		switch e := &m.Entries[i]; {
		case e.Index <= s.log.Last():
			if e.Index <= m.Commit && diverges(s, proposerOf(m, p), e) {
				return
			}
		case e.Index <= m.Commit:
			if s.cfg.Mutant != MutantCommitLate {
				learnCommit(s, e.Index-1) // a slow member accepted the slots before it, and learns only now that they are decided
			}
			learnNext(s, e)
		case e.Index <= s.log.Last()+mostAhead:
			acceptEntry(s, e)
		}
	}
	learnCommit(s, m.Commit)
	switch {
	case m.Type == MsgRelay:
		forward(s, m, p)
	case m.Context != 0:
		acknowledge(s, m, p)
	}
}

// refuseAccept answers that a higher ballot was promised. The mutant accepts nevertheless.
func refuseAccept(s *Paxos, m *protocol.Message, p Part) {
	if s.cfg.Mutant != MutantAcceptBelowPromise || len(m.Entries) == 0 {
		s.send(proposerOf(m, p), MsgRefused, Part{Ballot: s.acc.Promised})
		return
	}
	for _, e := range m.Entries {
		if e.Index > s.log.Last() && s.acc.Whole(&e) {
			v := paxos.Vote{Ballot: p.Ballot, Entry: e}
			s.record(protocol.Record{Kind: protocol.RecordCell, Cell: v.Cell(), Entry: s.acc.Unstored(e)})
			s.acc.Votes[e.Index], s.acc.Top = v, max(s.acc.Top, e.Index)
		}
	}
	s.release(m.From, MsgAccepted, Part{Ballot: p.Ballot, Slot: m.Entries[len(m.Entries)-1].Index}).Context = m.Context
}

// mostAhead limits how far after the last decided slot anything is accepted. It is far more than is proposed ahead
// of decisions.
const mostAhead = 1 << 20

// acceptEntry accepts an entry unless this member has already accepted it.
func acceptEntry(s *Paxos, e *protocol.Entry) {
	if v, ok := s.acc.Votes[e.Index]; !ok || v.Ballot != s.acc.Promised {
		s.vote(*e)
	}
}

// acknowledge sends how far this member has accepted, when that is durable. Frames of one step are acknowledged
// together.
func acknowledge(s *Paxos, m *protocol.Message, p Part) {
	said := Part{Ballot: p.Ballot, Slot: s.acc.Reach, Lacking: s.bodies.Missing, Promised: true}
	if n := len(s.out.Release); n > 0 && s.cfg.Mutant != MutantAcceptedEarly {
		a := s.out.Release[n-1]
		if was, ok := a.Part.(*Part); ok && a.Type == MsgAccepted && a.To == m.From && was.Ballot == p.Ballot {
			s.out.Seq = s.disk.Touch()
			*was, a.Context = said, max(a.Context, m.Context)
			return
		}
	}
	sendDurable(s, m.From, MsgAccepted, said, MutantAcceptedEarly).Context = m.Context
}

// learnCommit learns that the slots up to an index are decided, from the leader with the promised ballot, as far as
// this member has accepted there what that leader proposed.
func learnCommit(s *Paxos, commit protocol.Index) {
	for next := s.log.Last() + 1; next <= commit; next++ {
		v, ok := s.acc.Votes[next]
		if !ok || v.Ballot != s.acc.Promised && s.cfg.Mutant != MutantLearnOlderBallot {
			return
		}
		s.appendDecided(v.Entry)
	}
}

// learnNext appends an entry that another member reports as decided, if it is in the slot after the last.
func learnNext(s *Paxos, e *protocol.Entry) {
	if e.Index == s.log.Last()+1 && slots.Readable(e) && e.Applicable() {
		s.appendDecided(*e)
	}
}

// learnFrom is learnNext for the entries of a Tell or a Promise. It reports false if this member stops, because
// another value is decided here.
func learnFrom(s *Paxos, from protocol.MemberID, e *protocol.Entry) bool {
	if diverges(s, from, e) {
		return false
	}
	learnNext(s, e)
	return true
}

// diverges reports whether another member has decided another value than this one. Then this member stops.
func diverges(s *Paxos, from protocol.MemberID, e *protocol.Entry) bool {
	err := s.log.Diverges(s.cfg.Instance, from, e)
	if err != nil {
		s.out.Diverged, s.stopped = err, true
	}
	return err != nil
}

// appendDecided appends the entry that is decided in the slot after the last.
func (s *Paxos) appendDecided(e protocol.Entry) {
	s.superseded(&e)
	s.leaving = nil
	before := s.conf
	if e.Kind == protocol.EntryConfig {
		s.leaving = s.conf.All()
		s.conf, _ = protocol.DecodeConfig(e.Payload) // it was checked when it was accepted
		s.tune(&s.conf)
	}
	if e.BodySize > 0 && s.acc.Holds(&e) {
		e.Form = protocol.FormWhole // also if the sender could not read the body
	}
	// After a crash a vote under an older ballot would not show that this is what was decided.
	s.hard.hurry = s.hard.hurry || !s.acc.HoldsUnderPromise(&e) || e.Kind == protocol.EntryConfig
	if s.role == protocol.Leader && e.Index <= s.prop.End {
		s.lead.open -= e.Bytes()
	}
	s.log.Append(e)
	if s.seals.Note(&e); e.Kind == protocol.EntrySeal && s.role == protocol.Leader && s.suspended() {
		s.failReads(protocol.ReasonSealing)
	}
	s.bodies.Learned(&e)
	s.acc.Extend(e.Index)
	s.prop.Forget(e.Index)
	if e.Kind == protocol.EntryConfig {
		s.configChanged(&before)
	} else if e.Index == s.log.ConfigAt+1 {
		s.configSettled()
	}
}

// superseded makes a leader step down that learns that another value was decided in a slot in which it proposed.
// Other members may have accepted its value, and would learn it as decided from the leader's next commit index.
func (s *Paxos) superseded(e *protocol.Entry) {
	if v, ok := s.acc.Votes[e.Index]; ok && s.role == protocol.Leader && v.Ballot == s.ballot && !paxos.Same(&v.Entry, e) {
		s.stepDown()
	}
}

func onAsk(s *Paxos, m *protocol.Message, _ Part) { sendDecided(s, m.From, m.Commit) }

// sendDecided sends a member decided entries after an index, as many as fit into a message, or a snapshot.
func sendDecided(s *Paxos, to protocol.MemberID, after protocol.Index) {
	switch {
	case after < s.log.Base:
		s.sendSnapshot(to)
	case after < s.log.Last():
		s.send(to, MsgTell, Part{}).Entries = s.log.Run(after, s.cfg.MaxFrameBytes, s.cfg.MaxFrameEntries)
	}
}

// onTell appends decided entries, and asks for more as long as there are any.
func onTell(s *Paxos, m *protocol.Message, _ Part) {
	before := s.log.Last()
	for i := range m.Entries {
		if !learnFrom(s, m.From, &m.Entries[i]) {
			return
		}
	}
	if s.log.Last() > before && s.log.Last() < m.Commit {
		s.send(m.From, MsgAsk, Part{})
	}
}

// sendSnapshot requests a snapshot for a member unless one is being sent.
func (s *Paxos) sendSnapshot(to protocol.MemberID) {
	if to != s.cfg.Self && !s.streaming[to] {
		s.streaming[to] = true
		s.out.Snapshots = append(s.out.Snapshots, to)
	}
}

// snapshotSent continues after a snapshot. If the member did not get it, the next heartbeat finds that out.
func snapshotSent(s *Paxos, in protocol.SnapshotSent) {
	delete(s.streaming, in.To)
	p := s.lead.peer(in.To)
	if p == nil {
		return
	}
	p.Restart(max(p.Next, in.Index+1))
	p.Lost, p.LostAt = true, paxos.Stamp(s.now)
	if in.Index == 0 && cannotBring(s) {
		yieldLeadership(s)
	}
}

// cannotBring reports whether nothing can be decided unless snapshots are sent: no quorum has everything that this
// leader's log begins after. If snapshots cannot be sent either, because the state here is damaged, the others
// recover without this member: they accepted what was decided.
func cannotBring(s *Paxos) bool {
	return s.role == protocol.Leader && !s.closed() && protocol.Index(s.acceptors().Agreed(s.accepted)) < s.log.Base
}

// yieldLeadership asks an active voter to stand for election, and steps down.
func yieldLeadership(s *Paxos) {
	var others []protocol.MemberID
	for _, p := range s.lead.peers {
		if s.votes(p.ID) && s.active(p) {
			others = append(others, p.ID)
		}
	}
	if n := uint64(len(others)); n > 0 {
		s.send(others[s.chance.Draw()%n], MsgLead, Part{Ballot: s.ballot})
	}
	s.stepDown()
}

// snapshotReceived installs a snapshot that is ahead of what is known here to be decided. Votes after it are kept.
func snapshotReceived(s *Paxos, in protocol.SnapshotReceived) {
	if in.Base.Index <= s.log.Last() || s.closed() {
		return // a closed core has all that was decided before the seal
	}
	base := in.Base
	base.Config = base.Config.Clone()
	if !s.tune(&base.Config) {
		return
	}
	s.emitCommitted()
	if s.role == protocol.Leader {
		s.stepDown() // another member leads, or did
	}
	s.disk.Install()
	s.record(protocol.Record{Kind: protocol.RecordBase, Base: &base})
	for i := s.hard.logged + 1; i <= min(base.Index, s.acc.Top); i++ {
		if _, voted := s.acc.Votes[i]; voted {
			s.drop(i)
			delete(s.acc.Votes, i)
		}
	}
	has := slots.After(&base)
	s.log, s.conf, s.bodies = has.Log, has.Config, has.Bodies
	s.hard.logged, s.hard.hurry = base.Index, false
	s.committed, s.leaving = base.Index, nil
	s.seals.Install()
	s.acc.Extend(base.Index)
	s.prop.Forget(base.Index)
	s.writeState()
	s.out.Install = &base
	s.configChanged(nil)
	if s.prop.Phase == paxos.Preparing {
		s.sendPrepares()
	}
}
