package raft

import (
	"slices"

	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// What a member does with lanes (docs/internals/lcr.md): package lane decides about them.

// seeLanes is what lanes see now. It is good until the next call.
func (r *Raft) seeLanes() *lane.View {
	r.see()
	v := &r.view
	v.Role, v.Term, v.Leader, v.Given = r.role, r.term, r.leader, r.given
	v.Ready, v.Uncommitted, v.Beaten, v.Waits = r.lead.ready, r.lead.uncommitted, r.lead.beaten, r.lead.reads.barrier.on
	return v
}

// onLane takes in a part of a lane, from its member or from another one that was asked for it.
func onLane(r *Raft, m message.Message) { r.lanes.OnPart(r.seeLanes(), m) }

func onLaneResp(r *Raft, m message.Message) { r.lanes.OnHeld(r.seeLanes(), m) }

func onLaneFetch(r *Raft, m message.Message) { r.lanes.OnFetch(r.seeLanes(), m) }

func onLaneOpen(r *Raft, m message.Message) {
	if r.lanes != nil && m.From == m.ID.Session.Member {
		r.appendLane(r.lanes.Open(r.seeLanes(), m.From, m.Part))
	}
}

// onLaneMissing sends a follower a group itself, and what comes after it up to now.
func onLaneMissing(r *Raft, m message.Message) {
	p := r.lead.peer(m.From)
	if r.lanes == nil || p == nil || p.Phase != tracker.Stream || m.Index <= max(p.Match, p.Raw) || m.Index >= p.Next {
		return
	}
	p.Raw = r.log.Last
	p.Become(tracker.Stream, m.Index, r.now)
	r.replicate(p)
}

func onFence(r *Raft, m message.Message) {
	if r.lanes != nil {
		r.heardLeader(m)
		r.lanes.OnFence(r.seeLanes(), m)
	}
}

func onFenceResp(r *Raft, m message.Message) { r.lanes.OnFenceResp(r.seeLanes(), m) }

// appendLane appends an entry of a leader that says something of lanes, if there is one.
func (r *Raft) appendLane(e protocol.Entry, ok bool) {
	if ok && !r.ending() {
		r.appendOwn(&e, make([]byte, protocol.HeadSize))
		r.advance()
		r.replicateAll()
	}
}

// tickLanes repeats what was not answered.
func (r *Raft) tickLanes() {
	if !r.closed() && !r.lanes.Idle(&r.view) {
		r.appendLane(r.lanes.Ask(r.seeLanes()))
		r.lanes.Tick(r.seeLanes())
	}
}

// tendLanes does what follows for lanes from any step.
func (r *Raft) tendLanes() {
	if r.closed() {
		return
	}
	if r.lanes.Idle(&r.view) {
		if r.lead.reads.barrier.on {
			r.confirmReads()
		}
		return
	}
	r.lanes.Pay(r.seeLanes())
	if r.role == protocol.Leader {
		if change := r.lanes.Fence(r.seeLanes()); change != nil {
			r.proposeChange(*change)
			r.lanes.EndFence()
		}
		r.confirmLanes()
		r.lanes.Gather(r.seeLanes())
		r.appendLane(r.lanes.Generation(r.seeLanes()))
		if r.lead.reads.barrier.on {
			r.confirmReads()
		}
	}
}

// confirmLanes puts what is held of lanes into the log, in the order of each lane. That makes it take
// effect, as anything else in the log.
func (r *Raft) confirmLanes() {
	if r.role != protocol.Leader || !r.lead.ready || r.lead.hand.to != 0 || r.ending() {
		return
	}
	groups := r.lanes.Groups(r.seeLanes())
	for i := range groups {
		r.appendOwn(&groups[i], make([]byte, protocol.HeadSize))
	}
	if len(groups) > 0 {
		r.replicateAll()
	}
}

// heardLanes takes in what an answer to a heartbeat says of lanes.
func (r *Raft) heardLanes(m message.Message) {
	if r.lanes == nil || m.Type != message.HeartbeatResp {
		return
	}
	r.lanes.Heard(r.seeLanes(), m)
	if rd := &r.lead.reads; rd.barrier.on && m.Round >= rd.round && m.Round <= r.lead.round {
		rd.barrier.said.Hear(m.From, m.Lanes)
	}
}

// ride puts a frame of nothing but signals into the last Append to p, if that has not left yet, and reports
// whether it did. So signals that follow a command at once cost no message and no answer of their own.
func (r *Raft) ride(p *tracker.Progress, entries []protocol.Entry, bytes int) bool {
	m := p.Latest
	if r.lanes == nil || p.InFlight() == 0 || !r.out.Unsent(m) || m.Context == 0 ||
		m.Index+protocol.Index(len(m.Entries))+1 != p.Next ||
		slices.ContainsFunc(entries, func(e protocol.Entry) bool { return e.Kind != protocol.EntrySignal }) {
		return false
	}
	if !p.Extend(&r.cfg, len(entries), bytes) {
		return false
	}
	m.Entries = slices.Concat(m.Entries, entries) // what it had is shared with the log
	return true
}
