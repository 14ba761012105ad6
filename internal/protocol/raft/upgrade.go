package raft

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
func (r *Raft) quiet(p *tracker.Progress) time.Duration {
	return max(2*r.cfg.Heartbeat, min(4*p.Trip, r.cfg.ElectionTimeout))
}

// reachable reports whether p may be sent bodies: it answers, and our log still has what it needs
// next.
func (r *Raft) reachable(p *tracker.Progress) bool {
	return r.recently(p) && p.Phase != tracker.Snapshot
}

// moving reports whether p is likely to acknowledge what it was sent: it is reachable and
// acknowledged something, or had everything, not long ago. Repeated sends do not matter. A member
// on a slow link is moving, and whole copies would make the link slower.
func (r *Raft) moving(p *tracker.Progress) bool {
	return r.reachable(p) && r.now < max(p.Grown, p.Level, p.Since)+r.quiet(p)
}

// hopeful reports whether an entry becomes durable if all members that move store what they will
// be sent.
func (r *Raft) hopeful(i protocol.Index) bool {
	k := int(r.log.At(i).K)
	return r.members.Writers().Durable(k, r.cfg.ReadQuorum, func(id protocol.MemberID) protocol.Form {
		if id == r.cfg.Self {
			return protocol.FormWhole
		}
		p := r.peer(id)
		switch {
		case p == nil:
			return protocol.FormNone
		case !r.moving(p):
			return p.Holds(i)
		case i <= p.Whole:
			return protocol.FormWhole
		case p.Far.Is && r.cfg.Mutant != MutantCodeWaitForAll:
			return p.Holds(i)
		}
		if f := p.Holds(i); f != protocol.FormNone {
			return f
		}
		if row, ok := r.members.Slot(id); ok {
			return protocol.RowForm(row)
		}
		return protocol.FormWhole
	})
}

// fragile is the first coded entry that is not durable yet, 0 if all are. Entries of earlier
// terms may be durable and not committed: they wait for those after them.
func (r *Raft) fragile() protocol.Index {
	for _, i := range r.coded {
		if !r.durable(i) {
			return i
		}
	}
	return 0
}

// tick notices that the first coded entry waits for members that do not move, or that are too
// far behind.
func (c *code) tick() {
	r := c.r
	for _, p := range r.lead.peers {
		if p.Match == r.log.Last && p.Filling.Last == 0 {
			p.Level = r.now
		}
	}
	r.judgeLag(c.agreed())
	i := r.fragile()
	late := c.watch(i)
	if late {
		r.spare(i)
		c.relieve(i)
	}
	switch {
	case i == 0 || r.hopeful(i):
		c.stalled = 0
	case late, c.stalled != 0 && message.Stamp(r.now) > c.stalled+uint64(c.stallTimeout(0)):
		c.upgrade()
	case c.stalled == 0:
		c.stalled = message.Stamp(r.now)
	}
	c.relax()
	for _, p := range r.lead.peers {
		c.fill(p)
	}
}

// stallTimeout is how long to wait for members that do not move to move again: two round trips
// to the slowest voter that answers and has the entry at i, 0 for any.
func (c *code) stallTimeout(i protocol.Index) time.Duration {
	r := c.r
	trip := time.Duration(0)
	for _, p := range r.lead.peers {
		if r.members.Voters.Has(p.ID) && r.recently(p) && !p.Far.Is && p.Match >= i {
			trip = max(trip, p.Trip)
		}
	}
	return max(min(2*trip, r.cfg.ElectionTimeout), r.cfg.Heartbeat)
}

// upgrade chooses who gets whole bodies of all entries so far: as many of the moving voters as are
// needed, and ExtraWhole more.
func (c *code) upgrade() {
	r := c.r
	extra, i := r.cfg.ExtraWhole, r.fragile()
	for range r.lead.peers {
		if r.hopeful(i) {
			if extra == 0 {
				return
			}
			extra--
		}
		var best *tracker.Progress
		for _, p := range r.lead.peers {
			if r.members.Voters.Has(p.ID) && r.reachable(p) && p.Whole < r.log.Last && (best == nil || r.rather(p, best, i)) {
				best = p
			}
		}
		if best == nil {
			return
		}
		best.Whole = r.log.Last
	}
}

// rather reports whether a is a better choice than b for whole bodies, so that the entry at i
// becomes durable. It prefers a member that moves, then one that gets the entry soon, then one that
// was chosen before for entries that are not committed yet, then one that has more of the log.
func (r *Raft) rather(a, b *tracker.Progress, i protocol.Index) bool {
	if ma, mb := r.moving(a), r.moving(b); ma != mb {
		return ma
	}
	if da, db := r.distant(a, i), r.distant(b, i); da != db {
		return db
	}
	ca, cb := max(a.Whole, r.commit), max(b.Whole, r.commit)
	return ca > cb || ca == cb && a.Match > b.Match
}

// relieve ends the choice of members to which the entry at i arrives late, if another one can take
// their place. upgrade chooses them again where they are needed nevertheless.
func (c *code) relieve(i protocol.Index) {
	r := c.r
	instead := func(p *tracker.Progress) bool {
		return r.members.Voters.Has(p.ID) && r.moving(p) && p.Whole < i && !r.distant(p, i)
	}
	if !slices.ContainsFunc(r.lead.peers, instead) {
		return
	}
	for _, p := range r.lead.peers {
		if r.distant(p, i) {
			p.Whole, p.Filling = 0, tracker.Filling{}
		}
	}
}

// fill sends whole bodies to a peer that was chosen for them: those of entries that it already
// has, in index order, one message at a time. Entries that it does not have come whole in frames.
func (c *code) fill(p *tracker.Progress) {
	r := c.r
	if p.Whole <= r.commit || !r.reachable(p) {
		p.Filling.Last = 0
		return
	}
	f := &p.Filling
	if f.Last != 0 && f.Last > r.commit && p.Holds(f.Last) != protocol.FormWhole && r.now < f.Sent+r.quiet(p) {
		return
	}
	f.Last = 0
	var entries []protocol.Entry
	bytes := 0
	for _, i := range r.coded {
		if i > min(p.Match, p.Whole) {
			break
		}
		if p.Holds(i) == protocol.FormWhole {
			continue
		}
		e := r.log.At(i)
		if bytes += e.Bytes(); bytes > r.cfg.MaxFrameBytes && len(entries) > 0 {
			break
		}
		entries = append(entries, *e)
	}
	if len(entries) == 0 {
		return
	}
	*f = tracker.Filling{Last: entries[len(entries)-1].Index, Sent: r.now}
	r.send(message.With(protocol.Message{Type: message.Bodies, To: p.ID, Commit: r.commit, Context: message.Stamp(r.now), Entries: entries}, message.Part{Round: r.lead.round}))
}
