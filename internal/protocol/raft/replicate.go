package raft

import (
	"github.com/braidlog/braid/internal/protocol/raft/code"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

func (r *Raft) replicateAll() {
	for _, p := range r.lead.peers {
		r.replicate(p)
	}
}

// replicate sends p what it is missing, as far as its window allows.
func (r *Raft) replicate(p *tracker.Progress) {
	if !r.lead.ready || p.Forgot {
		return
	}
	for r.sendFrame(p) {
	}
	r.fill(p)
}

// sendFrame sends the next Append, and reports whether another may follow. With nothing
// to send it tells a follower a new commit index; that is not answered (Context 0).
func (r *Raft) sendFrame(p *tracker.Progress) bool {
	if p.Phase == tracker.Snapshot || p.Phase == tracker.Probe && p.Paused {
		return false
	}
	prev := p.Next - 1
	prevTerm, ok := r.log.Term(prev)
	if !ok {
		r.bringBase(p)
		return false
	}
	if p.Phase == tracker.Stream && p.Next > r.log.Last {
		if p.Told < r.commit {
			r.sendAppend(p, prev, prevTerm, nil, false)
		}
		return false
	}
	if p.Phase == tracker.Stream && r.lead.marks.Appended < p.Hold {
		return false
	}
	v := r.seeLanes()
	entries, count := r.lanes.Signals(v, p, v.Place.Frame(&v.View, p))
	bytes := 0
	for i := range entries {
		bytes += entries[i].Bytes()
	}
	if p.Phase == tracker.Probe {
		r.lanes.CountSignaled(count)
		p.Pause(r.now + r.cfg.Heartbeat)
		r.sendAppend(p, prev, prevTerm, entries, true)
		return false
	}
	if r.ride(p, entries, bytes) {
		r.lanes.CountSignaled(count)
		return true
	}
	small := bytes < tracker.LargeFrame || r.cfg.PipelineDepth > 0
	if hold := p.MustHold(&r.cfg, r.lead.marks.Appended, bytes, small); hold > 0 {
		p.Hold = hold
		return false
	}
	p.Sent(entries[len(entries)-1].Index, bytes, small, r.now)
	r.lanes.CountSignaled(count)
	r.sendAppend(p, prev, prevTerm, entries, true)
	return true
}

// sendAppend sends entries, or only a new commit index, which is not answered. If the last Append
// to p has not left yet, it is changed: it gets the new commit index, and an empty one gets the
// entries. So several inputs between two sendings give one message. A commit index may wait for the next entries if it
// is not of entries for which someone waits at p.
func (r *Raft) sendAppend(p *tracker.Progress, prev protocol.Index, prevTerm protocol.Term, entries []protocol.Entry,
	answer bool) {
	lazy := !answer && p.Told >= p.Awaits && r.lanes.Idle(&r.view)
	p.Told = r.commit
	m := p.Latest
	switch unsent := r.out.Unsent(m); {
	case unsent && !answer:
		m.Commit, m.Lazy = r.commit, m.Lazy && lazy
		r.lanes.PayAlong(&r.disk, &r.cfg, m)
		return
	case unsent && m.Context == 0 && m.Index == prev:
		m.Commit, m.Round, m.Entries, m.Context = r.commit, r.lead.round, entries, message.Stamp(r.now)
		m.Lazy = false
		r.lanes.PayAlong(&r.disk, &r.cfg, m)
		return
	}
	m = message.With(protocol.Message{Type: message.Append, To: p.ID, Commit: r.commit, Entries: entries, Lazy: lazy},
		message.Part{Index: prev, LogTerm: prevTerm, Round: r.lead.round})
	if answer {
		m.Context = message.Stamp(r.now)
	}
	r.lanes.PayAlong(&r.disk, &r.cfg, m)
	p.Latest = m
	if r.cfg.NoParallelAppend {
		r.release(m)
		return
	}
	r.send(m)
}

func (r *Raft) heartbeat(p *tracker.Progress) *protocol.Message {
	m := r.newHeartbeat(p)
	m.Context = message.Stamp(r.now)
	r.send(m)
	return m.Message
}

// newHeartbeat returns a heartbeat that does not ask how much of the stream has arrived.
func (r *Raft) newHeartbeat(p *tracker.Progress) message.Message {
	term, _ := r.log.Term(p.Match)
	return message.With(protocol.Message{Type: message.Heartbeat, To: p.ID, Commit: r.commit},
		message.Part{Index: p.Match, LogTerm: term, Round: r.lead.round})
}

// sendCommitAside sends the commit index alongside the stream to followers whose link may have much queued. They may
// have the committed entries already, and a merged log waits for the commit indexes of all instances.
func (r *Raft) sendCommitAside() {
	for _, p := range r.lead.peers {
		if p.Phase == tracker.Stream && !p.Forgot && p.Queued(&r.cfg) && r.active(p) {
			m := r.newHeartbeat(p)
			m.Aside = true
			r.send(m)
		}
	}
}

// heardPeer notes what every answer tells, and returns the member that gave it.
func (r *Raft) heardPeer(m message.Message) *tracker.Progress {
	p := r.lead.peer(m.From)
	if p == nil || p.Forgot {
		return nil
	}
	p.Answered(m, r.now, code.ShapedAt(&r.log, 0))
	r.heardLanes(m)
	if m.Round > p.Round && m.Round <= r.lead.round {
		p.Round = m.Round
		r.confirmReads()
	}
	return p
}

func onAppendResp(r *Raft, m message.Message) {
	p := r.heardPeer(m)
	switch {
	case p == nil || m.Index > r.log.Last:
	case m.Reject:
		r.refused(p, m)
	default:
		if trip := m.Trip(r.now); p.Trip == 0 || trip < p.Trip {
			p.Measured(trip)
		}
		r.matched(p, m)
	}
}

// matched notes that p's disk matches up to m.Index, and continues sending.
func (r *Raft) matched(p *tracker.Progress, m message.Message) {
	grew := m.Index > p.Match
	if grew {
		p.Match, p.Grown = m.Index, r.now
		p.Next = max(p.Next, p.Match+1)
	}
	if r.tells(p, m) {
		grew, p.Grown = true, r.now
	}
	if r.role != protocol.Leader {
		return
	}
	switch {
	case p.Phase == tracker.Probe && !r.late(p, m), p.Phase == tracker.Snapshot && p.Match >= r.log.Base:
		p.Become(tracker.Stream, p.Match+1, r.now)
	case p.Phase == tracker.Stream:
		p.Landed(p.Match)
	}
	if grew {
		r.advance()
	}
	if r.role != protocol.Leader {
		return // that was the end of our membership
	}
	r.replicate(p)
	r.handOver(p)
	r.letGo(p)
}

// refused backs how far the logs may match: the follower skipped terms later than ours at the
// refused index, we skip terms later than its.
func (r *Raft) refused(p *tracker.Progress, m message.Message) {
	if m.Index <= p.Match || p.Phase == tracker.Snapshot || p.Phase == tracker.Probe && m.Index != p.Next-1 {
		return // late
	}
	if r.late(p, m) {
		return
	}
	at, term := r.log.Back(min(m.Hint, m.Index-1), m.HintTerm)
	if base := r.log.Base; base > 0 && at == base && (m.Hint < base || m.Index <= base || term > m.HintTerm) {
		r.askSnapshot(p) // they part before our log begins
		return
	}
	p.Become(tracker.Probe, at+1, r.now)
	r.replicate(p)
}

func onHeartbeatResp(r *Raft, m message.Message) {
	if m.Reject {
		if p := r.lead.peer(m.From); p != nil && m.Index < p.Match {
			p.Disown(r.log.Last, r.now)
		}
		return
	}
	p := r.heardPeer(m)
	if p == nil || m.Index > r.log.Last || m.Hint > r.log.Last {
		return
	}
	p.Measured(m.Trip(r.now))
	switch {
	case m.Index > p.Match:
		r.matched(p, m) // an answer was lost, or is late
	case r.tells(p, m):
		p.Grown = r.now
		r.advance()
	}
	if r.role != protocol.Leader {
		return
	}
	switch {
	case p.Phase == tracker.Probe:
		// A heartbeat alongside the stream, without Context, overtakes the probe; one that left soon
		// after it may be answered before the disk is done.
		p.Paused = p.Paused && (m.Context == 0 || m.Context <= p.Resume && r.cfg.Mutant != MutantHeedLateAnswers)
	case p.Phase == tracker.Stream && p.Lost(m, r.cfg.Heartbeat):
		p.Become(tracker.Stream, m.Hint+1, r.now)
	case p.Phase == tracker.Stream && p.InFlight() == 0 && m.Hint < p.Match && m.Context > message.Stamp(p.Grown):
		// It restarted and does not know any more how far its log matches; until it is
		// told again it learns of no commit.
		p.Become(tracker.Probe, p.Match+1, r.now)
	}
	r.replicate(p)
	r.handOverAgain(p, m)
}

// late reports whether p answers something that was sent before its phase began. An answer to a
// snapshot has no Context.
func (r *Raft) late(p *tracker.Progress, m message.Message) bool {
	return m.Context != 0 && m.Context < p.Began && r.cfg.Mutant != MutantHeedLateAnswers
}

// unreachable: what is in flight is lost. Sending resumes when the next heartbeat is answered.
func (r *Raft) unreachable(id protocol.MemberID) {
	r.lanes.Unreachable(r.seeLanes(), id)
	if p := r.lead.peer(id); p != nil && p.Phase == tracker.Stream && p.InFlight() > 0 {
		p.Become(tracker.Probe, p.Match+1, r.now)
		p.Pause(r.now)
	}
}

// advance commits what is stored safely (Raft §5.3, §5.4.2).
func (r *Raft) advance() {
	if !r.lead.ready || r.closed() {
		return
	}
	to := r.view.Place.Stored(r.see())
	if to <= r.commit {
		return
	}
	if t, ok := r.log.Term(to); !ok || t != r.term && r.cfg.Mutant != MutantCommitOldTerm {
		return
	}
	r.commitTo(to)
}

// afterCommit does what waited for the commit index.
func (r *Raft) afterCommit() {
	r.startReads()
	r.settleConfig()
	r.replicateAll()
	r.sendCommitAside()
	if h := &r.lead.hand; h.waits {
		r.handOver(r.lead.peer(h.to))
	}
	r.resign()
}

// active reports whether p was heard from within an election timeout.
func (r *Raft) active(p *tracker.Progress) bool {
	return p.HeardWithin(r.now, r.cfg.ElectionTimeout)
}
