package check

import (
	"fmt"
	"maps"
	"slices"
)

// RecordKind is the effect of a [Record] on a member's log.
type RecordKind uint8

const (
	// EntryRecord writes an entry at its index; everything from there on is replaced.
	EntryRecord RecordKind = 1 + iota
	// StateRecord sets the member's term and vote.
	StateRecord
	// BaseRecord records that a snapshot covers everything up to its index.
	BaseRecord
	// CellRecord writes cell Index. DropRecord empties it.
	CellRecord
	DropRecord
)

// Record is a record that a member makes durable.
type Record struct {
	Kind  RecordKind
	Index uint64 // Entry, Base, Cell, Drop
	Term  uint64
	// Digest identifies an entry's or a cell's content.
	Digest uint64
	Vote   uint64 // State: the candidate that the member voted for in Term
	// Holds is, for a cell, the entry that the member has accepted there; nil: none.
	Holds *Record
	// Voters is set for entries that change the membership, and for bases.
	Voters *Voters
}

// Voters decide: a quorum of Incoming and, unless empty, of Outgoing.
type Voters struct {
	Incoming, Outgoing []uint64
	// Zones has the zones of voters that have one. If it is not empty, a voter that it omits is in the zone "".
	Zones map[uint64]string
}

// half is one of the sets of voters.
type half struct {
	voters []uint64
	zones  map[uint64]string
}

// image is a log in one medium: memory or disk.
type image struct {
	base, baseTerm uint64
	baseVoters     *Voters
	entries        []Record // base+1 …
	term, vote     uint64
	// matched is an index up to which the image is known to agree with the decisions; see Ledger.match.
	matched uint64
	cells   map[uint64]cellOf // by number, of those that are not empty
}

type cellOf struct {
	digest uint64
	holds  *Record
}

// accepted is the entry at an index that a cell holds, nil if none does. Most cells have the number of
// their entry's index.
func (m *image) accepted(index uint64) *Record {
	if c := m.cells[index]; c.holds != nil && c.holds.Index == index {
		return c.holds
	}
	for _, c := range m.cells {
		if c.holds != nil && c.holds.Index == index {
			return c.holds
		}
	}
	return nil
}

func (m *image) last() uint64 { return m.base + uint64(len(m.entries)) }

// known is the latest term in the image: the recorded one, or the term of an entry or a snapshot.
func (m *image) known() uint64 {
	last, _ := m.termAt(m.last())
	return max(m.term, last)
}

// at returns the entry at an index, nil if there is none.
func (m *image) at(index uint64) *Record {
	if index <= m.base || index > m.last() {
		return nil
	}
	return &m.entries[index-m.base-1]
}

// termAt returns the term at an index; ok is false if it is not known.
func (m *image) termAt(index uint64) (term uint64, ok bool) {
	if index == m.base {
		return m.baseTerm, true
	}
	if e := m.at(index); e != nil {
		return e.Term, true
	}
	return 0, false
}

// configuration is the active membership, the last one in the log, and its index.
func (m *image) configuration() (*Voters, uint64) {
	for i := len(m.entries) - 1; i >= 0; i-- {
		if m.entries[i].Voters != nil {
			return m.entries[i].Voters, m.entries[i].Index
		}
	}
	return m.baseVoters, m.base
}

// configurationAt is the membership of the last entry up to an index that has one.
func (m *image) configurationAt(index uint64) *Voters {
	for i := min(index, m.last()); i > m.base; i-- {
		if e := m.at(i); e.Voters != nil {
			return e.Voters
		}
	}
	return m.baseVoters
}

