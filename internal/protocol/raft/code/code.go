package code

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// code is CRaft's placement (docs/internals/craft.md): a member gets the row of its slot of every body,
// which takes 1/k of the bytes, and where too few members take rows, whole bodies.
//
// With placement copy nothing is coded, every member gets whole bodies, and a majority makes them safe: it is the same
// with k = 1 always. So a cluster can change between the two, and entries that were coded before are still treated as
// coded.
type code struct {
	// off: nothing is coded before that instant.
	off time.Duration
	// stalled is an instant + 1ns, 0 for not: since when the first coded entry that is not
	// committed cannot become so without whole copies.
	stalled uint64
	overdue overdue
}

// counted reports whether a member may be expected to store its row soon: it is alive, the log
// streams to it, and it is not far behind the others.
func (v *View) counted(p *tracker.Progress) bool {
	return v.recently(p) && (p.Phase == tracker.Stream && !p.Bodies.Far.Is || v.Settings.Mutant == MutantWaitForAll)
}

// K is such that no write waits for members that are not counted on now (docs/internals/craft.md,
// "Writing"). Nothing is coded while a membership change is in progress. So all coded entries
// before a configuration are committed, and the next leader need not ask under which configuration
// they were coded (docs/internals/craft.md, 2.7).
func (c *code) K(v *View) uint8 {
	if v.Now < c.off {
		return 1
	}
	return c.KOf(v, func(id protocol.MemberID) bool {
		p := v.Peer(id)
		return p != nil && v.counted(p)
	})
}

// KOf is k if the other voters that may be expected to store their rows soon are those that are counted.
func (c *code) KOf(v *View, counted func(protocol.MemberID) bool) uint8 {
	if v.most() == 1 || v.Members.Config.Joint() || v.Members.At > v.Commit || v.Members.Config.Slots == 0 {
		return 1
	}
	n := len(v.Members.Voters.Incoming)
	q, alive := quorum.Size(n), 0
	for _, id := range v.Members.Voters.Incoming {
		if id == v.Settings.Self || counted(id) {
			alive++
		}
	}
	most := c.limit(v)
	if rows := int(v.Members.Config.MaxRows()); rows > 0 {
		most = min(most, rows)
	}
	return uint8(max(1, min(most, alive-(n-q))))
}

// limit is the largest k with these voters when all are alive.
func (c *code) limit(v *View) int {
	q := quorum.Size(len(v.Members.Voters.Incoming))
	if v.most() == 0 {
		return q - 1
	}
	return min(v.most(), q)
}

// most bounds k; 0: a majority less one.
func (v *View) most() int {
	if v.Settings.Placement == protocol.PlacementCopy {
		return 1
	}
	return v.Settings.MaxK
}

func (c *code) Uncode(v *View) { c.off = v.Now + v.Settings.ElectionTimeout }

func (c *code) Recode() { c.off = 0 }

// Frame leaves entries that no one coded as they stand in the log.
func (c *code) Frame(v *View, p *tracker.Progress) []protocol.Entry {
	entries := v.Log.Frame(p.Next, v.Settings.MaxFrameBytes, v.Settings.MaxFrameEntries)
	for i := range entries {
		if entries[i].Coded() {
			return c.dress(v, p, slices.Clone(entries))
		}
	}
	return entries
}

// dress sets the form in which p gets the entries. It does not touch their bodies: the sender cuts
// the rows.
func (c *code) dress(v *View, p *tracker.Progress, entries []protocol.Entry) []protocol.Entry {
	row, known := v.Members.Slot(p.ID)
	for i := range entries {
		e := &entries[i]
		switch {
		case !e.Coded():
		case e.Form != protocol.FormWhole: // then it is committed, and p makes its own row
			e.Form, e.Body = protocol.FormNone, nil
		case known && (e.Index <= v.Commit || e.Index > p.Bodies.Whole):
			e.Form = protocol.RowForm(row)
		}
	}
	return entries
}

// agreed is the highest index that a majority holds, in whatever form.
func (v *View) agreed() protocol.Index {
	return protocol.Index(v.Members.Writers().Agreed(func(id protocol.MemberID) uint64 {
		if id == v.Settings.Self {
			return uint64(v.Disk.Durable)
		}
		if p := v.Peer(id); p != nil {
			return uint64(p.Match)
		}
		return 0
	}))
}

// Stored counts this member like any other, and only with what its disk holds: the followers may
// commit an entry before the leader's own disk is done. It stops before the first coded entry that
// is not durable, even if later entries are (docs/internals/craft.md, G1).
func (c *code) Stored(v *View) protocol.Index {
	to := v.agreed()
	v.judgeLag(to)
	switch v.Settings.Mutant {
	case MutantNaiveMix:
		return to
	case MutantPaperPrefix:
		for to > v.Commit && slices.Contains(v.Coded.Indexes, to) && !v.durable(to) {
			to--
		}
		return to
	}
	for _, i := range v.Coded.Indexes {
		if i > to {
			break
		}
		if !v.durable(i) {
			return i - 1
		}
	}
	return to
}

// durable applies the predicate of docs/internals/craft.md, 2.1 to what is known to be on the voters' disks.
func (v *View) durable(i protocol.Index) bool {
	e := v.Log.At(i)
	return v.Members.Writers().Durable(int(e.K), v.Settings.ReadQuorum, func(id protocol.MemberID) protocol.Form {
		if id == v.Settings.Self {
			return v.Disk.Holds(e)
		}
		if p := v.Peer(id); p != nil {
			return p.Holds(i)
		}
		return protocol.FormNone
	})
}

func (c *code) Reset() { c.off, c.stalled, c.overdue = 0, 0, overdue{} }
