package multipaxos

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/setting"
)

// Paxos is one instance of multi-Paxos on one member. See protocol.Core for how to use it.
type Paxos struct {
	// cfg are the settings under the profile of conf, and tuning derives them.
	cfg    protocol.Settings
	tuning slots.Tuning
	// quorums are those of the two phases. They fit the voters of every active configuration.
	quorums quorum.System
	// relayGroups is the number of groups into which this member divides the others; 0: it sends to all directly.
	relayGroups int

	// now and out belong to the current step.
	now time.Duration
	out *protocol.Effects

	started bool
	chance  slots.Chance
	// incarnation is random, drawn at the first tick; 0 before. It marks the questions of this incarnation of the
	// member.
	incarnation uint64

	log  slots.Log
	disk slots.Disk
	hard hard
	// conf is active in the slots after the log's last. leaving are the members of the previous one, while the log
	// ends with conf.
	conf    protocol.Config
	leaving []protocol.MemberID
	// committed is the last index of Effects.Commit; equal to settled() between steps.
	committed protocol.Index

	acc    paxos.Acceptor
	bodies slots.Bodies
	// seals are the EntrySeals that are decided.
	seals protocol.Seals
	// ballot is the promised ballot, perhaps this member's own, which is durable before it is used.
	ballot paxos.Ballot

	role     protocol.Role
	leader   protocol.MemberID // the proposer, as far as is known; 0: none
	election election

	prop paxos.Proposer
	lead leading
	// gather is what this member gathers as a relay.
	gather relay.Gathering
	// streaming are the members that are being sent a snapshot from here.
	streaming map[protocol.MemberID]bool
	// stopped: this member accepted or promised more than it has, or has decided another value than another member.
	// It handles no further input.
	stopped bool
}

// New starts an instance from what its disk holds. It returns a [*protocol.SettingsError], a
// [*protocol.ProfileError] or a [*protocol.CorruptError].
func New(cfg protocol.Settings, rec protocol.Recovered) (*Paxos, error) {
	return NewWithin(Settings, cfg, rec)
}

// NewWithin is New for a protocol that consists of this one and has more settings.
func NewWithin(own setting.Table, cfg protocol.Settings, rec protocol.Recovered) (*Paxos, error) {
	tuning, cfg, err := slots.NewTuning("multi-paxos", own, cfg, slices.Concat(Mutants[:], scripted[:]))
	if err != nil {
		return nil, err
	}
	var seals protocol.Seals
	had, err := slots.Recover(&rec, cfg.CacheBytes, seals.Note)
	if err != nil {
		return nil, err
	}
	s := &Paxos{
		cfg: cfg, tuning: tuning, chance: slots.Chance(cfg.Self), log: had.Log, conf: had.Config, bodies: had.Bodies,
		seals: seals, committed: rec.Base.Index, streaming: map[protocol.MemberID]bool{},
	}
	if cfg.Mutant != MutantProfileForgotten {
		if _, err := s.tuning.Follow(&s.cfg, &s.conf.Profile); err != nil {
			return nil, err
		}
	}
	s.setOwn()
	if err := slots.Fit(s.quorums, &s.conf); err != nil {
		return nil, err
	}
	last := s.log.Last()
	s.acc = paxos.NewAcceptor(paxos.All, last)
	s.acc.Older = cfg.Mutant == MutantCountOlderBallot
	stale, err := s.acc.Load(rec.Cells, last)
	if err != nil {
		return nil, err
	}
	s.acc.Promise(max(paxos.Ballot(rec.State.Term), s.acc.Promised), last)
	s.ballot = s.acc.Promised
	s.prop.Seg = paxos.All
	s.hard = hard{commit: rec.State.Commit, logged: last, stale: stale}
	s.disk.Durable = slots.Extent{Last: last, Under: s.acc.Promised, Reach: s.acc.Reach}
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
	sent, released := len(out.Send), len(out.Release)
	role, ballot, leader, conf, seal := s.role, s.ballot, s.leader, s.log.ConfigAt, s.sealState()
	s.handle(in)
	s.runTimers()
	s.emitCommitted()
	s.flush()
	s.bundle(sent, released)
	s.disk.End(slots.Extent{Last: s.hard.logged, Reach: s.acc.Reach, Under: s.acc.Promised}, now)
	s.log.Lighten(s.disk.Durable.Last, s.cfg.CacheBytes)
	if role != s.role || ballot != s.ballot || leader != s.leader || conf != s.log.ConfigAt || seal != s.sealState() {
		out.Changed = true
	}
	s.out = nil
}

func (s *Paxos) handle(in protocol.Input) {
	switch in := in.(type) {
	case *protocol.Message:
		receive(s, in)
	case protocol.Tick:
		onTick(s, in.Random)
	case protocol.Propose:
		if in.Under == nil || s.role == protocol.Leader && *in.Under == s.log.ConfigAt && !s.changing() {
			onProposeInput(s, in.Entries)
		}
	case protocol.ProposeChange:
		s.proposeChange(in)
	case protocol.Read:
		onReadInput(s, in.Context)
	case protocol.Persisted:
		persisted(s, in.Seq)
	case protocol.Compact:
		s.log.Compact(min(in.Index, s.committed, s.hard.logged))
	case protocol.SnapshotReceived:
		snapshotReceived(s, in)
	case protocol.SnapshotSent:
		snapshotSent(s, in)
	case protocol.Unreachable:
		unreachable(s, in.Member)
	case protocol.Unsendable:
		unsendable(s, in)
	case protocol.Sealed:
		s.sealed(in)
	case protocol.Transfer:
		transfer(s, in)
	case protocol.Stand:
		if s.ballot == 0 && s.leader == 0 && s.role == protocol.Follower {
			s.elect(false)
		}
	case protocol.Bodies: // they account for all entries but perhaps a configuration at the end
		s.bodies = slots.BodiesOf(in)
	}
	// Instances of a merged log have more inputs, which mean nothing here.
}

