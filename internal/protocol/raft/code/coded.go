package code

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// Coded are the coded entries of a log.
type Coded struct {
	// Indexes are those of the coded entries after the commit index, ascending.
	Indexes []protocol.Index
	// Last is at least the highest index of any coded entry that ever was in the log.
	Last protocol.Index
}

// Note notes an entry that was appended.
func (c *Coded) Note(e *protocol.Entry) {
	if e.Coded() {
		c.Indexes = append(c.Indexes, e.Index)
		c.Last = max(c.Last, e.Index)
	}
}

// Raise forgets the entries up to the commit index.
func (c *Coded) Raise(commit protocol.Index) {
	n := 0
	for n < len(c.Indexes) && c.Indexes[n] <= commit {
		n++
	}
	c.Indexes = slices.Delete(c.Indexes, 0, n)
}

// Cut forgets the entries from an index on.
func (c *Coded) Cut(from protocol.Index) {
	for n := len(c.Indexes); n > 0 && c.Indexes[n-1] >= from; n-- {
		c.Indexes = c.Indexes[:n-1]
	}
}

// Install starts again after a base.
func (c *Coded) Install(base protocol.Index) {
	c.Indexes = c.Indexes[:0]
	c.Last = max(c.Last, base)
}

// CheckHeld: a leader believes of a peer only what that peer acknowledged of entries that
// are in question (C7).
func (v *View) CheckHeld(p *tracker.Progress) error {
	last := v.Commit
	for _, h := range p.Bodies.Held {
		if h.Index <= last || h.Index > p.Match || !slices.Contains(v.Coded.Indexes, h.Index) || h.Form == protocol.FormNone {
			return fmt.Errorf("peer %s holds %+v, match %d, commit %d", p.ID, p.Bodies.Held, p.Match, v.Commit)
		}
		last = h.Index
	}
	if p.Bodies.Filling.Last > 0 && (p.Bodies.Filling.Last > p.Match || p.Bodies.Filling.Last > p.Bodies.Whole) {
		return fmt.Errorf("peer %s: bodies up to %d under way, match %d, whole %d", p.ID, p.Bodies.Filling.Last, p.Match,
			p.Bodies.Whole)
	}
	return nil
}
