package raft

import (
	"fmt"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/raftlog"
	"github.com/braidlog/braid/protocol"
)

// onAppend is the follower's part of log matching (Raft §5.3).
func onAppend(r *Raft, m message.Message) {
	r.heardLeader(m)
	if m.ID.Seq > 0 {
		r.lanes.PaidAlong(r.seeLanes(), m)
	}
	if !r.parks(m) {
		r.appendFrom(m)
	}
}

// appendFrom takes in what a leader appended.
func (r *Raft) appendFrom(m message.Message) {
	for i := range m.Entries {
		e := &m.Entries[i]
		if e.Index != m.Index+1+protocol.Index(i) || e.BodySize > 0 && e.Form == protocol.FormNone && e.Index > m.Commit {
			return // not what a leader sends
		}
	}
	prev, prevTerm, entries := m.Index, m.LogTerm, r.lanes.Resolve(r.seeLanes(), m)
	if prev < r.commit { // what is committed matches: look only at the rest
		skip := min(int(r.commit-prev), len(entries))
		if r.diverges(m, m.Entries[:skip]) { // not entries: in place of a signal they have what is decided here
			return
		}
		prev, entries = prev+protocol.Index(skip), entries[skip:]
		if prev < r.commit {
			prev = r.commit
		}
		prevTerm, _ = r.log.Term(prev)
	}
	if !r.log.Matches(prev, prevTerm) && (r.cfg.Mutant != MutantNoPrevCheck || prev > r.log.Last) {
		if prev == r.commit && r.diverges(m, nil) {
			return
		}
		hint, hintTerm := r.log.Back(prev, prevTerm)
		r.answer(message.With(protocol.Message{Type: message.AppendResp, To: m.From, Reject: true, Context: m.Context},
			message.Part{Index: m.Index, Hint: hint, HintTerm: hintTerm, Round: m.Round}))
		return
	}
	if !r.store(prev, entries) {
		return
	}
	r.verified = max(r.verified, prev+protocol.Index(len(entries)))
	r.learnCommit(m.Commit, prev+protocol.Index(len(entries)))
	if m.Context != 0 {
		r.acknowledge(m)
	}
}

// diverges reports whether a leader's log has another entry than this one where this one is decided. Two logs that have
// an entry of the same term at an index are equal up to there, so the last one is enough. Entries that are no longer in
// this log are not compared.
func (r *Raft) diverges(m message.Message, decided []protocol.Entry) bool {
	index, term := m.Index, m.LogTerm
	if n := len(decided); n > 0 {
		index, term = decided[n-1].Index, decided[n-1].Term
	}
	have, ok := r.log.Term(index)
	if !ok || have == term || r.cfg.Mutant == MutantNoPrevCheck {
		return false
	}
	r.out.Diverged = &protocol.DivergedError{Instance: r.cfg.Instance, From: m.From, Index: index, Term: have, Other: term}
	r.stopped = true
	return true
}

// store takes over the entries after prev, which match the log up to prev. It reports
// false if they are malformed, or have a profile that this program cannot have; then nothing is taken.
func (r *Raft) store(prev protocol.Index, entries []protocol.Entry) bool {
	if r.cfg.Mutant == MutantTruncateAlways && len(entries) > 0 && prev < r.log.Last {
		r.cutLog(prev + 1)
	}
	have := entries
	for len(entries) > 0 && entries[0].Index <= r.log.Last && r.log.Matches(entries[0].Index, entries[0].Term) {
		entries = entries[1:]
	}
	r.improve(have[:len(have)-len(entries)])
	configs := 0
	for i := range entries {
		if entries[i].Kind == protocol.EntryConfig {
			if c, err := protocol.DecodeConfig(entries[i].Payload); err != nil || !r.usable(&c) {
				return false
			}
			configs++
		}
	}
	if !r.lanes.Fits(&r.log, r.given, entries) {
		return false
	}
	if len(entries) == 0 {
		return true
	}
	if entries[0].Index <= r.log.Last {
		r.cutLog(entries[0].Index)
	}
	for i := range entries {
		r.log.Append(entries[i])
		r.lanes.Appended(&entries[i])
		r.bodies.note(&entries[i])
		r.seals.Note(&entries[i])
		r.out.Entry(&entries[i])
		if configs > 0 && entries[i].Kind == protocol.EntryConfig {
			c, _ := protocol.DecodeConfig(entries[i].Payload)
			_ = r.members.Append(entries[i].Index, c) // it is usable
		}
	}
	if configs > 0 {
		r.configChanged()
	}
	return true
}

