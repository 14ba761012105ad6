package slotpaxos

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// Paxos is one instance on one member. See protocol.Core for how to use it.
type Paxos struct {
	// cfg are the settings under the profile of conf, and tuning derives them. tunedAt is when they last changed.
	cfg     protocol.Settings
	tuning  slots.Tuning
	tunedAt time.Duration

	// now and out belong to the current step. inbox are messages of this member to itself.
	now   time.Duration
	out   *protocol.Effects
	inbox []*protocol.Message

	started bool
	chance  slots.Chance

	log  log
	disk disk
	// conf is active in the slot after the log's last. leaving are the members of the previous one, while the log ends
	// with conf.
	conf    protocol.Config
	leaving []protocol.MemberID
	// committed is the last index of Effects.Commit; equal to settled() between steps.
	committed protocol.Index

	// cell is about the slot after the log's last; it is empty if nothing was promised there.
	cell   cell
	bodies slots.Bodies
	// ballot is the highest that this member knows; never falls. A ballot of its own is durable
	// before it is used.
	ballot Ballot

	role   protocol.Role
	leader protocol.MemberID // the proposer, as far as is known; 0: none
	// heardAt is when a message of the leader last arrived, standAt when this member stands for election.
	heardAt, standAt time.Duration

	lead  leading
	try   try
	pull  pull
	reads reads
	held  held
	// streaming are the members that are being sent a snapshot from here.
	streaming map[protocol.MemberID]bool
	// stopped: this member accepted more than it has, or has decided another value than another member. It handles no
	// further input.
	stopped bool
}

// New starts an instance from what its disk holds. It returns a [*protocol.SettingsError], a
// [*protocol.ProfileError], a [*protocol.SectionError] or a [*protocol.CorruptError].
func New(cfg protocol.Settings, rec protocol.Recovered) (*Paxos, error) {
	tuning, cfg, err := slots.NewTuning("slotpaxos", setting.Table{}, cfg, Mutants[:])
	if err != nil {
		return nil, err
	}
	var chain Chain
	if err := rec.Base.Restore(&chain); err != nil {
		return nil, err
	}
	had, err := slots.Recover(&rec, cfg.CacheBytes, chain.Apply)
	if err != nil {
		return nil, err
	}
	s := &Paxos{
		cfg: cfg, tuning: tuning, chance: slots.Chance(cfg.Self), ballot: Ballot(rec.State.Term),
		log: log{had.Log, chain}, conf: had.Config, bodies: had.Bodies, committed: rec.Base.Index,
		streaming: map[protocol.MemberID]bool{},
	}
	if _, err := s.tuning.Follow(&s.cfg, &s.conf.Profile); err != nil {
		return nil, err
	}
	if err := s.loadCells(rec.Cells); err != nil {
		return nil, err
	}
	s.disk.Durable.Last, s.disk.commit = s.log.Last(), rec.State.Commit
	return s, nil
}

// Step is protocol.Core's.
func (s *Paxos) Step(now time.Duration, in protocol.Input, out *protocol.Effects) {
	if s.stopped {
		return
	}
	s.now, s.out = now, out
	s.disk.Begin()
	if !s.started {
		s.started = true
		s.resetElectionTimer()
	}
	role, ballot, leader, conf := s.role, s.ballot, s.leader, s.log.ConfigAt
	s.handle(in)
	for len(s.inbox) > 0 {
		m := s.inbox[0]
		s.inbox = s.inbox[1:]
		s.receive(m)
	}
	s.runTimers()
	s.serveReads()
	s.emitCommitted()
	s.disk.End(slots.Extent{Last: s.log.Last()}, now)
	s.log.Lighten(s.disk.Durable.Last, s.cfg.CacheBytes)
	if role != s.role || ballot != s.ballot || leader != s.leader || conf != s.log.ConfigAt {
		out.Changed = true
	}
	out.WakeAt = s.wakeAt()
	s.out = nil
}

func (s *Paxos) handle(in protocol.Input) {
	switch in := in.(type) {
	case *protocol.Message:
		if in.Instance == s.cfg.Instance && in.To == s.cfg.Self && in.From != s.cfg.Self {
			s.receive(in)
		}
	case protocol.Tick:
		s.onTick(in.Random)
	case protocol.Wake: // timers follow every input
	case protocol.Propose:
		s.propose(&in)
	case protocol.ProposeChange:
		s.proposeChange(in)
	case protocol.Read:
		s.read(in.Context)
	case protocol.Persisted:
		s.persisted(in.Seq)
	case protocol.Compact:
		s.log.Compact(min(in.Index, s.committed))
	case protocol.SnapshotReceived:
		s.snapshotReceived(in)
	case protocol.SnapshotSent:
		delete(s.streaming, in.To)
	case protocol.Unsendable:
		s.sendSnapshot(in.Member)
	case protocol.Transfer:
		s.transfer(in)
	case protocol.Bodies: // they account for all entries but perhaps a configuration at the end
		s.bodies = slots.BodiesOf(in)
	}
	// Instances of a merged log have inputs of their own. There are none here.
}