// configurations adds to out the active membership after an index, and those after it, including those of accepted
// entries: each is active until the term of the next one has ended.
func (m *image) configurations(from uint64, out []*Voters) []*Voters {
	add := func(v *Voters) {
		if v != nil && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	if m.last() >= from {
		add(m.configurationAt(max(from, m.base)))
	}
	for i := range m.entries {
		if m.entries[i].Index > from {
			add(m.entries[i].Voters)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(m.cells)) {
		if c := m.cells[number]; c.holds != nil && c.holds.Index > m.last() {
			add(c.holds.Voters)
		}
	}
	return out
}

func (m *image) apply(r *Record) error {
	switch r.Kind {
	case StateRecord:
		m.term, m.vote = r.Term, r.Vote
	case EntryRecord:
		if r.Index <= m.base || r.Index > m.last()+1 {
			return fmt.Errorf("entry %d does not fit a log of %d…%d", r.Index, m.base+1, m.last())
		}
		m.entries = append(m.entries[:r.Index-m.base-1], *r)
		m.matched = min(m.matched, r.Index-1)
	case BaseRecord:
		m.rebase(r)
	case CellRecord:
		if m.cells == nil {
			m.cells = map[uint64]cellOf{}
		}
		m.cells[r.Index] = cellOf{r.Digest, r.Holds}
	case DropRecord:
		delete(m.cells, r.Index)
	}
	return nil
}

// rebase starts the log after a snapshot. Entries after the snapshot's place are kept if the log agrees with the
// snapshot there (Raft §7), otherwise they are void.
func (m *image) rebase(r *Record) {
	if t, ok := m.termAt(r.Index); ok && t == r.Term {
		m.entries = append([]Record(nil), m.entries[r.Index-m.base:]...)
	} else {
		m.entries = nil
		m.matched = 0
	}
	m.base, m.baseTerm, m.baseVoters = r.Index, r.Term, r.Voters
}

// same describes the difference between two images in what a restart must preserve; "" if there is none.
func (m *image) same(o *image) string {
	switch {
	case m.term != o.term || m.vote != o.vote:
		return fmt.Sprintf("term %d vote %x, not term %d vote %x", o.term, o.vote, m.term, m.vote)
	case m.base != o.base || m.baseTerm != o.baseTerm:
		return fmt.Sprintf("base %d of term %d, not %d of term %d", o.base, o.baseTerm, m.base, m.baseTerm)
	case m.last() != o.last():
		return fmt.Sprintf("last index %d, not %d", o.last(), m.last())
	case !maps.EqualFunc(m.cells, o.cells, func(a, b cellOf) bool { return a.digest == b.digest }):
		return fmt.Sprintf("other cells: %d of them, not %d", len(o.cells), len(m.cells))
	}
	for i := range m.entries {
		if a, b := &m.entries[i], &o.entries[i]; a.Term != b.Term || a.Digest != b.Digest {
			return fmt.Sprintf("entry %d of term %d digest %x, not term %d digest %x", b.Index, b.Term, b.Digest, a.Term,
				a.Digest)
		}
	}
	return ""
}

func (m *image) clone() image {
	c := *m
	c.entries = append([]Record(nil), m.entries...)
	c.cells = maps.Clone(m.cells)
	return c
}

// copyOf is one member's log, in its memory and on its disk.
type copyOf struct {
	memory, disk image
	// pending are the writes that are not known to be durable, in order.
	pending []pendingRecord
}

type pendingRecord struct {
	seq    uint64
	record Record
}

// durable moves durable records from pending to the disk's image.
func (c *copyOf) durable(seq uint64) error {
	n := 0
	for n < len(c.pending) && c.pending[n].seq <= seq {
		if err := c.disk.apply(&c.pending[n].record); err != nil {
			return err
		}
		n++
	}
	c.pending = append(c.pending[:0], c.pending[n:]...)
	return nil
}

// restart judges the state that a member found on its disk: everything durable, and perhaps the first pending
// records, complete and in order.
//
// The member may know of a later base: a snapshot that is not recorded in the log yet.
func (c *copyOf) restart(found *image) error {
	first := ""
	for i := 0; ; i++ {
		expect := c.disk.clone()
		if found.base > expect.base {
			expect.rebase(&Record{Kind: BaseRecord, Index: found.base, Term: found.baseTerm, Voters: found.baseVoters})
		}
		diff := expect.same(found)
		if diff == "" {
			break
		}
		if i == 0 {
			first = diff
		}
		if i == len(c.pending) {
			return fmt.Errorf("found on disk: %s", first)
		}
		if err := c.disk.apply(&c.pending[i].record); err != nil {
			return err
		}
	}
	c.pending = nil
	c.disk, c.memory = found.clone(), found.clone()
	return nil
}