// cutLog removes the entries from i on, and the configurations among them.
func (r *Raft) cutLog(i protocol.Index) {
	if i <= r.commit {
		panic(fmt.Sprintf("raft: member %s: cutting the log at %d, but %d is committed", r.cfg.Self, i, r.commit))
	}
	r.log.Truncate(i)
	r.lanes.Cut(&r.log, r.given)
	r.disk.Cut(i)
	r.bodies.Coded.Cut(i)
	r.seals.Cut(i)
	r.bodies.Weigh(&r.log)
	r.verified = min(r.verified, i-1)
	if r.members.Cut(i) {
		r.configChanged()
	}
}

// learnCommit raises a follower's commit index, at most how far its log is known to match.
func (r *Raft) learnCommit(commit, match protocol.Index) {
	if r.cfg.Mutant == MutantCommitUnverified {
		match = r.log.Last
	}
	r.raise(min(commit, match))
}

// acknowledge says how far our disk will match once everything written is durable. Frames
// that were taken in together are acknowledged together.
func (r *Raft) acknowledge(m message.Message) {
	match := max(r.verified, r.commit)
	if r.cfg.Mutant == MutantAckBeforeFsync {
		r.send(message.With(protocol.Message{Type: message.AppendResp, To: m.From, Context: m.Context,
			Holdings: r.see().Holdings(m.Commit, match, false)},
			message.Part{Index: match, Round: m.Round}))
		return
	}
	if n := len(r.out.Release); n > 0 {
		if a := message.Of(r.out.Release[n-1]); a.Type == message.AppendResp && !a.Reject && a.To == m.From &&
			a.Term == r.term {
			r.out.Seq = r.disk.Touch()
			a.Index, a.Round, a.Context = max(a.Index, match), max(a.Round, m.Round), max(a.Context, m.Context)
			a.Holdings = r.see().Holdings(m.Commit, a.Index, false)
			r.bodies.Tell(a)
			return
		}
	}
	a := message.With(protocol.Message{Type: message.AppendResp, To: m.From, Context: m.Context,
		Holdings: r.see().Holdings(m.Commit, match, false)},
		message.Part{Index: match, Round: m.Round})
	r.bodies.Tell(a)
	r.release(a)
}

// remembers reports whether the log holds what this member acknowledged to the leader in this
// term. In a term only its leader cuts the log, and only after what was acknowledged. So if a
// heartbeat names an entry that the log does not have, or has of another term, then entries and
// votes were lost, however late that heartbeat comes (docs/internals/identity.md, rule 9).
func (r *Raft) remembers(m message.Message) bool {
	if holdsAcknowledged(&r.log, m) || r.replaced == r.term || r.cfg.Mutant == MutantForgetAcknowledged {
		return true
	}
	last := min(r.log.Last, m.Index-1) // it may agree up to here, not further
	r.answer(message.With(protocol.Message{Type: message.HeartbeatResp, To: m.From, Reject: true, Context: m.Context},
		message.Part{Index: last, Round: m.Round}))
	r.out.Forgot = &protocol.Forgot{Leader: m.From, Term: m.Term, Acked: m.Index, Last: last}
	r.stopped = true
	return false
}

// holdsAcknowledged reports whether the log may have the entry that a heartbeat names. Entries that
// a snapshot covers on either side are committed, and not compared.
func holdsAcknowledged(log *raftlog.Log, m message.Message) bool {
	if m.Index > log.Last {
		return false
	}
	have, known := log.Term(m.Index)
	return !known || m.LogTerm == 0 || have == m.LogTerm
}

// onHeartbeat answers at once: Index is what our disk holds of the leader's log, Hint
// what our memory holds.
func onHeartbeat(r *Raft, m message.Message) {
	r.heardLeader(m)
	if !r.remembers(m) {
		return
	}
	r.learnCommit(m.Commit, max(r.verified, r.commit))
	hint := max(r.verified, r.commit)
	match := min(hint, r.disk.Durable)
	a := message.With(protocol.Message{Type: message.HeartbeatResp, To: m.From, Commit: r.applied, Context: m.Context,
		Holdings: r.see().Holdings(m.Commit, match, true)},
		message.Part{Index: match, Hint: hint, Round: m.Round, Lanes: r.lanes.Highs(r.seeLanes()),
			Fence: r.lanes.Promised(r.seeLanes())})
	r.see().TellNow(a)
	r.answer(a)
}
