package raft

import (
	"slices"

	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// A member that the configuration has no longer gets entries until it knows that, for a while at
// most. Another instance of the cluster may still have it. That instance needs it, and to take part
// there, the member needs all instances. So it gets entries until the others have removed it too
// (docs/internals/niagara.md, 3.5). It counts for nothing here.

// retain notes which members the other instances have.
func (r *Raft) retain(members []protocol.MemberID) {
	r.others = members
	if r.role == protocol.Leader {
		r.trackPeers()
		r.dismiss()
	}
}

// retains reports whether another instance has a member that is removed from this one.
func (r *Raft) retains(id protocol.MemberID) bool {
	if !slices.Contains(r.conf.Removed, id) || slices.Contains(r.conf.Outgoing, id) {
		return false
	}
	_, has := slices.BinarySearch(r.others, id)
	return has
}

// dismiss gives members that left a deadline, once the configuration without them is committed.
func (r *Raft) dismiss() {
	if r.confAt > r.commit {
		return
	}
	for _, p := range r.lead.peers {
		switch {
		case p.Leaving == 0:
		case r.retains(p.ID):
			p.LeaveBy = 0
		case p.LeaveBy == 0:
			p.LeaveBy = r.now + r.cfg.ElectionTimeout
		}
	}
}

// letGo stops sending to a removed member once it can know of its removal.
func (r *Raft) letGo(p *tracker.Progress) {
	if p.Leaving != 0 && p.Told >= p.Leaving && p.Match >= p.Leaving && !r.retains(p.ID) {
		r.forget(p)
	}
}

// letLateGo stops sending to removed members whose deadline has passed.
func (r *Raft) letLateGo() {
	for i := len(r.lead.peers) - 1; i >= 0; i-- {
		if p := r.lead.peers[i]; p.LeaveBy != 0 && r.now >= p.LeaveBy {
			r.forget(p)
		}
	}
}

func (r *Raft) forget(p *tracker.Progress) {
	r.lead.peers = slices.DeleteFunc(r.lead.peers, func(q *tracker.Progress) bool { return q == p })
}
