package iss

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// ISS is one instance of ISS on one member: epochs one after the other, in each of which many members lead
// (docs/internals/iss.md). See protocol.Core for how to use it.
type ISS struct {
	cfg protocol.Settings
	set epochs.Settings
	// quorums are those of the two phases, in each epoch of its voters. They fit these.
	quorums quorum.System

	// now and out belong to the step under way.
	now time.Duration
	out *protocol.Effects

	chance slots.Chance
	// life is drawn at the first tick; 0 before. It marks the questions of this life of the member.
	life uint64

	log    slots.Log
	disk   slots.Disk
	hard   hard
	bodies slots.Bodies
	// conf is the last configuration in the log, and force the one that is in force in the epoch: conf, unless that
	// was decided in this epoch.
	conf, force protocol.Config
	// unsettled is the configuration in the log after which no later epoch has an entry; 0: there is none.
	//
	//	unsettled is 0 or the last configuration in the log (R2)
	unsettled protocol.Index
	// given is how far Effects.Commit went; equal to settled() between steps.
	given protocol.Index

	// history is as of the log's end. epoch is the one under way; nil: this member was not told who is a member.
	// elects and decides are the quorums of its voters, for phase 1 and phase 2, from its first slot to the last.
	history         *epochs.History
	epoch           *epochs.Epoch
	elects, decides quorum.Set
	// parts are the segments, in the order of their leaders. own is the one that this member leads; nil: none.
	parts []*broadcast
	own   *broadcast
	// used is the last slot of another segment in which a value was proposed. ending: all leaders fill their
	// segments.
	used   protocol.Index
	ending bool
	// due is when this member uses up free slots that hold others up; 0: there are none.
	due time.Duration
	// top is the last slot in which anything but a skip is known, as far as later ones may not be in the log.
	top protocol.Index
	// early are messages of the next epoch, of earlyBytes.
	early      []*protocol.Message
	earlyBytes int
	// told are messages with decided entries that do not follow the log's end yet, of toldBytes.
	told      []*protocol.Message
	toldBytes int

	// others are all members but this one, sorted by id.
	others []*other
	// relays are between this member, where it proposes, and the others.
	relays      relay.Relays
	relayGroups int // into how many groups this member puts the others; 0: it sends to all
	// beatAt is when others hear of this member next.
	beatAt time.Duration
	// asked is when this member asked for a part of the log last, and grown when the log grew last. pause is how long
	// it waits for an answer before it asks again. askedAfter is what it had when it asked.
	asked, grown, pause time.Duration
	askedAfter          protocol.Index
	// beaten is how far the log went at the last beat.
	beaten protocol.Index

	// queue waits for free slots of this member's segment, and has queued bytes. change is a membership change that
	// waits with it; nil: none.
	queue  []protocol.Entry
	queued int
	change *protocol.ProposeChange
	// back is what was proposed and came to nothing. It waits for the next epoch.
	back []protocol.Entry
	// routed is where proposals go, since the epoch routedAt.
	routed   protocol.MemberID
	routedAt uint64

	// leaving is until when this member gives up each segment that it leads. It is about to stop.
	leaving time.Duration

	reads reads
	// slots are how many this life appended to the log, and skipped how many of them have no value.
	slots, skipped uint64
	// streaming are the members that are being sent a snapshot from here.
	streaming map[protocol.MemberID]bool
	// from is whose message is taken in; 0: the step's input is another one.
	from protocol.MemberID
	// stopped: this member accepted more than it holds, or has decided something else than another one. It does nothing
	// any more.
	stopped bool
}

