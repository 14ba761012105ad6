package raft

import "github.com/braidlog/braid/protocol"

func (r *Raft) diskStalled() bool {
	return r.cfg.Mutant != MutantStalledDiskLeads && r.disk.Stalled(r.now, protocol.StallTimeouts*r.cfg.ElectionTimeout)
}

// writeState makes term, vote and commit index durable.
func (r *Raft) writeState() {
	s := protocol.HardState{Term: r.term, Vote: r.vote, Commit: r.commit}
	if r.cfg.Mutant == MutantForgetVote {
		s.Vote = 0
	}
	r.disk.Commit = r.commit
	if n := len(r.out.Persist); n > 0 && r.out.Persist[n-1].Kind == protocol.RecordState {
		r.out.Persist = r.out.Persist[:n-1] // not written yet, and out of date
	}
	r.out.Record(protocol.Record{Kind: protocol.RecordState, State: s})
}

// writeVote is writeState after term or vote changed.
func (r *Raft) writeVote() {
	r.writeState()
	r.disk.State = r.disk.Seq
}

func (r *Raft) persisted(seq uint64) {
	wasDurable := r.disk.StateDurable()
	if !r.disk.Completed(seq) {
		return
	}
	if !wasDurable && r.disk.StateDurable() && r.role == protocol.Candidate {
		r.votes.add(r.cfg.Self, true) // its own vote counts now
		r.tally()
	}
	if r.role == protocol.Leader {
		r.advance()
	}
	if r.lanes != nil {
		r.lanes.Accept(r.seeLanes())
	}
}
