package epaxos

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// EPaxos is one instance on one member. See protocol.Core for how to use it. Each member's log has what it has
// executed, in its own order: two members may have commands that do not interfere in opposite order.
type EPaxos struct {
	cfg  protocol.Settings
	conf protocol.Config // the first one; it never changes
	size Size
	// peers are the other voters, sorted by id. self is this member's column; 0: it is not a voter.
	peers []*peer
	self  Column

	// now and out belong to the current step.
	now time.Duration
	out *protocol.Effects

	started bool
	chance  slots.Chance

	log   slots.Log
	marks []mark
	// wide has the counts of exactly those entries of the log that are wide. They are also in cells.
	wide wide
	// written is what the log has executed; equal to the graph's between steps.
	written Vector
	disk    disk
	// committed is the last index of Effects.Commit: the entries on the disk.
	committed protocol.Index

	replica *Replica
	graph   *Graph
	// attempts are this member's attempts, in the order of their beginning. recovering are those that began as
	// recoveries. Both lists may have some that have ended.
	attempts, recovering []*attempt
	attempt              map[ID]*attempt
	window               window
	// wants are undecided commands for which others wait here.
	wants map[ID]*want
	// ownBytes is the size of this member's own commands that it has not executed.
	ownBytes int

	// heartbeatAt is when the next heartbeat is due. scanAt is when to look for undecided commands.
	heartbeatAt, scanAt time.Duration
	more                bool // there is more work in the graph
	meet                meeting
	pull                pull
	reads               reads
	// target has the highest commands that others reported as executed.
	target    Vector
	streaming map[protocol.MemberID]bool
	// stopped: this member has used numbers that it does not know, or has decided another value than another member. It
	// handles no further input.
	stopped bool
}

// peer is the known state of another member.
type peer struct {
	id       protocol.MemberID
	column   Column
	heard    time.Duration
	answered bool
	// executed is what it has executed, as it last reported; before is the report before that.
	executed, before Vector
}

// New starts an instance from what its disk holds. It returns a [*protocol.SettingsError], a
// [*protocol.ProfileError], a [*protocol.SectionError] or a [*protocol.CorruptError].
func New(cfg protocol.Settings, rec protocol.Recovered) (*EPaxos, error) {
	cfg, err := slots.Settings("epaxos", cfg, Mutants[:], &rec)
	if err != nil {
		return nil, err
	}
	had, err := readDisk(&rec, cfg.Mutant)
	if err != nil {
		return nil, err
	}
	rec.Entries = had.entries
	kept, err := slots.Recover(&rec, cfg.CacheBytes, func(*protocol.Entry) {})
	if err != nil {
		return nil, err
	}
	s := &EPaxos{
		cfg: cfg, conf: kept.Config, chance: slots.Chance(cfg.Self), log: kept.Log, committed: kept.Log.Last(),
		attempt: map[ID]*attempt{}, window: window{size: firstWindow}, wants: map[ID]*want{},
		streaming: map[protocol.MemberID]bool{}, wide: had.wide,
	}
	s.committed = s.log.Base
	if s.join(); s.size.Members > MaxVoters {
		return nil, &protocol.SettingsError{Detail: fmt.Sprintf("epaxos knows at most %d voters", MaxVoters)}
	}
	s.marks, s.written = []mark{{s.log.Base, had.base.Clone()}}, had.base
	for i := range had.entries {
		s.written = s.wide.advance(s.written, &had.entries[i])
		if at := had.entries[i].Index; at%marksApart == 0 {
			s.marks = append(s.marks, mark{at, s.written.Clone()})
		}
	}
	if !s.written.Equal(had.executed.vector) {
		return nil, corrupt("log of commands", nil)
	}
	if cfg.Mutant == MutantForgetUsed {
		had.reserved = 0
	}
	s.begin(&had.executed, had.records, had.reserved)
	s.disk.Durable.Last = s.log.Last()
	if s.self != 0 {
		s.disk.used = s.replica.Window(s.self)
	}
	s.disk.step = had.step
	s.disk.gone, s.disk.classes = had.stale, map[uint16]Vector{}
	for _, class := range had.torn {
		s.disk.classes[class], s.disk.moved = s.replica.index.executed.classes[class], true
	}
	return s, nil
}

// join sets this member's place in the configuration.
func (s *EPaxos) join() {
	voters := s.conf.Voters()
	s.size = SizeOf(len(voters))
	for _, id := range voters {
		if c := Column(s.conf.Find(id).Slot) + 1; id == s.cfg.Self {
			s.self = c
		} else {
			s.peers = append(s.peers, &peer{id: id, column: c})
		}
	}
}