// New starts an instance from what its disk holds. set is the same on all members. New returns a
// [*protocol.SettingsError] or a [*protocol.CorruptError].
func New(cfg protocol.Settings, set epochs.Settings, rec protocol.Recovered) (*ISS, error) {
	cfg, quorums, err := slots.Flexible("iss", Settings, cfg, slices.Concat(Mutants[:], scripted[:]))
	if err != nil {
		return nil, err
	}
	s := &ISS{cfg: cfg, set: set, quorums: quorums, relayGroups: relay.Groups.In(cfg.Own), chance: slots.Chance(cfg.Self), given: rec.Base.Index, top: rec.Base.Index, streaming: map[protocol.MemberID]bool{}}
	if s.history, err = historyAt(set, &rec.Base); err != nil {
		return nil, err
	}
	s.epoch, s.force = s.history.Epoch(), slots.Numbered(rec.Base.Config)
	s.conf = s.force
	had, err := slots.Recover(&rec, cfg.CacheBytes, func(e *protocol.Entry) { s.take(e) })
	if err != nil {
		return nil, err
	}
	s.log, s.conf, s.bodies = had.Log, had.Config, had.Bodies
	if err := slots.Fit(quorums, &s.conf); err != nil {
		return nil, err
	}
	s.epoch = s.history.Epoch()
	s.hard = hard{commit: rec.State.Commit, logged: s.log.Last()}
	s.disk.Durable = slots.Extent{Last: s.log.Last()}
	if err := s.open(rec.Cells); err != nil {
		return nil, err
	}
	s.stale(rec.Cells)
	return s, nil
}

// historyAt is the history of a log that begins after a base.
func historyAt(set epochs.Settings, base *protocol.Base) (*epochs.History, error) {
	h := epochs.New(set, base.Config)
	if err := base.Restore(h); err != nil {
		return nil, err
	}
	if h.Epoch() != nil {
		h.Pass(base.Index)
	}
	return h, nil
}

// Step is protocol.Core's.
func (s *ISS) Step(now time.Duration, in protocol.Input, out *protocol.Effects) {
	if s.stopped {
		return
	}
	s.now, s.out = now, out
	s.disk.Begin()
	s.from = 0
	sent, released := len(out.Send), len(out.Release)
	leader, term, conf, routed, routedAt := s.leads(), s.term(), s.log.ConfigAt, s.routed, s.routedAt
	s.input(in)
	s.tend()
	s.give()
	s.flush()
	for _, b := range s.parts {
		b.stepped()
	}
	s.bundle(sent, released)
	s.disk.End(slots.Extent{Last: s.hard.logged}, now)
	s.log.Lighten(s.disk.Durable.Last, s.cfg.CacheBytes)
	if leader != s.leads() || term != s.term() || conf != s.log.ConfigAt || routed != s.routed || routedAt != s.routedAt {
		out.Changed = true
	}
	s.out = nil
}

func (s *ISS) input(in protocol.Input) {
	switch in := in.(type) {
	case *protocol.Message:
		s.receive(in)
	case protocol.Tick:
		s.tick(in.Random)
	case protocol.Propose:
		s.propose(in.Entries)
	case protocol.ProposeChange:
		s.proposeChange(in)
	case protocol.Read:
		s.read(in.Context)
	case protocol.Persisted:
		s.persisted(in.Seq)
	case protocol.Compact:
		s.log.Compact(min(in.Index, s.given, s.hard.logged))
	case protocol.SnapshotReceived:
		s.snapshotReceived(in)
	case protocol.SnapshotSent:
		s.snapshotSent(in)
	case protocol.Unreachable:
		s.unreachable(in.Member)
	case protocol.Unsendable:
		s.sendSnapshot(in.Member)
	case protocol.Transfer:
		s.transfer(in)
	case protocol.Stopping:
		s.leaving = s.now + 4*s.cfg.Heartbeat
	case protocol.Bodies: // they account for all entries but perhaps a configuration at the end
		s.bodies = slots.BodiesOf(in)
	}
	// Instances of a woven log have inputs of their own. There are none here.
}

// tick adds fresh randomness to the generator.
func (s *ISS) tick(random uint64) {
	s.chance.Mix(random)
	s.chance.Draw()
	if s.life == 0 {
		s.life = s.chance.Draw() | 1
		for _, b := range s.parts {
			b.rest() // the first deadlines were drawn without chance
		}
	}
}

