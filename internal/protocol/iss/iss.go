package iss

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// ISS is one instance of ISS on one member: a sequence of epochs, with many leaders in each (docs/internals/iss.md).
// See protocol.Core for how to use it.
type ISS struct {
	// cfg are the settings under the active profile, and tuning derives them.
	cfg    protocol.Settings
	tuning slots.Tuning
	opt    options
	set    epochs.Settings
	// quorums are those of the two phases, which fit the voters of each epoch.
	quorums quorum.System

	// now and out belong to the current step.
	now time.Duration
	out *protocol.Effects

	chance slots.Chance
	// incarnation is random, drawn at the first tick; 0 before. It marks the questions of this incarnation of the
	// member.
	incarnation uint64

	log    slots.Log
	disk   slots.Disk
	hard   hard
	bodies slots.Bodies
	// conf is the last configuration in the log, and epochConf the one that is active in the epoch: conf, unless that
	// was decided in this epoch. A change of the profile alone is active at once.
	conf, epochConf protocol.Config
	// unsettled is the configuration in the log after which no later epoch has an entry; 0: there is none.
	//
	//	unsettled is 0 or the last configuration in the log (R2)
	unsettled protocol.Index
	// committed is the last index of Effects.Commit; equal to settled() between steps.
	committed protocol.Index

	epochState
	members
	catchUp   catchUp
	proposals proposals
	seal      sealing
	woven     woven

	// leaving is until when this member steps down in each segment that it leads, because it is about to stop.
	leaving time.Duration

	reads   reads
	counter counter
	// from is the sender of the current message; 0: the input is another one.
	from protocol.MemberID
	// stopped: this member accepted more than it has, or has decided another value than another member. It handles
	// no further input.
	stopped bool
}

// epochState is the epoch in progress, and the state that its segments share.
type epochState struct {
	// history is as of the log's end. epoch is the one in progress; nil: this member does not know yet who is a member.
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
	// fillAt is when this member fills free slots that others wait for; 0: there are none.
	fillAt time.Duration
	// top is the last slot with a known vote or decision other than a skip, if it may be after the log's end.
	top protocol.Index
	// early are messages of the next epoch, of earlyBytes.
	early      []*protocol.Message
	earlyBytes int
}

// counter counts the slots that this incarnation appended to the log, and how many of them have no value.
type counter struct{ slots, skipped uint64 }

// New starts an instance from what its disk holds. set is the same on all members. New returns a
// [*protocol.SettingsError], a [*protocol.ProfileError] or a [*protocol.CorruptError].
func New(cfg protocol.Settings, set epochs.Settings, rec protocol.Recovered) (*ISS, error) {
	tuning, cfg, err := slots.NewTuning("iss", Settings, cfg, slices.Concat(Mutants[:], scripted[:]))
	if err != nil {
		return nil, err
	}
	tuning.Keep(epochs.Setting)
	s := &ISS{
		cfg: cfg, tuning: tuning, set: set, chance: slots.Chance(cfg.Self), committed: rec.Base.Index,
		epochState: epochState{top: rec.Base.Index}, members: members{self: cfg.Self},
		catchUp: catchUp{streaming: map[protocol.MemberID]bool{}},
	}
	s.woven.follows = rec.Follows
	if s.history, err = historyAt(set, &rec.Base); err != nil {
		return nil, err
	}
	s.epoch, s.epochConf = s.history.Epoch(), slots.Numbered(rec.Base.Config)
	s.conf = s.epochConf
	had, err := slots.Recover(&rec, cfg.CacheBytes, func(e *protocol.Entry) { s.applyEntry(e) })
	if err != nil {
		return nil, err
	}
	s.log, s.conf, s.bodies = had.Log, had.Config, had.Bodies
	if err := s.takeProfile(); err != nil {
		return nil, err
	}
	s.passSeals()
	s.epoch = s.history.Epoch()
	s.hard = hard{commit: rec.State.Commit, logged: s.log.Last()}
	s.disk.Durable = slots.Extent{Last: s.log.Last()}
	if err := s.open(rec.Cells); err != nil {
		return nil, err
	}
	s.hard.stale = staleCells(rec.Cells, s.log.Last(), s.epoch)
	return s, nil
}

// historyAt returns the history of a log that begins after a base.
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
	leader, term, conf, routed, routedAt := s.leads(), s.term(), s.log.ConfigAt, s.proposals.routed, s.proposals.routedAt
	seal := s.sealState()
	s.handle(in)
	s.runTimers()
	s.emitCommitted()
	s.flush()
	for _, b := range s.parts {
		if s.disk.Wrote() {
			b.wrote(sbExtent{s.disk.Written, b.acc.Promised, b.acc.Reach})
		}
	}
	s.bundle(sent, released)
	s.disk.End(slots.Extent{Last: s.hard.logged}, now)
	s.log.Lighten(s.disk.Durable.Last, s.cfg.CacheBytes)
	if leader != s.leads() || term != s.term() || conf != s.log.ConfigAt || routed != s.proposals.routed ||
		routedAt != s.proposals.routedAt || seal != s.sealState() {
		out.Changed = true
	}
	s.out = nil
}