// begin continues after the executed commands, with the records of the others.
func (s *EPaxos) begin(x *Executed, records []*Record, reserved uint64) {
	s.replica, s.graph, s.ownBytes = NewReplica(s.self, x.vector, x.index, s.cfg.Mutant), NewGraph(x.vector), 0
	s.replica.reserved = reserved
	for _, rec := range records {
		rec.changed, rec.counted = false, 0
		s.replica.Restore(rec)
		if rec = s.replica.Record(rec.ID); rec == nil {
			continue
		}
		s.count(rec)
		if rec.Phase == Decided {
			s.graph.Decide(rec.ID, rec.Deps, rec.Noop)
		}
	}
	s.more = s.graph.Waiting() > 0
}

// Step is protocol.Core's.
func (s *EPaxos) Step(now time.Duration, in protocol.Input, out *protocol.Effects) {
	if s.stopped {
		return
	}
	s.now, s.out = now, out
	s.disk.Begin()
	leader := s.leader()
	s.handle(in)
	s.runTimers()
	s.execute()
	s.serveReads()
	s.write()
	s.disk.End(slots.Extent{Last: s.log.Last()}, now)
	s.emitCommitted()
	s.log.Lighten(s.disk.Durable.Last, s.cfg.CacheBytes)
	out.Changed = out.Changed || !s.started || leader != s.leader()
	s.started = true
	out.WakeAt = s.wakeAt()
	s.out = nil
}

func (s *EPaxos) handle(in protocol.Input) {
	switch in := in.(type) {
	case *protocol.Message:
		if p := s.peer(in.From); p != nil && in.Instance == s.cfg.Instance && in.To == s.cfg.Self && s.self != 0 {
			s.receive(p, in)
		}
	case protocol.Tick:
		s.chance.Mix(in.Random)
		s.reads.begin(&s.chance)
	case protocol.Propose:
		s.propose(&in)
	case protocol.ProposeChange:
		s.refuse(in.Context, protocol.ReasonFixed)
	case protocol.Transfer:
		s.refuse(in.Context, protocol.ReasonLeaderFollows)
	case protocol.Read:
		s.read(in.Context)
	case protocol.Persisted:
		s.disk.persisted(in.Seq)
	case protocol.Meet:
		s.meet.wanted, s.meet.since = true, s.now
	case protocol.Compact:
		s.compact(min(in.Index, s.committed))
	case protocol.SnapshotReceived:
		s.snapshotReceived(in)
	case protocol.SnapshotSent:
		delete(s.streaming, in.To)
	case protocol.Unsendable:
		s.sendSnapshot(in.Member)
	}
	// Timers follow every input, including a Wake. There are no bodies here, and no other instances.
}

var handlers = map[protocol.MessageType]func(s *EPaxos, from *peer, m *protocol.Message, p *Part){
	MsgPreAccept: onPreAccept, MsgPreAccepted: onPreAccepted, MsgAccept: onAccept, MsgAccepted: onAccepted,
	MsgRefused: onRefused, MsgDecided: onDecided, MsgRecover: onRecover, MsgPromise: onPromise,
	MsgValidate: onValidate, MsgValidated: onValidated, MsgWaiting: onWaiting,
	MsgHeartbeat: onHeartbeat, MsgAsk: onAsk, MsgTell: onTell, MsgRead: onRead, MsgReadAnswer: onReadAnswer,
}

func (s *EPaxos) receive(from *peer, m *protocol.Message) {
	p := slots.PartOf[Part](m)
	from.heard, from.answered = s.now, true
	if p.ID.Column != 0 && s.replica.Executed(p.ID) { // the sender is missing more than this command
		if m.Type == MsgRecover || m.Type == MsgAccept || m.Type == MsgValidate || m.Type == MsgPreAccept ||
			m.Type == MsgWaiting {
			s.sendExecuted(from)
		}
		return
	}
	if h := handlers[m.Type]; h != nil {
		h(s, from, m, &p)
	}
}

func (s *EPaxos) peer(id protocol.MemberID) *peer {
	at, found := slices.BinarySearchFunc(s.peers, id,
		func(p *peer, id protocol.MemberID) int { return cmp.Compare(p.id, id) })
	if !found {
		return nil
	}
	return s.peers[at]
}

func (s *EPaxos) peerAt(c Column) *peer {
	for _, p := range s.peers {
		if p.column == c {
			return p
		}
	}
	return nil
}

