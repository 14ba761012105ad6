package code

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

// Marks say how many bytes a leader has appended in its term, and at which index how many it had.
type Marks struct {
	// Appended is the bytes of all entries that were appended in this leader's term.
	Appended uint64
	// marks are ascending; at most maxMarks.
	marks []mark
}

// mark says how many bytes the leader had appended in its term up to the entry at an index.
type mark struct {
	index protocol.Index
	bytes uint64
}

// maxMarks bounds how many marks are kept.
const maxMarks = 4096

// Append takes in an entry that was appended, and adds a mark, about four for each frame.
func (m *Marks) Append(e *protocol.Entry, frame int) {
	m.Appended += uint64(e.Bytes())
	n := len(m.marks)
	if n > 0 && m.Appended-m.marks[n-1].bytes < uint64(frame/4) {
		return
	}
	if n >= maxMarks {
		m.marks = slices.Delete(m.marks, 0, n/2)
	}
	m.marks = append(m.marks, mark{e.Index, m.Appended})
}

// appendedBy is about how many bytes of this leader's term the log has up to an index; false if no
// mark tells.
func (v *View) appendedBy(i protocol.Index) (bytes uint64, known bool) {
	marks := v.Marks.marks
	k := sort.Search(len(marks), func(k int) bool { return marks[k].index > i })
	if k > 0 {
		return marks[k-1].bytes, true
	}
	return 0, len(marks) > 0 && marks[0].index == v.First && i+1 == v.First
}

// judgeLag finds the members that are far behind a majority, and those that have caught up. It
// compares with the others, so links that are narrow for all of them make no one far.
func (v *View) judgeLag(agreed protocol.Index) {
	most, known := v.appendedBy(agreed)
	frame := uint64(v.Settings.MaxFrameBytes)
	for _, p := range v.Peers {
		near, gone := p.Match+1 >= agreed, false
		if !near {
			has, remembered := v.appendedBy(p.Match)
			near = known && remembered && most <= has+frame
			gone = agreed > p.Match+2 && (!known || !remembered || most > has+farFrames*frame)
		}
		switch {
		case gone && !p.Bodies.Far.Is:
			p.Bodies.Far = tracker.Far{Is: true, Owes: v.Log.Last}
		case near && p.Bodies.Far.Is && p.Match >= p.Bodies.Far.Owes && v.Now >= p.Bodies.Far.Until:
			p.Bodies.Far = tracker.Far{}
		}
	}
}

// distant reports whether the entry at i arrives late to p, because p is far behind.
func (v *View) distant(p *tracker.Progress, i protocol.Index) bool {
	return p.Bodies.Far.Is && p.Match < i && v.Settings.Mutant != MutantWaitForAll
}

// farFrames is by how many frames more than a majority a member has to miss to be far.
const farFrames = 4

// spare marks members as far that do not have the entry at i yet, so that no one waits for them any
// longer.
func (v *View) spare(i protocol.Index) {
	for _, p := range v.Peers {
		if p.Match < i && !p.Bodies.Far.Is {
			p.Bodies.Far = tracker.Far{Is: true, Owes: v.Log.Last, Until: v.Now + v.Settings.ElectionTimeout}
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
func (c *code) watch(v *View, i protocol.Index) bool {
	w := &c.overdue
	if i == 0 || i != w.index {
		*w = overdue{index: i, since: message.Stamp(v.Now)}
	}
	if i == 0 || v.agreed() < i || v.Settings.Mutant == MutantWaitForAll {
		return false
	}
	if w.held == 0 {
		w.held = message.Stamp(v.Now)
	}
	took := min(time.Duration(w.held-w.since), v.Settings.ElectionTimeout)
	return message.Stamp(v.Now) > w.held+uint64(max(took, c.stallTimeout(v, i)))
}