func (s *ISS) handle(in protocol.Input) {
	switch in := in.(type) {
	case *protocol.Message:
		s.receive(in)
	case protocol.Tick:
		s.tick(in.Random)
	case protocol.Propose:
		s.propose(&in)
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
		s.sendSnapshot(in.Member)
	case protocol.Sealed:
		s.sealed(in)
	case protocol.Transfer:
		transfer(s, in)
	case protocol.Stopping:
		s.leaving = s.now + 4*s.cfg.Heartbeat
	case protocol.Retain:
		s.retain(in.Members)
	case protocol.Bodies: // they account for all entries but perhaps a configuration at the end
		s.bodies = slots.BodiesOf(in)
	}
	// Other inputs of instances of a merged log are about one leader.
}

// tick adds fresh randomness to the generator.
func (s *ISS) tick(random uint64) {
	s.chance.Mix(random)
	s.chance.Draw()
	if s.incarnation == 0 {
		s.incarnation = s.chance.Draw() | 1
		for _, b := range s.parts {
			b.resetTimeout() // the first deadlines were not random
		}
	}
}

// runTimers does what is due, and what follows from the step's input.
func (s *ISS) runTimers() {
	if s.incarnation == 0 || s.closed() {
		return
	}
	s.reroute()
	for s.epoch != nil && !s.waits() {
		s.proposeOwn()
		for _, b := range s.parts {
			b.runTimers()
		}
		if !s.advance() {
			s.advanceReads()
			break
		}
	}
	s.runHeartbeat()
	if s.epoch == nil {
		return
	}
	if s.settled() > s.hard.commit && s.now >= s.hard.savedAt+s.cfg.Heartbeat {
		s.writeState()
	}
}

// runTimers does what is due in a segment.
func (b *broadcast) runTimers() {
	b.reportGathered()
	switch b.prop.Phase {
	case paxos.Idle:
		b.suspect()
	case paxos.Preparing:
		b.sendPrepares()
		b.tally()
	}
	if b.prop.Phase == paxos.Ready {
		b.progress()
		b.replicateAll()
		b.sendHeartbeats()
	}
}

// receive handles a message.
func (s *ISS) receive(m *protocol.Message) {
	if m.Instance != s.cfg.Instance || m.To != s.cfg.Self || m.From == s.cfg.Self {
		return
	}
	p := partOf(m)
	if s.closed() {
		s.receiveClosed(m, p)
		return
	}
	if s.stopped || s.forgets(m, p) || s.incarnation == 0 {
		return
	}
	s.from = m.From
	if o := s.other(m.From); o != nil {
		o.heard, o.answered, o.epoch = s.now, true, max(o.epoch, uint64(m.Term))
		if m.Type != MsgRelayed { // its Commit is the proposer's
			o.commit, o.has = max(o.commit, m.Commit), max(o.has, m.Commit)
		}
	}
	switch m.Type {
	case MsgBeat:
		onBeat(s, m, p)
	case MsgAsk:
		onAsk(s, m, p)
	case MsgTell:
		onTell(s, m)
	case MsgPropose:
		onPropose(s, m)
	case MsgProposeRefused:
		onProposeRefused(s, p)
	case MsgRead:
		onRead(s, m, p)
	case MsgReadAnswer:
		onReadAnswer(s, m, p)
	default:
		s.dispatch(m, p)
	}
}

// dispatch handles a message about a segment. One of the next epoch waits until that begins. One of an epoch that
// has ended here is answered with a heartbeat: nothing is promised or accepted there any more (C4).
func (s *ISS) dispatch(m *protocol.Message, p *Part) {
	switch epoch := s.number(); {
	case s.epoch == nil, uint64(m.Term) < epoch && s.cfg.Mutant == MutantPastDropped:
	case uint64(m.Term) == epoch && s.waits():
		s.keepEarly(m)
	case uint64(m.Term) == epoch:
		s.deliver(m, p)
	case uint64(m.Term) == epoch+1:
		s.keepEarly(m)
	case uint64(m.Term) < epoch && (m.Type == MsgPrepare || accepts(m) && m.Context != 0):
		s.heartbeat(proposerOf(m, p))
	case uint64(m.Term) < epoch && m.Type == MsgAccepted:
		s.sendRest(m)
	}
}

// accepts reports whether a message is phase 2 to an acceptor, directly or through a relay.
func accepts(m *protocol.Message) bool {
	return m.Type == MsgAccept || m.Type == MsgRelay || m.Type == MsgRelayed
}

