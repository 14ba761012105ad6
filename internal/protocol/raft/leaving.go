package raft

import (
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// A member that the configuration has no longer gets entries until it knows that, for a while at
// most. Another instance of the cluster may still have it. That instance needs it, and to take part
// there, the member needs all instances. So it gets entries until the others have removed it too
// (docs/internals/niagara.md, 3.5). It counts for nothing here.

// retain notes which members the other instances have.
func (r *Raft) retain(members []protocol.MemberID) {
	r.members.Others = members
	if r.role == protocol.Leader {
		r.lead.track(&r.members, r.cfg.Self, r.log.Last, r.now)
		if r.members.At <= r.commit {
			r.lead.dismiss(&r.members, r.now+r.cfg.ElectionTimeout)
		}
	}
}

// letGo stops sending to a removed member once it can know of its removal.
func (r *Raft) letGo(p *tracker.Progress) {
	if p.Leaving != 0 && p.Told >= p.Leaving && p.Match >= p.Leaving && !r.members.Retains(p.ID) {
		r.lead.forget(p)
	}
}
