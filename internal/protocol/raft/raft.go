package raft

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/code"
	"github.com/braidlog/braid/internal/protocol/raft/effects"
	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/internal/protocol/raft/members"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/raftlog"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// Raft is one instance of Raft on one member. See protocol.Core for how to use it.
type Raft struct {
	// cfg are the settings under the active profile, which were tuned at the last look.
	cfg   protocol.Settings
	tuned *protocol.Settings
	log   raftlog.Log
	// members are the configurations of the log. Members that only other instances have, a leader has
	// as peers that are removed here, and gives them no deadline to leave.
	members members.Configs
	// applied is as in [protocol.Tick], and lags by a tick.
	applied protocol.Index

	// now and out belong to the step in progress.
	now time.Duration
	out effects.Out

	started bool
	chance  chance
	// incarnation is drawn at the first tick; 0 before. It marks the questions of this incarnation of the
	// member, so that answers to an earlier incarnation's questions are recognised.
	incarnation uint64

	role   protocol.Role
	term   protocol.Term     // never falls
	vote   protocol.MemberID // in term; 0 no one
	leader protocol.MemberID // of term; 0 not known

	// Everything up to commit is known to be committed; base ≤ commit ≤ last; never falls.
	commit protocol.Index
	// given is how far Effects.Commit went; base ≤ given ≤ commit, equal between steps.
	given protocol.Index
	// verified: our log matches the log of term's leader up to here; ≤ last. It matters only
	// beyond commit, up to which our log matches every leader's.
	verified protocol.Index
	bodies   bodies
	// seals are the EntrySeals of the log.
	seals protocol.Seals
	// view is what the placement and lanes see; see and seeLanes give it.
	view lane.View

	disk raftlog.Disk
	// stopped: this member acknowledged more than it holds, or has decided something else than its leader. It does
	// nothing any more. replaced is the term in which a snapshot replaced a log that conflicts with it.
	// Acknowledgements of that term before it may be void.
	stopped  bool
	replaced protocol.Term

	votes votes
	lead  leading
	// lanes are in the first instance; nil in others. parked are messages of the leader that wait for batches.
	lanes  *lane.Lanes
	parked parking
}

