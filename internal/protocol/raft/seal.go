package raft

import (
	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

// An EntrySeal ends the log if it counts. Whether it does, the owner learns from the order, and says it: see
// protocol.Sealed. A member that has not got the verdict takes part as ever, because the others may need it. Only what
// would have to come before the seal ends at once: the leader's proposals at the entry, and its reads and its lease at
// the commit of the entry. It would not see what the members decide that have the verdict.

// suspended reports whether an EntrySeal is committed that may count.
func (r *Raft) suspended() bool {
	return r.seals.Suspended(r.commit) && (r.seals.Closed() || r.cfg.Mutant != MutantSealKeepsReads)
}

// ending reports whether a leader's log ends with an EntrySeal, so that the leader appends nothing but its first entry.
func (r *Raft) ending() bool { return r.seals.Proposed() && r.cfg.Mutant != MutantAppendBehindSeal }

// closed reports whether the log has ended here.
func (r *Raft) closed() bool { return r.seals.Closed() && r.cfg.Mutant != MutantClosedTakesPart }

// sealed takes in the verdict. If the seal counts, the commit index is written at once: what begins behind the seal is
// written after it, and a member that starts again knows that the log before it is committed.
func (r *Raft) sealed(in protocol.Sealed) {
	r.seals.Judge(in)
	if in.Counts {
		r.writeState()
	}
	switch {
	case !in.Counts && r.role == protocol.Leader && r.lead.ready:
		r.afterCommit()
	case !in.Counts:
	case r.role == protocol.Leader:
		r.lead.reads.fail(&r.out, protocol.ReasonSealing, 0)
		r.lead.hand = handover{}
	default:
		r.follow(r.term, 0) // it stands no more
	}
}

// sealable reports whether an EntrySeal may come next: no change is under way, and no lane is open, which would end
// with it.
func (r *Raft) sealable() bool {
	if r.members.At > r.commit || r.members.Config.Joint() || r.commit < r.lead.first {
		return false
	}
	return r.cfg.Mutant == lane.MutantSealedOpen || !lane.On.In(r.cfg.Own) && r.lanes.Waiting(r.seeLanes()) == nil
}

// heedsClosed reports whether a message means something to a closed core: its answer tells that the log is sealed, or a
// member that is behind needs it to catch up.
func (r *Raft) heedsClosed(m message.Message) bool {
	switch m.Type {
	case message.Propose, message.ProposeResp, message.Read, message.ReadResp, message.LaneFetch:
		return true
	case message.AppendResp, message.HeartbeatResp, message.LaneMissing:
		return r.role == protocol.Leader && m.Term == r.term
	}
	return false
}

// tickClosed sends heartbeats, if this member led in the end: members that are behind answer them.
func (r *Raft) tickClosed() {
	if r.role != protocol.Leader {
		return
	}
	r.lead.letLateGo(r.now)
	if r.now >= r.lead.beat {
		r.lead.beat = r.now + r.cfg.Heartbeat
		for _, p := range r.lead.peers {
			r.heartbeat(p)
		}
	}
}