var handlers = map[protocol.MessageType]func(s *Paxos, m *protocol.Message, p Part){
	MsgPrepare: onPrepare, MsgPromise: onPromise, MsgAccept: onAccept, MsgAccepted: onAccepted,
	MsgRefused: onRefused, MsgDecided: onDecided, MsgAsk: onAsk, MsgTell: onTell,
	MsgHeartbeat: onHeartbeat, MsgAlive: onAlive, MsgPropose: onPropose, MsgProposeRefused: onProposeRefused,
	MsgRead: onRead, MsgReadAnswer: onReadAnswer, MsgLead: onLead, MsgHeld: onHeld,
}

func (s *Paxos) receive(m *protocol.Message) {
	p := partOf(m)
	if m.Type == MsgPrepare && s.ignoresCandidate(m, p) {
		s.votes(m, p.Slot) // it may be answered with a decision
		return
	}
	s.observeBallot(Ballot(m.Term), m.From)
	if h := handlers[m.Type]; h != nil {
		h(s, m, p)
	}
	if m.Commit > s.log.Last() {
		s.ask(m.From)
	}
}

// send sends a message now. A message to this member itself is received in the same step.
func (s *Paxos) send(to protocol.MemberID, t protocol.MessageType, p Part) *protocol.Message {
	m := protocol.WithPart(protocol.Message{
		Type: t, Instance: s.cfg.Instance, From: s.cfg.Self, To: to,
		Term: protocol.Term(s.ballot), Commit: s.log.Last(),
	}, p)
	if to == s.cfg.Self {
		s.inbox = append(s.inbox, m)
	} else {
		s.out.Send = append(s.out.Send, m)
	}
	return m
}

// release sends a message when everything written so far is durable.
func (s *Paxos) release(to protocol.MemberID, t protocol.MessageType, p Part) *protocol.Message {
	m := s.send(to, t, p)
	if to == s.cfg.Self {
		s.inbox = s.inbox[:len(s.inbox)-1]
		s.disk.keep(m, &s.inbox)
		return m
	}
	s.out.Send = s.out.Send[:len(s.out.Send)-1]
	s.out.Seq = s.disk.Touch()
	s.out.Release = append(s.out.Release, m)
	return m
}

// refuse refuses a request if its sender waits for an answer.
func (s *Paxos) refuse(context uint64, reason protocol.Reason) {
	if context != 0 {
		s.out.Reject = append(s.out.Reject, protocol.Rejection{Context: context, Reason: reason, Leader: s.leader})
	}
}

// onTick adds fresh randomness to the generator.
func (s *Paxos) onTick(random uint64) {
	s.chance.Mix(random)
	if s.reads.round == 0 { // the first tick: the deadlines so far were not random
		s.reads.round = s.chance.Draw() | 1
		if s.role == protocol.Follower {
			s.resetElectionTimer()
		}
	}
}

// runTimers does what is due. wakeAt is when it runs next.
func (s *Paxos) runTimers() {
	if s.role == protocol.Leader {
		s.runLeaderTimers()
	} else if s.now >= s.standAt || s.alone() {
		s.standForElection(false)
	}
	s.runTryTimers()
	s.runReadTimers()
	if s.settled() > s.disk.commit && s.now >= s.disk.noted+s.cfg.Heartbeat {
		s.writeState()
	}
}

func (s *Paxos) wakeAt() time.Duration {
	at := s.standAt
	if s.role == protocol.Leader {
		at = s.lead.heartbeatAt
	}
	if s.try.phase == preparing || s.try.phase == accepting {
		at = min(at, s.try.again)
	}
	if len(s.reads.asked) > 0 {
		at = min(at, s.reads.again)
	}
	return at
}

// settled is the last index that may be handed over as committed.
func (s *Paxos) settled() protocol.Index {
	if s.cfg.Mutant == MutantSettleAtOnce {
		return s.log.Last()
	}
	return s.log.Settled()
}

// emitCommitted hands over the entries that are newly settled.
func (s *Paxos) emitCommitted() {
	for ; s.committed < s.settled(); s.committed++ {
		s.out.Commit = append(s.out.Commit, s.log.At(s.committed+1))
	}
}

// Status is protocol.Core's.
func (s *Paxos) Status() protocol.Status {
	st := protocol.Status{
		Instance: s.cfg.Instance, Self: s.cfg.Self, Role: s.role, Term: protocol.Term(s.ballot), Leader: s.leader,
		First: s.log.Base + 1, Last: s.log.Last(), Durable: s.disk.Durable.Last, Commit: s.committed, Config: s.conf.Clone(),
		Routes:  []protocol.Route{{To: s.leader, Term: protocol.Term(s.ballot)}},
		Removed: s.removed() && s.settled() == s.log.Last(), Placement: string(s.cfg.Placement),
		Lacking: s.bodies.Missing, ConfigIndex: s.log.ConfigAt, Undecided: s.settled() < s.log.Last(),
	}
	if s.role == protocol.Leader {
		st.K = 1
	}
	st.Proposed = s.proposed()
	for _, p := range s.lead.peers {
		st.Peers = append(st.Peers, protocol.PeerStatus{
			ID: p.id, Match: p.last, Next: p.last + 1, Needs: p.last, Active: s.active(p), Snapshot: s.streaming[p.id],
			Lacking: p.lacking,
		})
	}
	return st
}
