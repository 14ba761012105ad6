package raft

import (
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// Members tell each other in which forms they hold bodies. An answer says what the disk held when the answer was made,
// or will hold when it is released. A form only gets better while the entry is in the log (docs/internals/craft.md,
// D2), so late and repeated answers do no harm. A whole copy becomes a row only once its entry is committed and cut
// from the log. Answers that were made before that may leave after it, and do no harm either (docs/internals/craft.md,
// C7).

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

// holdings says in what form this member holds the bodies of coded entries after a leader's
// commit index, up to match: what its disk holds now, or will when an answer is released.
func (r *Raft) holdings(commit, match protocol.Index, now bool) (out []protocol.Holding) {
	if known := min(r.commit, match); commit < min(known, r.lastCoded) {
		t, _ := r.log.Term(known)
		out = append(out, protocol.Holding{Index: known, Term: t, Form: protocol.FormCommitted})
	}
	for _, i := range r.coded {
		if i > match || len(out) == protocol.MaxHoldings {
			break
		}
		e := r.log.At(i)
		f := e.Form
		if now {
			f = r.disk.Holds(e)
		}
		if i > commit && f != protocol.FormNone {
			out = append(out, protocol.Holding{Index: i, Term: e.Term, Form: f})
		}
	}
	return out
}

// onHoldings answers a leader that was just elected. The state in the answer is durable when it is
// sent, and so is the term. From then on no earlier leader changes what is held here.
func onHoldings(r *Raft, m message.Message) {
	resp := message.With(protocol.Message{Type: message.HoldingsResp, To: m.From, Term: m.Term, Context: m.Context}, message.Part{Round: m.Round})
	if r.cfg.Mutant != MutantCodeOldTermAnswers || m.Term == r.term {
		r.heardLeader(m)
		r.learnCommit(m.Commit, max(r.verified, r.commit))
	}
	resp.Holdings = make([]protocol.Holding, 0, len(m.Holdings))
	for _, h := range m.Holdings {
		h.Form, h.Digest = r.formOf(h.Index, h.Term), 0
		resp.Holdings = append(resp.Holdings, h)
	}
	r.release(resp)
}

// formOf is in what form this member holds the body of exactly that entry (docs/internals/craft.md, 2.5).
func (r *Raft) formOf(i protocol.Index, t protocol.Term) protocol.Form {
	switch {
	case i <= r.commit:
		return protocol.FormCommitted
	case i <= r.log.Last && r.log.Matches(i, t):
		return r.log.At(i).Form
	}
	return protocol.FormNone
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
		r.record(protocol.Record{Kind: protocol.RecordBody, Entry: changed})
	}
	r.log.Amend(better)
}