func (s *EPaxos) active(p *peer) bool { return p.answered && s.now < p.heard+s.cfg.ElectionTimeout }

// leader is a hint for clients: the first active member. The protocol does not use it. 0: too few members are active
// to decide anything.
func (s *EPaxos) leader() (first protocol.MemberID) {
	if s.self == 0 {
		return 0
	}
	first, heard := s.cfg.Self, 1
	for _, p := range s.peers {
		if s.active(p) {
			heard++
			first = min(first, p.id)
		}
	}
	if heard < s.size.Quorum() {
		return 0
	}
	return first
}

func (s *EPaxos) message(to *peer, t protocol.MessageType, p Part, cmd *Command) *protocol.Message {
	m := protocol.WithPart(protocol.Message{Type: t, Instance: s.cfg.Instance, From: s.cfg.Self, To: to.id}, p)
	if cmd != nil {
		m.Entries = []protocol.Entry{cmd.Entry}
	}
	return m
}

// send sends a message now, whose contents need not be durable.
func (s *EPaxos) send(to *peer, t protocol.MessageType, p Part) *protocol.Message {
	m := s.message(to, t, p, nil)
	s.out.Send = append(s.out.Send, m)
	return m
}

// release sends a message when everything written so far is durable.
func (s *EPaxos) release(to *peer, t protocol.MessageType, p Part, cmd *Command) {
	if m := s.message(to, t, p, cmd); s.early(t) {
		s.out.Send = append(s.out.Send, m)
	} else {
		s.out.Seq = s.disk.Touch()
		s.out.Release = append(s.out.Release, m)
	}
}

// early reports whether a mutant does not wait for durability.
func (s *EPaxos) early(t protocol.MessageType) bool {
	switch s.cfg.Mutant {
	case MutantAnswerEarly:
		return t == MsgPreAccepted || t == MsgAccepted || t == MsgPromise || t == MsgValidated
	case MutantTellEarly:
		return t == MsgDecided
	case MutantReuse:
		return t == MsgPreAccept
	}
	return false
}

func (s *EPaxos) releaseAll(t protocol.MessageType, p Part, cmd *Command) {
	for _, to := range s.peers {
		s.release(to, t, p, cmd)
	}
}

// refuse refuses a request if its sender waits for an answer.
func (s *EPaxos) refuse(context uint64, reason protocol.Reason) {
	if context != 0 {
		s.out.Reject = append(s.out.Reject, protocol.Rejection{Context: context, Reason: reason, Leader: s.leader()})
	}
}

// runTimers does what is due. wakeAt is when it runs next.
func (s *EPaxos) runTimers() {
	if s.self == 0 {
		return
	}
	if s.now >= s.heartbeatAt {
		s.heartbeatAt = s.now + s.cfg.Heartbeat
		s.replica.Prune()
		s.disk.before, s.disk.recent = s.disk.recent, 0
		for _, p := range s.peers {
			s.sendExecuted(p)
		}
	}
	if s.now >= s.scanAt {
		s.scanAt = s.now + s.cfg.Heartbeat/2
		s.runAttemptTimers()
		s.runWantTimers()
	}
	s.runMeetingTimers()
	s.runReadTimers()
}

func (s *EPaxos) wakeAt() time.Duration {
	if s.self == 0 {
		return 0
	}
	if s.more {
		return s.now
	}
	at := min(s.heartbeatAt, s.scanAt)
	if len(s.reads.asked) > 0 {
		at = min(at, s.reads.again)
	}
	return at
}

// Status is protocol.Core's.
func (s *EPaxos) Status() protocol.Status {
	st := protocol.Status{
		Instance: s.cfg.Instance, Self: s.cfg.Self, Leader: s.leader(), First: s.log.Base + 1, Last: s.log.Last(),
		Durable: s.disk.Durable.Last, Commit: s.committed, Apart: true, Config: s.conf.Clone(),
		Placement: string(s.cfg.Placement),
		Routes:    []protocol.Route{{To: s.cfg.Self, Term: 1}},
	}
	st.Term = protocol.Term(st.Leader)
	if st.Leader == s.cfg.Self {
		st.Role, st.K = protocol.Leader, 1
	}
	for _, p := range s.peers {
		has := s.reach(p.executed)
		st.Peers = append(st.Peers, protocol.PeerStatus{
			ID: p.id, Match: has, Next: has + 1, Needs: has, Active: s.active(p), Snapshot: s.streaming[p.id],
		})
	}
	return st
}
