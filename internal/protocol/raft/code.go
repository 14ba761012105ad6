package raft

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// code is CRaft's placement (docs/internals/craft.md): a member gets the row of its slot of every body,
// which takes 1/k of the bytes, and where too few members take rows, whole bodies.
type code struct {
	r *Raft
	// most bounds k; 0: a majority less one.
	most int
	// off: nothing is coded before that instant.
	off time.Duration
	// stalled is an instant + 1ns, 0 for not: since when the first coded entry that is not
	// committed cannot become so without whole copies.
	stalled uint64
	overdue overdue
}

// recently reports whether a member was heard from within two heartbeats, so that it counts as
// alive.
func (r *Raft) recently(p *tracker.Progress) bool {
	return p.Heard != 0 && message.Stamp(r.now) < p.Heard+uint64(2*r.cfg.Heartbeat)
}

// counted reports whether a member may be expected to store its row soon: it is alive, the log
// streams to it, and it is not far behind the others.
func (r *Raft) counted(p *tracker.Progress) bool {
	return r.recently(p) && (p.Phase == tracker.Stream && !p.Far.Is || r.cfg.Mutant == MutantCodeWaitForAll)
}

// k is such that no write waits for members that are not counted on now (docs/internals/craft.md,
// "Writing"). Nothing is coded while a membership change is in progress. So all coded entries
// before a configuration are committed, and the next leader need not ask under which configuration
// they were coded (docs/internals/craft.md, 2.7).
func (c *code) k() uint8 {
	if c.r.now < c.off {
		return 1
	}
	return c.kOf(func(id protocol.MemberID) bool {
		p := c.r.peer(id)
		return p != nil && c.r.counted(p)
	})
}

// kOf is k if the other voters that may be expected to store their rows soon are those that are counted.
func (c *code) kOf(counted func(protocol.MemberID) bool) uint8 {
	r := c.r
	if c.most == 1 || r.members.Config.Joint() || r.members.At > r.commit || r.members.Config.Slots == 0 {
		return 1
	}
	n := len(r.members.Voters.Incoming)
	q, alive := quorum.Size(n), 0
	for _, id := range r.members.Voters.Incoming {
		if id == r.cfg.Self || counted(id) {
			alive++
		}
	}
	most := c.limit()
	if rows := int(r.members.Config.MaxRows()); rows > 0 {
		most = min(most, rows)
	}
	return uint8(max(1, min(most, alive-(n-q))))
}

// limit is the largest k with these voters when all are alive.
func (c *code) limit() int {
	q := quorum.Size(len(c.r.members.Voters.Incoming))
	if c.most == 0 {
		return q - 1
	}
	return min(c.most, q)
}

func (c *code) uncode() { c.off = c.r.now + c.r.cfg.ElectionTimeout }

func (c *code) recode() { c.off = 0 }

// frame leaves entries that no one coded as they stand in the log.
func (c *code) frame(p *tracker.Progress) []protocol.Entry {
	r := c.r
	entries := r.log.Frame(p.Next, r.cfg.MaxFrameBytes, r.cfg.MaxFrameEntries)
	for i := range entries {
		if entries[i].Coded() {
			return c.dress(p, slices.Clone(entries))
		}
	}
	return entries
}

// dress sets the form in which p gets the entries. It does not touch their bodies: the sender cuts
// the rows.
func (c *code) dress(p *tracker.Progress, entries []protocol.Entry) []protocol.Entry {
	r := c.r
	row, known := r.members.Slot(p.ID)
	for i := range entries {
		e := &entries[i]
		switch {
		case !e.Coded():
		case e.Form != protocol.FormWhole: // then it is committed, and p makes its own row
			e.Form, e.Body = protocol.FormNone, nil
		case known && (e.Index <= r.commit || e.Index > p.Whole):
			e.Form = protocol.RowForm(row)
		}
	}
	return entries
}

// agreed is the highest index that a majority holds, in whatever form.
func (c *code) agreed() protocol.Index {
	r := c.r
	return protocol.Index(r.members.Writers().Agreed(func(id protocol.MemberID) uint64 {
		if id == r.cfg.Self {
			return uint64(r.disk.Durable)
		}
		if p := r.peer(id); p != nil {
			return uint64(p.Match)
		}
		return 0
	}))
}

// stored counts this member like any other, and only with what its disk holds: the followers may
// commit an entry before the leader's own disk is done. It stops before the first coded entry that
// is not durable, even if later entries are (docs/internals/craft.md, G1).
func (c *code) stored() protocol.Index {
	r, to := c.r, c.agreed()
	r.judgeLag(to)
	switch r.cfg.Mutant {
	case MutantCodeNaiveMix:
		return to
	case MutantCodePaperPrefix:
		for to > r.commit && slices.Contains(r.coded, to) && !r.durable(to) {
			to--
		}
		return to
	}
	for _, i := range r.coded {
		if i > to {
			break
		}
		if !r.durable(i) {
			return i - 1
		}
	}
	return to
}

// durable applies the predicate of docs/internals/craft.md, 2.1 to what is known to be on the voters' disks.
func (r *Raft) durable(i protocol.Index) bool {
	e := r.log.At(i)
	return r.members.Writers().Durable(int(e.K), r.cfg.ReadQuorum, func(id protocol.MemberID) protocol.Form {
		if id == r.cfg.Self {
			return r.disk.Holds(e)
		}
		if p := r.peer(id); p != nil {
			return p.Holds(i)
		}
		return protocol.FormNone
	})
}

func (c *code) reset() { c.off, c.stalled, c.overdue = 0, 0, overdue{} }
