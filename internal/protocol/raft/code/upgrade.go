package code

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// Where too few members take rows, coded entries that are not committed yet are completed by whole copies
// (docs/internals/craft.md, 2.4): never by coding them again, which would mix rows that do not fit together.

// quiet is for how long a member that is missing something may acknowledge nothing and still count
// as moving. It is bounded, because a pause can make a measured trip very long.
func (v *View) quiet(p *tracker.Progress) time.Duration {
	return max(2*v.Settings.Heartbeat, min(4*p.Trip, v.Settings.ElectionTimeout))
}

// reachable reports whether p may be sent bodies: it answers, and our log still has what it needs
// next.
func (v *View) reachable(p *tracker.Progress) bool {
	return v.recently(p) && p.Phase != tracker.Snapshot
}

// moving reports whether p is likely to acknowledge what it was sent: it is reachable and
// acknowledged something, or had everything, not long ago. Repeated sends do not matter. A member
// on a slow link is moving, and whole copies would make the link slower.
func (v *View) moving(p *tracker.Progress) bool {
	return v.reachable(p) && v.Now < max(p.Grown, p.Level, p.Since)+v.quiet(p)
}

// hopeful reports whether an entry becomes durable if all members that move store what they will
// be sent.
func (v *View) hopeful(i protocol.Index) bool {
	k := int(v.Log.At(i).K)
	return v.Members.Writers().Durable(k, v.Settings.ReadQuorum, func(id protocol.MemberID) protocol.Form {
		if id == v.Settings.Self {
			return protocol.FormWhole
		}
		p := v.Peer(id)
		switch {
		case p == nil:
			return protocol.FormNone
		case !v.moving(p):
			return p.Holds(i)
		case i <= p.Bodies.Whole:
			return protocol.FormWhole
		case p.Bodies.Far.Is && v.Settings.Mutant != MutantWaitForAll:
			return p.Holds(i)
		}
		if f := p.Holds(i); f != protocol.FormNone {
			return f
		}
		if row, ok := v.Members.Slot(id); ok {
			return protocol.RowForm(row)
		}
		return protocol.FormWhole
	})
}

// fragile is the first coded entry that is not durable yet, 0 if all are. Entries of earlier
// terms may be durable and not committed: they wait for those after them.
func (v *View) fragile() protocol.Index {
	for _, i := range v.Coded.Indexes {
		if !v.durable(i) {
			return i
		}
	}
	return 0
}

// Tick notices that the first coded entry waits for members that do not move, or that are too
// far behind.
func (c *code) Tick(v *View) *protocol.Config {
	for _, p := range v.Peers {
		if p.Match == v.Log.Last && p.Bodies.Filling.Last == 0 {
			p.Level = v.Now
		}
	}
	v.judgeLag(v.agreed())
	i := v.fragile()
	late := c.watch(v, i)
	if late {
		v.spare(i)
		c.relieve(v, i)
	}
	switch {
	case i == 0 || v.hopeful(i):
		c.stalled = 0
	case late, c.stalled != 0 && message.Stamp(v.Now) > c.stalled+uint64(c.stallTimeout(v, 0)):
		c.upgrade(v)
	case c.stalled == 0:
		c.stalled = message.Stamp(v.Now)
	}
	return c.relax(v)
}

// stallTimeout is how long to wait for members that do not move to move again: two round trips
// to the slowest voter that answers and has the entry at i, 0 for any.
func (c *code) stallTimeout(v *View, i protocol.Index) time.Duration {
	trip := time.Duration(0)
	for _, p := range v.Peers {
		if v.Members.Voters.Has(p.ID) && v.recently(p) && !p.Bodies.Far.Is && p.Match >= i {
			trip = max(trip, p.Trip)
		}
	}
	return max(min(2*trip, v.Settings.ElectionTimeout), v.Settings.Heartbeat)
}

// upgrade chooses who gets whole bodies of all entries so far: as many of the moving voters as are
// needed, and ExtraWhole more.
func (c *code) upgrade(v *View) {
	extra, i := v.Settings.ExtraWhole, v.fragile()
	for range v.Peers {
		if v.hopeful(i) {
			if extra == 0 {
				return
			}
			extra--
		}
		var best *tracker.Progress
		for _, p := range v.Peers {
			if v.Members.Voters.Has(p.ID) && v.reachable(p) && p.Bodies.Whole < v.Log.Last &&
				(best == nil || v.rather(p, best, i)) {
				best = p
			}
		}
		if best == nil {
			return
		}
		best.Bodies.Whole = v.Log.Last
	}
}

// rather reports whether a is a better choice than b for whole bodies, so that the entry at i
// becomes durable. It prefers a member that moves, then one that gets the entry soon, then one that
// was chosen before for entries that are not committed yet, then one that has more of the log.
func (v *View) rather(a, b *tracker.Progress, i protocol.Index) bool {
	if ma, mb := v.moving(a), v.moving(b); ma != mb {
		return ma
	}
	if da, db := v.distant(a, i), v.distant(b, i); da != db {
		return db
	}
	ca, cb := max(a.Bodies.Whole, v.Commit), max(b.Bodies.Whole, v.Commit)
	return ca > cb || ca == cb && a.Match > b.Match
}

// relieve ends the choice of members to which the entry at i arrives late, if another one can take
// their place. upgrade chooses them again where they are needed nevertheless.
func (c *code) relieve(v *View, i protocol.Index) {
	instead := func(p *tracker.Progress) bool {
		return v.Members.Voters.Has(p.ID) && v.moving(p) && p.Bodies.Whole < i && !v.distant(p, i)
	}
	if !slices.ContainsFunc(v.Peers, instead) {
		return
	}
	for _, p := range v.Peers {
		if v.distant(p, i) {
			p.Bodies.Whole, p.Bodies.Filling = 0, tracker.Filling{}
		}
	}
}

// Fill completes bodies for a peer that was chosen for whole ones: those of entries that it already
// has, in index order, one message at a time. Entries that it does not have come whole in frames.
func (c *code) Fill(v *View, p *tracker.Progress) []protocol.Entry {
	if p.Bodies.Whole <= v.Commit || !v.reachable(p) {
		p.Bodies.Filling.Last = 0
		return nil
	}
	f := &p.Bodies.Filling
	if f.Last != 0 && f.Last > v.Commit && p.Holds(f.Last) != protocol.FormWhole && v.Now < f.Sent+v.quiet(p) {
		return nil
	}
	f.Last = 0
	var entries []protocol.Entry
	bytes := 0
	for _, i := range v.Coded.Indexes {
		if i > min(p.Match, p.Bodies.Whole) {
			break
		}
		if p.Holds(i) == protocol.FormWhole {
			continue
		}
		e := v.Log.At(i)
		if bytes += e.Bytes(); bytes > v.Settings.MaxFrameBytes && len(entries) > 0 {
			break
		}
		entries = append(entries, *e)
	}
	if len(entries) == 0 {
		return nil
	}
	*f = tracker.Filling{Last: entries[len(entries)-1].Index, Sent: v.Now}
	return entries
}