// tend does what is due, and what follows from the step's input.
func (s *ISS) tend() {
	if s.life == 0 || s.epoch == nil {
		if s.life != 0 {
			s.tendLearn()
		}
		return
	}
	for {
		s.lead()
		for _, b := range s.parts {
			b.tend()
		}
		if !s.advance() {
			break
		}
	}
	s.tendReads()
	s.tendLearn()
	if s.settled() > s.hard.commit && s.now >= s.hard.noted+s.cfg.Heartbeat {
		s.writeState()
	}
}

// tend does what is due in a segment.
func (b *broadcast) tend() {
	b.tendRelay()
	switch b.prop.Phase {
	case paxos.Idle:
		b.suspect()
	case paxos.Preparing:
		b.tendPrepare()
		b.tally()
	}
	if b.prop.Phase == paxos.Ready {
		b.progress()
		b.drive()
		b.tendDrive()
	}
}

// receive takes a message in.
func (s *ISS) receive(m *protocol.Message) {
	if m.Instance != s.cfg.Instance || m.To != s.cfg.Self || m.From == s.cfg.Self {
		return
	}
	p := partOf(m)
	if s.stopped || s.forgets(m, p) || s.life == 0 {
		return
	}
	s.from = m.From
	if o := s.other(m.From); o != nil {
		o.heard, o.answered, o.epoch = s.now, true, max(o.epoch, uint64(m.Term))
		if m.Type != MsgRelayed { // in that Commit is the proposer's
			o.commit, o.has = max(o.commit, m.Commit), max(o.has, m.Commit)
		}
	}
	switch m.Type {
	case MsgBeat:
		s.onBeat(m, p)
	case MsgAsk:
		s.onAsk(m, p)
	case MsgTell:
		s.onTell(m)
	case MsgPropose:
		s.onPropose(m)
	case MsgProposeRefused:
		s.onProposeRefused(p)
	case MsgRead:
		s.onRead(m, p)
	case MsgReadAnswer:
		s.onReadAnswer(m, p)
	default:
		s.sort(m, p)
	}
}

// sort takes in a message about a segment. One of the next epoch waits until that begins. One of an epoch that has
// ended here is answered with that: nothing is promised or accepted there any more (C4).
func (s *ISS) sort(m *protocol.Message, p *Part) {
	switch epoch := s.number(); {
	case s.epoch == nil, uint64(m.Term) < epoch && s.cfg.Mutant == MutantPastDropped:
	case uint64(m.Term) == epoch:
		s.deliver(m, p)
	case uint64(m.Term) == epoch+1:
		s.keep(m)
	case uint64(m.Term) < epoch && (m.Type == MsgPrepare || accepts(m) && m.Context != 0):
		s.beat(proposerOf(m, p))
	case uint64(m.Term) < epoch && m.Type == MsgAccepted:
		s.tellRest(m)
	}
}

// accepts reports whether a message is phase 2 to an acceptor, on whichever way.
func accepts(m *protocol.Message) bool {
	return m.Type == MsgAccept || m.Type == MsgRelay || m.Type == MsgRelayed
}

// deliver takes in a message about a segment of the epoch.
func (s *ISS) deliver(m *protocol.Message, p *Part) {
	b := s.segmentAt(p.Segment)
	if b == nil {
		return
	}
	switch m.Type {
	case MsgAccept, MsgRelay, MsgRelayed:
		b.onAccept(m, p)
	case MsgGathered:
		b.onGathered(m, p)
	case MsgAccepted:
		b.onAccepted(m, p)
	case MsgRefused:
		b.onRefused(m, p)
	case MsgPrepare:
		b.onPrepare(m, p)
	case MsgPromise:
		b.onPromise(m, p)
	}
}

// make is a message with its head.
func (s *ISS) make(to protocol.MemberID, t protocol.MessageType, p Part) *protocol.Message {
	m := &struct { // one piece of memory
		protocol.Message
		part Part
	}{protocol.Message{
		Type: t, Instance: s.cfg.Instance, From: s.cfg.Self, To: to,
		Term: protocol.Term(s.number()), Commit: s.log.Last(),
	}, p}
	m.Part = &m.part
	return &m.Message
}

