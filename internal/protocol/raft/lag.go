package raft

import (
	"slices"
	"sort"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// Coding pays only if members store their rows about as soon as the others do. A member that is
// far behind answers, and acknowledges more and more, but new entries reach it last. Every entry
// would wait for it. So a member that is far behind counts neither for k nor as one that will take
// its row (docs/internals/craft.md, "When a member is behind").

// mark says how many bytes the leader had appended in its term up to the entry at an index.
type mark struct {
	index protocol.Index
	bytes uint64
}

// maxMarks bounds how many marks are kept.
const maxMarks = 4096

// noteAppended adds a mark, about four for each frame.
func (r *Raft) noteAppended() {
	l := &r.lead
	n := len(l.marks)
	if n > 0 && l.appended-l.marks[n-1].bytes < uint64(r.cfg.MaxFrameBytes/4) {
		return
	}
	if n >= maxMarks {
		l.marks = slices.Delete(l.marks, 0, n/2)
	}
	l.marks = append(l.marks, mark{r.log.Last, l.appended})
}

// appendedBy is about how many bytes of this leader's term the log has up to an index; false if no
// mark tells.
func (r *Raft) appendedBy(i protocol.Index) (bytes uint64, known bool) {
	marks := r.lead.marks
	k := sort.Search(len(marks), func(k int) bool { return marks[k].index > i })
	if k > 0 {
		return marks[k-1].bytes, true
	}
	return 0, len(marks) > 0 && marks[0].index == r.lead.first && i+1 == r.lead.first
}

// judgeLag finds the members that are far behind a majority, and those that have caught up. It
// compares with the others, so links that are narrow for all of them make no one far.
func (r *Raft) judgeLag(agreed protocol.Index) {
	most, known := r.appendedBy(agreed)
	frame := uint64(r.cfg.MaxFrameBytes)
	for _, p := range r.lead.peers {
		near, gone := p.Match+1 >= agreed, false
		if !near {
			has, remembered := r.appendedBy(p.Match)
			near = known && remembered && most <= has+frame
			gone = agreed > p.Match+2 && (!known || !remembered || most > has+farFrames*frame)
		}
		switch {
		case gone && !p.Far.Is:
			p.Far = tracker.Far{Is: true, Owes: r.log.Last}
		case near && p.Far.Is && p.Match >= p.Far.Owes && r.now >= p.Far.Until:
			p.Far = tracker.Far{}
		}
	}
}

// distant reports whether the entry at i arrives late to p, because p is far behind.
func (r *Raft) distant(p *tracker.Progress, i protocol.Index) bool {
	return p.Far.Is && p.Match < i && r.cfg.Mutant != MutantCodeWaitForAll
}

// farFrames is by how many frames more than a majority a member has to miss to be far.
const farFrames = 4

// spare marks members as far that do not have the entry at i yet, so that no one waits for them any
// longer.
func (r *Raft) spare(i protocol.Index) {
	for _, p := range r.lead.peers {
		if p.Match < i && !p.Far.Is {
			p.Far = tracker.Far{Is: true, Owes: r.log.Last, Until: r.now + r.cfg.ElectionTimeout}
		}
	}
}

// overdue follows the first coded entry that is not durable.
type overdue struct {
	index protocol.Index
	// since is when it became the first. held is when a majority was first seen to have something
	// of it. Both are instants + 1ns, 0 for not yet.
	since, held uint64
}

// watch reports whether an entry that a majority has waited long enough for the other members.
// Long enough is two round trips of those that have it, at least a heartbeat, or as long again as
// these took, because the last row of a large body may come that much later on a narrow link.
func (c *code) watch(i protocol.Index) bool {
	r, w := c.r, &c.overdue
	if i == 0 || i != w.index {
		*w = overdue{index: i, since: message.Stamp(r.now)}
	}
	if i == 0 || c.agreed() < i || r.cfg.Mutant == MutantCodeWaitForAll {
		return false
	}
	if w.held == 0 {
		w.held = message.Stamp(r.now)
	}
	took := min(time.Duration(w.held-w.since), r.cfg.ElectionTimeout)
	return message.Stamp(r.now) > w.held+uint64(max(took, c.stallTimeout(i)))
}
