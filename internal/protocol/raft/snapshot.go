package raft

import (
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/raftlog"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// compact forgets entries that a durable snapshot here covers. Nothing is written: the
// snapshot itself is the base that this member would recover from.
func (r *Raft) compact(to protocol.Index) {
	to = min(to, r.commit)
	if to <= r.log.Base {
		return
	}
	r.emitCommitted() // they may be committed by this very step
	r.log.Compact(to)
	r.members.Compact(to)
	r.configChanged()
}

// bringBase brings a member what our log does not have any more. That is a snapshot. If the last one
// could not be sent, the member is asked first whether it has all that already. It may have more than
// it said, because after a restart it knows only what was committed. Without the question, a leader
// whose state is damaged would try forever to send a snapshot to the member whose state it waits for.
func (r *Raft) bringBase(p *tracker.Progress) {
	if !p.Unsent {
		r.askSnapshot(p)
		return
	}
	p.Become(tracker.Probe, r.log.Base+1, r.now)
	p.Unsent = false
	p.Pause(r.now + r.cfg.Heartbeat)
	r.sendAppend(p, r.log.Base, r.log.BaseTerm, nil, true)
}

// askSnapshot asks for a snapshot for a member that needs entries we no longer have.
func (r *Raft) askSnapshot(p *tracker.Progress) {
	p.Become(tracker.Snapshot, p.Next, r.now)
	if !p.Asked {
		p.Asked = true
		r.out.Snapshots = append(r.out.Snapshots, p.ID)
	}
}

// unsendable asks for a snapshot in place of entries that are in the log and cannot be read.
func (r *Raft) unsendable(in protocol.Unsendable) {
	if p := r.lead.peer(in.Member); r.role == protocol.Leader && p != nil && p.Match < in.Index && in.Index <= r.commit {
		r.askSnapshot(p)
	}
}

func (r *Raft) snapshotSent(in protocol.SnapshotSent) {
	p := r.lead.peer(in.To)
	if p == nil || !p.Asked {
		return
	}
	p.Asked = false
	if p.Phase != tracker.Snapshot {
		return
	}
	// After a failure the next answered heartbeat tries again.
	p.Unsent = in.Index == 0
	p.Become(tracker.Probe, max(r.log.Base, in.Index)+1, r.now)
	if (in.Index > r.log.Last || in.Index < r.log.Base) && p.Match < r.log.Base {
		p.Next = r.log.Base // unknown to our log: asks for another
	}
	if in.Index == 0 {
		p.Pause(r.now)
	}
	r.replicate(p)
}

// snapshotReceived takes a snapshot that is ahead of what is committed here. Everything in a
// snapshot is committed, whatever its sender and time. A snapshot that was sent for another
// instance (Term 0) says nothing about who leads this one, and no one waits for the answer.
func (r *Raft) snapshotReceived(in protocol.SnapshotReceived) {
	switch {
	case r.closed():
		return // it has all that its log decided before the seal
	case in.Term > r.term:
		r.follow(in.Term, in.From)
	case in.Base.Term > r.term:
		r.follow(in.Base.Term, 0)
	}
	if r.role == protocol.Leader {
		return // its log has all that is committed
	}
	if in.Term == r.term && in.Term != 0 {
		r.follow(in.Term, in.From)
		r.noteLeader()
	}
	stale := in.Base.Index <= r.commit && r.cfg.Mutant != MutantSnapshotIgnoresCommit
	switch {
	case stale:
	case r.cfg.Mutant != MutantSnapshotIgnoresCommit && r.log.Matches(in.Base.Index, in.Base.Term):
		// Our log has all of it, and perhaps more that was acknowledged. Only the commit index is
		// new.
		r.raise(in.Base.Index)
	case !r.usable(&in.Base.Config):
		return
	default:
		r.install(in.Base)
	}
	if in.Term != 0 {
		a := message.With(protocol.Message{Type: message.AppendResp, To: in.From}, message.Part{Index: r.commit})
		r.bodies.Tell(a)
		r.release(a)
	}
}

// install restarts the log after a snapshot. Nothing is lost that could be committed: the log is
// shorter than the snapshot, or conflicts with it.
func (r *Raft) install(base protocol.Base) {
	r.follow(r.term, 0) // a candidate asked for votes with a log that it no longer has
	base.Config = base.Config.Clone()
	r.emitCommitted()
	r.replaced = r.term
	follows, behindSeal := r.log.Follows, r.log.BehindSeal
	r.log = raftlog.After(&base, r.cfg.CacheBytes)
	r.log.Follows, r.log.BehindSeal = follows, behindSeal
	r.disk.Cut(1)
	r.bodies.Coded.Install(base.Index)
	r.bodies.Bodies.Install()
	r.seals.Install()
	_ = r.members.Install(&base) // its profile is usable
	r.commit, r.given, r.verified = base.Index, base.Index, base.Index
	r.lanes.Installed(r.seeLanes(), &base)
	r.out.Record(protocol.Record{Kind: protocol.RecordBase, Base: &base})
	r.writeState()
	r.configChanged()
	r.out.Install = &base
}
