package raft

import (
	"math"
	"slices"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

// propose takes entries in on the member where they were proposed.
func (r *Raft) propose(in *protocol.Propose) {
	entries := in.Entries
	if in.Under != nil && (r.role != protocol.Leader || r.members.At != *in.Under || r.members.At > r.commit) {
		return
	}
	if r.lanes != nil && !r.closed() {
		if entries = r.lanes.Propose(r.seeLanes(), in); len(entries) == 0 {
			return
		}
	}
	if r.role != protocol.Leader && r.leader != 0 && !r.closed() && !r.members.Removed(r.cfg.Self, r.commit) {
		r.lanes.Forwarded(r.seeLanes(), entries)
		r.forward(entries)
		return
	}
	r.accept(entries, func(id protocol.ProposalID, reason protocol.Reason) { r.out.RejectProposal(id, reason, r.leader) })
}

// forward sends entries to the leader, in messages that a link takes. Any number of entries may
// have waited while there was no leader.
func (r *Raft) forward(entries []protocol.Entry) {
	most := r.cfg.MaxFrameBytes
	if r.cfg.Mutant == MutantForwardAtOnce {
		most = math.MaxInt
	}
	for len(entries) > 0 {
		n := protocol.Fitting(entries, most)
		r.send(message.With(protocol.Message{Type: message.Propose, To: r.leader, Entries: entries[:n:n]}, message.Part{}))
		entries = entries[n:]
	}
}

func onPropose(r *Raft, m message.Message) {
	if len(m.Entries) == 1 && m.Entries[0].Kind == protocol.EntryConfig {
		r.onTarget(&m.Entries[0])
		return
	}
	if slices.ContainsFunc(m.Entries, func(e protocol.Entry) bool {
		return e.Kind == protocol.EntryReshape || e.Kind == protocol.EntrySeal
	}) {
		return // who sent it has not checked it against this log
	}
	r.accept(m.Entries, func(id protocol.ProposalID, reason protocol.Reason) {
		if id == (protocol.ProposalID{}) {
			return
		}
		r.send(message.With(protocol.Message{Type: message.ProposeResp, To: m.From, Reject: true},
			message.Part{Reason: reason, ID: id}))
	})
}

func onProposeResp(r *Raft, m message.Message) { r.out.RejectProposal(m.ID, m.Reason, r.leader) }

// accept appends the proposals that this member, as the leader, takes, and refuses each of
// the others by its own id.
func (r *Raft) accept(entries []protocol.Entry, refuse func(protocol.ProposalID, protocol.Reason)) {
	heads := make([]byte, protocol.HeadSize*len(entries))
	taken := 0
	for i := range entries {
		e := entries[i]
		if reason := r.refusal(&e); reason != protocol.ReasonNone {
			refuse(e.ID, reason)
			continue
		}
		r.appendOwn(&e, heads[taken*protocol.HeadSize:])
		taken++
	}
	if taken > 0 {
		r.replicateAll()
	}
}

// refusal explains why this member does not append a proposal; ReasonNone if it does.
func (r *Raft) refusal(e *protocol.Entry) protocol.Reason {
	switch {
	case e.Kind == protocol.EntryConfig, e.Kind == protocol.EntryNoop:
		return protocol.ReasonInvalidChange // membership has its own way in
	case e.Bytes() > min(r.cfg.MaxUncommittedBytes, protocol.MaxEntryBytes),
		e.BodySize > 0 && (e.Form != protocol.FormWhole || !e.Resident()):
		return protocol.ReasonTooLarge // what is not whole cannot be coded
	case e.CheckProposal() != nil && r.cfg.Mutant != MutantTakeMalformed:
		return protocol.ReasonMalformed
	case r.members.Removed(r.cfg.Self, r.commit):
		return protocol.ReasonRemoved
	case r.closed():
		return protocol.ReasonSealing
	case r.role != protocol.Leader && r.leader != 0:
		return protocol.ReasonNotLeader
	case r.role != protocol.Leader, !r.lead.ready:
		return protocol.ReasonNoLeader
	case r.ending():
		return protocol.ReasonSealing
	case e.Kind == protocol.EntrySeal && !r.sealable():
		return protocol.ReasonChangePending
	case r.lead.hand.to != 0:
		return protocol.ReasonTransferring
	case r.lead.uncommitted > 0 && r.lead.uncommitted+e.Bytes() > r.cfg.MaxUncommittedBytes:
		return protocol.ReasonOverloaded
	}
	return protocol.ReasonNone
}

// appendOwn appends an entry of the leader's term; head is space for its envelope.
func (r *Raft) appendOwn(e *protocol.Entry, head []byte) {
	if e.BodySize > 0 && e.Kind == protocol.EntryBatch {
		e.K = r.view.Place.K(r.see())
	}
	e.Seal(r.log.Last+1, r.term, head)
	r.log.Append(*e)
	r.lanes.Appended(e)
	r.bodies.note(e)
	r.seals.Note(e)
	r.out.Entry(e)
	r.lead.awaits(e, r.cfg.Self)
	r.lead.uncommitted += e.Bytes()
	r.lead.marks.Append(e, r.cfg.MaxFrameBytes)
}