// New starts an instance from what its disk holds. A new cluster's first members start from
// Recovered.Base.Config and a base index of 0; a member that joins starts from the zero Recovered
// and waits for a leader. It returns a [*protocol.SettingsError], a [*protocol.CorruptError] or a
// [*protocol.ProfileError].
func New(cfg protocol.Settings, rec protocol.Recovered) (*Raft, error) {
	cfg, err := withDefaults(cfg)
	if err != nil {
		return nil, err
	}
	r := &Raft{
		cfg:    cfg,
		log:    raftlog.After(&rec.Base, cfg.CacheBytes),
		term:   max(rec.State.Term, rec.Base.Term),
		chance: chance(cfg.Self),
	}
	r.out = effects.Out{Disk: &r.disk, Instance: r.cfg.Instance, Self: r.cfg.Self}
	r.view.Out, r.view.Place = &r.out, code.New(&r.cfg)
	r.view.View = code.View{
		Settings: &r.cfg, Log: &r.log, Disk: &r.disk, Members: &r.members, Coded: &r.bodies.Coded, Bodies: &r.bodies.Bodies,
		Marks: &r.lead.marks, Restripe: &r.lead.restripe,
	}
	if r.term == rec.State.Term {
		r.vote = rec.State.Vote
	}
	r.log.Follows = rec.Follows
	r.log.BehindSeal = !rec.Follows && cfg.Instance > protocol.FirstInstance
	if err := checkVoters(&r.cfg, len(rec.Base.Config.Voters())); err != nil {
		return nil, err
	}
	if r.members, err = members.Start(&rec.Base, &r.cfg, own); err != nil {
		return nil, err
	}
	r.bodies.Coded.Last = rec.Base.Index
	r.bodies.Missing = rec.Base.Index > 0
	if err := r.load(rec.Entries); err != nil {
		return nil, err
	}
	r.commit, r.given, r.verified = rec.Base.Index, rec.Base.Index, rec.Base.Index
	if c := rec.State.Commit; c > r.commit {
		if c > r.log.Last {
			return nil, &protocol.CorruptError{What: "recovered log", Detail: fmt.Sprintf("ends at %d, but %d was committed",
				r.log.Last, c)}
		}
		r.raise(c)
		r.verified = c
	}
	r.disk = raftlog.Disk{Durable: r.log.Last, Commit: r.commit}
	r.configChanged()
	if !r.log.Follows {
		if r.lanes, err = lane.Recover(r.seeLanes(), &rec); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Raft) load(entries []protocol.Entry) error {
	for i := range entries {
		e := entries[i]
		if e.Index != r.log.Last+1 || e.Term < r.log.LastTerm {
			return &protocol.CorruptError{What: "recovered log",
				Detail: fmt.Sprintf("entry %d of term %d after %d of term %d", e.Index, e.Term, r.log.Last, r.log.LastTerm)}
		}
		if e.Head() == nil {
			e.Seal(e.Index, e.Term, make([]byte, protocol.HeadSize))
		}
		if e.Kind == protocol.EntryConfig {
			c, err := protocol.DecodeConfig(e.Payload)
			if err != nil {
				return err
			}
			if err := r.members.Append(e.Index, c); err != nil {
				return err
			}
		}
		r.log.Append(e)
		r.bodies.note(&e)
		r.seals.Note(&e)
		r.log.Drop(e.Index, r.needed())
	}
	r.term = max(r.term, r.log.LastTerm)
	return nil
}

// Step is protocol.Core's.
func (r *Raft) Step(now time.Duration, in protocol.Input, out *protocol.Effects) {
	if r.stopped {
		return
	}
	r.now, r.out.Effects = now, out
	r.disk.Begin()
	if !r.started {
		r.started = true
		r.votes.heard, r.votes.promised = now, r.term > 0
		r.rest()
		if r.lanes != nil {
			r.lanes.DropStale(r.seeLanes())
		}
	}
	role, term, leader, changes, route := r.role, r.term, r.leader, r.members.Changes, r.lanes.Route()
	seal := r.seals.State(r.commit)
	r.handle(in)
	r.unpark()
	r.prepare()
	r.tendLanes()
	r.emitCommitted()
	if !r.lanes.Idle(&r.view) {
		r.lanes.Settle(r.seeLanes())
	}
	r.disk.End(r.log.Last, now)
	r.log.Drop(r.disk.Settled(), r.needed())
	if role != r.role || term != r.term || leader != r.leader || changes != r.members.Changes ||
		route != r.lanes.Route() || seal != r.seals.State(r.commit) {
		out.Changed = true
	}
	r.out.Effects = nil
}

func (r *Raft) handle(in protocol.Input) {
	switch in := in.(type) {
	case *protocol.Message:
		r.receive(in)
	case protocol.Tick:
		r.tick(in)
	case protocol.Propose:
		r.propose(&in)
	case protocol.ProposeChange:
		r.proposeChange(in)
	case protocol.Read:
		r.read(in)
	case protocol.Persisted:
		r.persisted(in.Seq)
	case protocol.Compact:
		r.compact(in.Index)
	case protocol.SnapshotReceived:
		r.snapshotReceived(in)
	case protocol.SnapshotSent:
		r.snapshotSent(in)
	case protocol.BodyMade:
		r.bodyMade(in)
	case protocol.Bodies:
		r.bodies.Report(in, r.given, &r.log)
	case protocol.Unreachable:
		r.unreachable(in.Member)
	case protocol.Unsendable:
		r.unsendable(in)
	case protocol.Suspect:
		r.suspect(in.Member)
	case protocol.Place:
		r.members.Seat = in.At
	case protocol.Retain:
		r.retain(in.Members)
	case protocol.Sealed:
		r.sealed(in)
	case protocol.Stand:
		if r.term == 0 && r.role != protocol.Leader && r.leader == 0 {
			r.campaign(firstVote)
		}
	case protocol.Transfer:
		r.transfer(in)
	}
}

// see is what the placement sees now. It is good until the next call.
func (r *Raft) see() *code.View {
	v := &r.view.View
	v.Now, v.Commit, v.Applied = r.now, r.commit, r.applied
	v.First, v.Peers, v.Handing = r.lead.first, r.lead.peers, r.lead.hand.to != 0
	return v
}

// needed returns the first index whose entry is expected to be read: to be handed over when it is committed, or to be
// sent to a member that can be reached. Entries before it are read only for a member that returns.
func (r *Raft) needed() protocol.Index {
	to := r.given + 1
	for _, p := range r.lead.peers {
		if r.active(p) {
			to = min(to, p.Needs()+1)
		}
	}
	return to
}

// emitCommitted hands over what is newly committed.
func (r *Raft) emitCommitted() {
	for r.given < r.commit {
		run := r.log.Run(r.given+1, r.commit+1)
		r.out.Commit = append(r.out.Commit, run...)
		r.lanes.Committed(r.out.Commit[len(r.out.Commit)-len(run):])
		r.given += protocol.Index(len(run))
	}
}

// handler handles one type of message in one role.
type handler func(r *Raft, m message.Message)

const roles = int(protocol.Leader) + 1

// handlers is found by type, then role; nil: nothing to do. A message that arrives here has this
// member's term, or its term does not matter.
var handlers = [...][roles]handler{
	message.PreVote:       {onVote, onVote, onVote, onVote},
	message.Vote:          {onVote, onVote, onVote, onVote},
	message.PreVoteResp:   {nil, onPreVoteResp, nil, nil},
	message.VoteResp:      {nil, nil, onVoteResp, nil},
	message.Append:        {onAppend, onAppend, onAppend, nil},
	message.AppendResp:    {nil, nil, nil, onAppendResp},
	message.Heartbeat:     {onHeartbeat, onHeartbeat, onHeartbeat, nil},
	message.HeartbeatResp: {nil, nil, nil, onHeartbeatResp},
	message.Propose:       {onPropose, onPropose, onPropose, onPropose},
	message.ProposeResp:   {onProposeResp, onProposeResp, onProposeResp, onProposeResp},
	message.Read:          {onRead, onRead, onRead, onRead},
	message.ReadResp:      {onReadResp, onReadResp, onReadResp, onReadResp},
	message.TimeoutNow:    {onTimeoutNow, nil, nil, nil},
	message.Holdings:      {onHoldings, onHoldings, onHoldings, nil},
	message.HoldingsResp:  {nil, nil, nil, onHoldingsResp},
	message.Bodies:        {onBodies, onBodies, onBodies, nil},
	message.Lane:          {onLane, onLane, onLane, onLane},
	message.LaneResp:      {onLaneResp, onLaneResp, onLaneResp, onLaneResp},
	message.LaneFetch:     {onLaneFetch, onLaneFetch, onLaneFetch, onLaneFetch},
	message.LaneOpen:      {nil, nil, nil, onLaneOpen},
	message.LaneMissing:   {nil, nil, nil, onLaneMissing},
	message.Fence:         {onFence, onFence, onFence, nil},
	message.FenceResp:     {nil, nil, nil, onFenceResp},
}

func (r *Raft) receive(in *protocol.Message) {
	p, ok := in.Part.(*message.Part)
	m := message.Message{Message: in, Part: p}
	if !ok || m.Instance != r.cfg.Instance || m.To != r.cfg.Self || m.From == r.cfg.Self || int(m.Type) >= len(handlers) {
		return
	}
	if r.closed() && !r.heedsClosed(m) {
		return
	}
	if !termless(m.Type) && !r.termAgrees(m) {
		return
	}
	if h := handlers[m.Type][r.role]; h != nil {
		h(r, m)
	}
}

// termless reports whether a message means the same in every term: forwarded questions
// and their answers.
func termless(t protocol.MessageType) bool {
	switch t {
	case message.Propose, message.ProposeResp, message.Read, message.ReadResp, message.Lane, message.LaneResp,
		message.LaneFetch, message.LaneOpen:
		return true
	}
	return false
}

// termAgrees compares the message's term with this member's, and enters a higher one (Raft §5.1).
// It reports whether to handle the message.
func (r *Raft) termAgrees(m message.Message) bool {
	switch {
	case m.Term < r.term:
		r.answerStale(m)
		return false
	case m.Term == r.term:
		return true
	}
	switch m.Type {
	case message.PreVote:
		return true // asks about a term that no one entered yet
	case message.PreVoteResp:
		if !m.Reject {
			return true // repeats the term that we asked about
		}
		r.follow(m.Term, 0)
	case message.Vote:
		if !m.Force && r.sticky() {
			return false
		}
		r.follow(m.Term, 0)
	case message.Holdings:
		if r.cfg.Mutant == MutantCodeOldTermAnswers {
			return true
		}
		r.follow(m.Term, m.From)
	case message.Append, message.Heartbeat, message.Bodies, message.Fence:
		r.follow(m.Term, m.From)
	default:
		r.follow(m.Term, 0)
	}
	return true
}

// answerStale tells a member that waits for an answer that its term is over. So a leader steps
// down that this member cannot follow, because this member's term is higher.
func (r *Raft) answerStale(m message.Message) {
	switch m.Type {
	case message.PreVote:
		r.answer(message.With(protocol.Message{Type: message.PreVoteResp, To: m.From, Reject: true}, message.Part{}))
	case message.Vote:
		r.answer(message.With(protocol.Message{Type: message.VoteResp, To: m.From, Reject: true}, message.Part{}))
	case message.Append, message.Heartbeat, message.Holdings, message.Bodies:
		r.answer(message.With(protocol.Message{Type: message.AppendResp, To: m.From, Reject: true}, message.Part{}))
	}
}

// inTerm fills in the term. Termless messages have none.
func inTerm(m message.Message, term protocol.Term) message.Message {
	if m.Term == 0 && !termless(m.Type) {
		m.Term = term
	}
	return m
}

// send lets a message leave now.
func (r *Raft) send(m message.Message) { r.out.Post(inTerm(m, r.term)) }

// release lets a message leave when everything written so far is durable.
func (r *Raft) release(m message.Message) { r.out.PostDurable(inTerm(m, r.term)) }

// answer lets an answer leave that claims nothing about entries; see effects.Out.Answer.
func (r *Raft) answer(m message.Message) { r.out.Answer(inTerm(m, r.term)) }

func (r *Raft) tick(t protocol.Tick) {
	r.chance.feed(t.Random)
	r.applied = t.Applied
	r.lanes.Applied(t.Applied)
	if r.incarnation == 0 {
		r.incarnation = r.chance.draw() | 1
		r.rest() // the first deadline was drawn without chance
	}
	switch {
	case r.closed():
		r.tickClosed()
	case r.role == protocol.Leader:
		r.tickLeader()
	case r.now >= r.votes.stand || r.alone():
		r.out.Suspect = r.leader
		r.campaign(preVote)
	}
	r.tickLanes()
	r.noteCommit()
}

// noteCommit makes the commit index durable, at most once a heartbeat. That is enough: it only
// spares a restarted member the wait for its leader.
func (r *Raft) noteCommit() {
	if r.commit > r.disk.Commit && r.now >= r.disk.Noted+r.cfg.Heartbeat {
		r.disk.Noted = r.now
		r.writeState()
	}
}

// Status is protocol.Core's.
func (r *Raft) Status() protocol.Status {
	s := protocol.Status{
		Instance: r.cfg.Instance, Self: r.cfg.Self, Role: r.role, Term: r.term, Leader: r.leader,
		First: r.log.Base + 1, Last: r.log.Last, Durable: r.disk.Durable, Commit: r.commit, Config: r.members.Config.Clone(),
		Removed:   r.members.Removed(r.cfg.Self, r.commit) && !r.members.Config.Joint(),
		Placement: string(r.cfg.Placement), Preparing: len(r.lead.pre.wanted), Lacking: r.bodies.Missing,
		Restriping: r.lead.restripe.Left, ConfigIndex: r.members.At, Undecided: r.members.At > r.commit,
		Routes: r.lanes.Routes(r.seeLanes()), Owes: r.lanes.Owes(), Sealed: r.seals.State(r.commit),
	}
	if r.role == protocol.Leader {
		s.K = r.view.Place.K(r.see())
	}
	for _, p := range r.lead.peers {
		s.Peers = append(s.Peers, protocol.PeerStatus{
			ID: p.ID, Match: p.Match, Next: p.Next, Needs: p.Needs(), Active: r.active(p),
			Snapshot: p.Phase == tracker.Snapshot, InflightBytes: p.InflightBytes(), Lacking: p.Bodies.Lacking,
			Whole: p.Bodies.Whole,
		})
	}
	s.Lanes, s.Proposed = r.lanes.Status(r.seeLanes()), r.lanes.Waiting(r.seeLanes())
	return s
}