// send lets a message leave now.
func (s *ISS) send(to protocol.MemberID, t protocol.MessageType, p Part) *protocol.Message {
	m := s.make(to, t, p)
	s.out.Send = append(s.out.Send, m)
	return m
}

// refuse refuses a question if somebody waits for the answer.
func (s *ISS) refuse(context uint64, reason protocol.Reason) {
	if context != 0 {
		s.out.Reject = append(s.out.Reject, protocol.Rejection{Context: context, Reason: reason, Leader: s.leads()})
	}
}

// number is that of the epoch under way; 0: none is.
func (s *ISS) number() uint64 {
	if s.epoch == nil {
		return 0
	}
	return s.epoch.Number
}

// first is the first slot of the epoch; 0: none is under way.
func (s *ISS) first() protocol.Index {
	if s.epoch == nil {
		return 0
	}
	return s.epoch.First
}

// leads is the member that etcd's API knows as the leader, and term the term in which it leads.
func (s *ISS) leads() protocol.MemberID {
	if s.epoch == nil {
		return 0
	}
	leader, _ := s.history.Lead()
	return leader
}

func (s *ISS) term() protocol.Term {
	if s.epoch == nil {
		return 0
	}
	_, since := s.history.Lead()
	return protocol.Term(since)
}

// votes reports whether a member decides in the epoch.
func (s *ISS) votes(id protocol.MemberID) bool { return s.decides.Has(id) }

// alone: nobody else votes.
func (s *ISS) alone() bool { return len(s.epochVoters()) == 1 && s.votes(s.cfg.Self) }

// removed reports whether this member was removed for ever, as far as it knows.
func (s *ISS) removed() bool { return slots.Removed(&s.conf, s.cfg.Self) }

// settled is up to where the log is handed over as committed. A configuration, and what follows it, waits until the log
// has an entry of a later epoch: a quorum of that epoch's voters has the configuration then.
func (s *ISS) settled() protocol.Index {
	if s.unsettled == 0 || s.cfg.Mutant == MutantSettleAtOnce {
		return s.log.Last()
	}
	return s.unsettled - 1
}

// give hands over what is newly settled.
func (s *ISS) give() {
	for ; s.given < s.settled(); s.given++ {
		s.out.Commit = append(s.out.Commit, s.log.At(s.given+1))
	}
}

// Status is protocol.Core's.
func (s *ISS) Status() protocol.Status {
	st := protocol.Status{
		Instance: s.cfg.Instance, Self: s.cfg.Self, Term: s.term(), Leader: s.leads(),
		First: s.log.Base + 1, Last: s.furthest(), Durable: s.disk.Durable.Last, Commit: s.given, Config: s.force.Clone(),
		Removed: s.removed() && s.settled() == s.log.Last(), Placement: string(s.cfg.Placement),
		Unwritten: s.given - min(s.given, s.disk.Durable.Last),
		Lacking:   s.bodies.Missing, Proposed: s.proposing(), Undecided: s.unsettled > 0 && s.unsettled < s.first(),
		Routes: []protocol.Route{{To: s.routed, Term: protocol.Term(s.routedAt)}}, Epoch: s.epochStatus(),
	}
	if st.Leader == s.cfg.Self {
		st.Role, st.K = protocol.Leader, 1
	} else if slices.ContainsFunc(s.parts, func(b *broadcast) bool { return b.prop.Phase == paxos.Preparing }) {
		st.Role = protocol.Candidate
	}
	for _, o := range s.others {
		st.Peers = append(st.Peers, protocol.PeerStatus{
			ID: o.id, Match: o.logged, Next: o.logged + 1, Needs: o.logged, Active: s.active(o), Snapshot: s.streaming[o.id], Lacking: o.lacking,
		})
	}
	return st
}

// furthest is the last slot of which this member has anything.
func (s *ISS) furthest() protocol.Index {
	last := s.log.Last()
	for _, b := range s.parts {
		last = max(last, b.acc.Top)
	}
	return last
}

func (s *ISS) String() string {
	return fmt.Sprintf("iss: member %s epoch %d log %d", s.cfg.Self, s.number(), s.log.Last())
}