// deliver handles a message about a segment of the current epoch.
func (s *ISS) deliver(m *protocol.Message, p *Part) {
	b := s.segmentAt(p.Segment)
	if b == nil {
		return
	}
	switch m.Type {
	case MsgAccept, MsgRelay, MsgRelayed:
		onAccept(b, m, p)
	case MsgGathered:
		onGathered(b, m, p)
	case MsgAccepted:
		onAccepted(b, m, p)
	case MsgRefused:
		onRefused(b, m, p)
	case MsgPrepare:
		onPrepare(b, m, p)
	case MsgPromise:
		onPromise(b, m, p)
	}
}

// make returns a message with its head.
func (s *ISS) make(to protocol.MemberID, t protocol.MessageType, p Part) *protocol.Message {
	return protocol.WithPart(protocol.Message{
		Type: t, Instance: s.cfg.Instance, From: s.cfg.Self, To: to,
		Term: protocol.Term(s.number()), Commit: s.log.Last(),
	}, p)
}

// send sends a message now.
func (s *ISS) send(to protocol.MemberID, t protocol.MessageType, p Part) *protocol.Message {
	m := s.make(to, t, p)
	s.out.Send = append(s.out.Send, m)
	return m
}

// refuse refuses a question if its asker waits for an answer.
func (s *ISS) refuse(context uint64, reason protocol.Reason) {
	if context != 0 {
		s.out.Reject = append(s.out.Reject, protocol.Rejection{Context: context, Reason: reason, Leader: s.leads()})
	}
}

// number is the current epoch's; 0: there is none.
func (t *epochState) number() uint64 {
	if t.epoch == nil {
		return 0
	}
	return t.epoch.Number
}

// first is the first slot of the current epoch; 0: there is none.
func (t *epochState) first() protocol.Index {
	if t.epoch == nil {
		return 0
	}
	return t.epoch.First
}

// leads is the member that etcd's API shows as the leader, and term the term in which it leads.
func (t *epochState) leads() protocol.MemberID {
	if t.epoch == nil {
		return 0
	}
	leader, _ := t.history.Lead()
	return leader
}

func (t *epochState) term() protocol.Term {
	if t.epoch == nil {
		return 0
	}
	_, since := t.history.Lead()
	return protocol.Term(since)
}

// votes reports whether a member decides in the epoch.
func (t *epochState) votes(id protocol.MemberID) bool { return t.decides.Has(id) }

// alone reports whether a member is the only voter.
func (t *epochState) alone(self protocol.MemberID) bool {
	return len(t.epochVoters()) == 1 && t.votes(self)
}

// removed reports whether this member was removed, as far as it knows.
func (s *ISS) removed() bool { return slots.Removed(&s.conf, s.cfg.Self) }

// settled is the last index that may be handed over as committed. A configuration, and what follows it, waits until
// the log has an entry of a later epoch: then a quorum of that epoch's voters has the configuration.
func (s *ISS) settled() protocol.Index {
	if s.unsettled == 0 || s.cfg.Mutant == MutantSettleAtOnce {
		return s.log.Last()
	}
	return s.unsettled - 1
}

// emitCommitted hands over the entries that are newly settled.
func (s *ISS) emitCommitted() {
	for ; s.committed < s.settled(); s.committed++ {
		s.out.Commit = append(s.out.Commit, s.log.At(s.committed+1))
	}
}

// Status is protocol.Core's.
func (s *ISS) Status() protocol.Status {
	st := protocol.Status{
		Instance: s.cfg.Instance, Self: s.cfg.Self, Term: s.term(), Leader: s.leads(),
		First: s.log.Base + 1, Last: s.furthest(), Durable: s.disk.Durable.Last, Commit: s.committed,
		Config: s.epochConf.Clone(), ConfigIndex: s.log.ConfigAt, Sealed: s.sealState(),
		Removed: s.removed() && s.settled() == s.log.Last(), Placement: string(s.cfg.Placement),
		Unwritten: s.committed - min(s.committed, s.disk.Durable.Last),
		Lacking:   s.bodies.Missing, Proposed: s.proposing(), Undecided: s.unsettled > 0 && s.unsettled < s.first(),
		Routes: []protocol.Route{{To: s.proposals.routed, Term: protocol.Term(s.proposals.routedAt)}}, Epoch: s.epochStatus(),
	}
	if st.Leader == s.cfg.Self {
		st.Role, st.K = protocol.Leader, 1
	} else if slices.ContainsFunc(s.parts, func(b *broadcast) bool { return b.prop.Phase == paxos.Preparing }) {
		st.Role = protocol.Candidate
	}
	for _, o := range s.others {
		st.Peers = append(st.Peers, protocol.PeerStatus{
			ID: o.id, Match: o.logged, Next: o.logged + 1, Needs: o.logged, Active: s.active(o),
			Snapshot: s.catchUp.streaming[o.id], Lacking: o.lacking,
		})
	}
	return st
}

// furthest is the last slot that is decided or accepted here.
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