var handlers = map[protocol.MessageType]func(s *Paxos, m *protocol.Message, p Part){
	MsgProbe: onProbe, MsgProbed: onProbed, MsgPrepare: onPrepare, MsgPromise: onPromise, MsgRefused: onRefused,
	MsgAccept: onAccept, MsgAccepted: onAccepted, MsgHeartbeat: onHeartbeat, MsgAlive: onAlive,
	MsgPropose: onPropose, MsgProposeRefused: onProposeRefused, MsgRead: onRead, MsgReadAnswer: onReadAnswer,
	MsgLead: onLead, MsgAsk: onAsk, MsgTell: onTell,
	MsgRelay: onAccept, MsgRelayed: onAccept, MsgGathered: onGathered,
}

func receive(s *Paxos, m *protocol.Message) {
	if m.Instance != s.cfg.Instance || m.To != s.cfg.Self || m.From == s.cfg.Self {
		return
	}
	p := partOf(m)
	if s.closed() {
		receiveClosed(s, m, p)
		return
	}
	if m.Type == MsgPrepare && s.ignoresCandidate(m.From, p.Force) {
		return
	}
	if h := handlers[m.Type]; h != nil {
		h(s, m, p)
	}
}

// make returns a message with its head.
func (s *Paxos) make(to protocol.MemberID, t protocol.MessageType, p Part) *protocol.Message {
	return protocol.WithPart(protocol.Message{
		Type: t, Instance: s.cfg.Instance, From: s.cfg.Self, To: to,
		Term: protocol.Term(s.ballot), Commit: s.log.Last(),
	}, p)
}

// send sends a message now.
func (s *Paxos) send(to protocol.MemberID, t protocol.MessageType, p Part) *protocol.Message {
	m := s.make(to, t, p)
	s.out.Send = append(s.out.Send, m)
	return m
}

// release sends a message when everything written so far is durable.
func (s *Paxos) release(to protocol.MemberID, t protocol.MessageType, p Part) *protocol.Message {
	m := s.make(to, t, p)
	s.out.Seq = s.disk.Touch()
	s.out.Release = append(s.out.Release, m)
	return m
}

// refuse refuses a question if its asker waits for an answer.
func (s *Paxos) refuse(context uint64, reason protocol.Reason) {
	if context != 0 {
		s.out.Reject = append(s.out.Reject, protocol.Rejection{Context: context, Reason: reason, Leader: s.leader})
	}
}

// onTick adds fresh randomness to the generator.
func onTick(s *Paxos, random uint64) {
	s.chance.Mix(random)
	s.chance.Draw()
	if s.incarnation == 0 {
		s.incarnation = s.chance.Draw() | 1
		s.resetElectionTimer() // the first deadline was not random
	}
}

// runTimers does what is due.
func (s *Paxos) runTimers() {
	if s.incarnation == 0 {
		return
	}
	switch {
	case s.closed():
		s.runClosedTimers()
	case s.role == protocol.Leader:
		s.runLeaderTimers()
	case s.now >= s.election.standAt || s.alone():
		s.probe()
	}
	s.sendPrepares()
	s.reportGathered()
	if s.settled() > s.hard.commit && s.now >= s.hard.savedAt+s.cfg.Heartbeat {
		s.writeState()
	}
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

// The quorums of the two phases under the active configuration. Every quorum of phase 1 intersects every quorum of
// phase 2.

// preparers are the quorums of phase 1.
func (s *Paxos) preparers() quorum.Set {
	if s.cfg.Mutant == MutantElectTooFew {
		return s.acceptors()
	}
	return s.quorums.Elects(quorum.Of(&s.conf))
}

// acceptors are the quorums of phase 2.
func (s *Paxos) acceptors() quorum.Set { return s.quorums.Decides(quorum.Of(&s.conf)) }

// Voted returns the term of the command that this member has accepted in a slot that is not decided here; false: it has
// accepted none.
func (s *Paxos) Voted(i protocol.Index) (protocol.Term, bool) {
	v, ok := s.acc.Votes[i]
	return v.Entry.Term, ok
}

// Leads is the ballot under which this member leads; 0: it does not.
func (s *Paxos) Leads() paxos.Ballot {
	if s.role != protocol.Leader {
		return 0
	}
	return s.ballot
}

// Status is protocol.Core's.
func (s *Paxos) Status() protocol.Status {
	st := protocol.Status{
		Instance: s.cfg.Instance, Self: s.cfg.Self, Role: s.role, Term: protocol.Term(s.ballot),
		Ballot: true, Leader: s.leader,
		First: s.log.Base + 1, Last: s.furthest(), Durable: s.disk.Durable.Last, Commit: s.committed, Config: s.conf.Clone(),
		Removed: s.removed() && s.settled() == s.log.Last(), Placement: string(s.cfg.Placement),
		Unwritten: s.committed - min(s.committed, s.disk.Durable.Last),
		Lacking:   s.bodies.Missing, Proposed: proposedConfig(s), Undecided: s.settled() < s.log.Last(),
		ConfigIndex: s.log.ConfigAt, Sealed: s.sealState(),
	}
	if s.role == protocol.Leader {
		st.K = 1
	}
	for _, p := range s.lead.peers {
		st.Peers = append(st.Peers, protocol.PeerStatus{
			ID: p.ID, Match: p.Match, Next: p.Next, Needs: p.Needs(), Active: s.active(p), Snapshot: s.streaming[p.ID],
			InflightBytes: p.Bytes, Lacking: p.MissingBodies,
		})
	}
	return st
}
