package raft

import (
	"github.com/braidlog/braid/internal/protocol/raft/code"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// What a member does with the bodies of entries; package code decides about them.

// bodies is what is known of the bodies of the log's entries, and of committed ones.
type bodies struct {
	code.Coded
	code.Bodies
}

// note notes the body of an entry that was appended.
func (b *bodies) note(e *protocol.Entry) {
	if e.BodySize == 0 {
		return
	}
	b.Coded.Note(e)
	if e.Form == protocol.FormNone {
		b.Missing = true
	}
}

// raise raises the commit index.
func (r *Raft) raise(to protocol.Index) {
	if to <= r.commit {
		return
	}
	r.commit = to
	r.bodies.Coded.Raise(to)
	if r.role == protocol.Leader && r.suspended() {
		r.lead.reads.fail(&r.out, protocol.ReasonSealing, 0)
	}
}

// commitTo commits everything up to an index on a leader.
func (r *Raft) commitTo(to protocol.Index) {
	for i := r.commit + 1; i <= to; i++ {
		r.lead.uncommitted -= r.log.At(i).Bytes()
	}
	coded := len(r.bodies.Coded.Indexes)
	r.raise(to)
	if len(r.bodies.Coded.Indexes) < coded {
		for _, p := range r.lead.peers {
			p.ForgetHeld(to)
		}
	}
	r.afterCommit()
}

// fill sends p whole bodies of entries that p already has, where that is needed.
func (r *Raft) fill(p *tracker.Progress) {
	if entries := r.view.Place.Fill(r.see(), p); len(entries) > 0 {
		r.send(message.With(protocol.Message{Type: message.Bodies, To: p.ID, Commit: r.commit, Context: message.Stamp(r.now),
			Entries: entries}, message.Part{Round: r.lead.round}))
	}
}

// tickBodies is a leader's part in each tick after its preparation.
func (r *Raft) tickBodies() {
	if next := r.view.Place.Tick(r.see()); next != nil && !r.ending() {
		r.appendConfig(*next, protocol.ProposalID{})
		r.advance()
		r.replicateAll()
	}
	for _, p := range r.lead.peers {
		r.fill(p)
	}
}

// tells takes in the holdings of an answer of this term and reports whether more is known than
// before. A member that knows an entry to be committed says only that.
func (r *Raft) tells(p *tracker.Progress, m message.Message) (more bool) {
	for _, h := range m.Holdings {
		switch {
		case h.Index <= r.commit || !r.log.Matches(h.Index, h.Term):
		case h.Form == protocol.FormCommitted:
			r.commitTo(h.Index)
			if r.role != protocol.Leader {
				return false
			}
		case h.Index <= p.Match && p.Note(h.Index, h.Form):
			more = true
		}
	}
	return more
}

// onHoldings answers a leader that was just elected. The state in the answer is durable when it is
// sent, and so is the term. From then on no earlier leader changes what is held here.
func onHoldings(r *Raft, m message.Message) {
	resp := message.With(protocol.Message{Type: message.HoldingsResp, To: m.From, Term: m.Term, Context: m.Context},
		message.Part{Round: m.Round})
	if r.cfg.Mutant != MutantCodeOldTermAnswers || m.Term == r.term {
		r.heardLeader(m)
		r.learnCommit(m.Commit, max(r.verified, r.commit))
	}
	resp.Holdings = make([]protocol.Holding, 0, len(m.Holdings))
	for _, h := range m.Holdings {
		h.Form, h.Digest = r.see().FormOf(h.Index, h.Term), 0
		resp.Holdings = append(resp.Holdings, h)
	}
	r.release(resp)
}

// onBodies takes more of bodies of entries that are in the log.
func onBodies(r *Raft, m message.Message) {
	r.heardLeader(m)
	r.improve(m.Entries)
	r.learnCommit(m.Commit, max(r.verified, r.commit))
	if m.Context != 0 {
		r.acknowledge(m)
	}
}

// improve replaces rows of entries in the log by whole bodies. A form that is equal or worse
// changes nothing (docs/internals/craft.md, 2.4).
func (r *Raft) improve(entries []protocol.Entry) {
	var better []protocol.Entry
	for i := range entries {
		e := &entries[i]
		if e.BodySize == 0 || e.Index <= r.log.Base || !r.log.Matches(e.Index, e.Term) {
			continue
		}
		have := r.log.At(e.Index)
		replace := e.Form.Better(have.Form)
		if r.cfg.Mutant == MutantCodeFreeDowngrade {
			replace = e.Form != have.Form
		}
		if !replace {
			continue
		}
		changed := *have
		changed.Form, changed.Body = e.Form, e.Body
		better = append(better, changed)
		r.disk.Rewrite(have)
		r.out.Record(protocol.Record{Kind: protocol.RecordBody, Entry: changed})
	}
	r.log.Amend(better)
}
