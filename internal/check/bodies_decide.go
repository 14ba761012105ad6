package check

import (
	"fmt"
	"maps"
	"slices"
)

// Decide records that the entry (index, term) was decided by the voters (nil: by the known ones): from now on its
// body, if it has one, is live.
func (b *Bodies) Decide(index, term uint64, by *Voters) error {
	f := b.facts[slot{index, term}]
	if f == nil || f.k == 0 || f.dropped || b.live[index] != nil {
		return nil
	}
	l := &liveBody{term: term, fact: f}
	b.live[index] = l
	b.touched[index] = true
	halves := b.halves
	if by != nil {
		halves = by.halves()
	}
	for _, h := range halves {
		whole, rows := b.holders(index, term, h.voters, nil)
		if whole+rows < need(b.quorums.Write, len(h.voters)) && !b.quorums.grid() {
			return fmt.Errorf("C1: (%d, term %d) is decided with %d whole and %d rows on the disks of %x", index, term, whole,
				rows, h.voters)
		}
		if err := b.judge(index, l, []half{h}); err != nil {
			return err
		}
	}
	return nil
}

func (v *Voters) halves() []half {
	if len(v.Outgoing) > 0 {
		return []half{{v.Incoming, v.Zones}, {v.Outgoing, v.Zones}}
	}
	return []half{{v.Incoming, v.Zones}}
}

// Void records that no member applies the entry (index, term), because its instance ended before it. Members may drop
// its body before it is decided.
func (b *Bodies) Void(index, term uint64) {
	if f := b.facts[slot{index, term}]; f != nil {
		f.whole, f.dropped = nil, true
	}
}

// Drop records that nothing refers to the body at an index any more.
func (b *Bodies) Drop(index uint64) {
	if l := b.live[index]; l != nil {
		l.fact.whole, l.fact.dropped = nil, true
		delete(b.live, index)
		delete(b.touched, index)
	}
}

// Configure records that a membership was decided: its voters, which must be able to make every live body whole, and
// its members' rows.
func (b *Bodies) Configure(v *Voters, slots map[uint64]uint8) error {
	for _, m := range slices.Sorted(maps.Keys(slots)) {
		s := slots[m]
		if other, ok := b.slots[s]; ok && other != m {
			return fmt.Errorf("C5: members %x and %x have row %d", other, m, s)
		}
		b.slots[s] = m
	}
	b.halves = v.halves()
	for index := range b.live {
		b.touched[index] = true
	}
	return nil
}

func (b *Bodies) reads(n int) int { return need(b.quorums.Read, n) }

// whole reports whether a voter's disk holds the whole body.
func (b *Bodies) whole(index, term, voter uint64) bool {
	d := b.disks[voter]
	return d != nil && d.disk[index].term == term && d.disk[index].form == WholeBody && !d.disk[index].loose
}

// holders counts |A| and |B| of docs/internals/craft.md, 2.1: the voters whose disks hold the whole body, and the
// distinct rows on the disks of the others. but, if set, replaces the copy on a disk.
func (b *Bodies) holders(index, term uint64, voters []uint64, but func(uint64, heldBody) heldBody) (whole, rows int) {
	var seen [256]bool
	for _, m := range voters {
		d := b.disks[m]
		if d == nil {
			continue
		}
		h := d.disk[index]
		if but != nil {
			h = but(m, h)
		}
		switch {
		case h.term != term || h.form == NoBody || h.loose:
		case h.form == WholeBody:
			whole++
		case !seen[h.form]:
			seen[h.form] = true
			rows++
		}
	}
	return whole, rows
}

// judge judges that any quorum of one of the halves can make a body whole (C1).
func (b *Bodies) judge(index uint64, l *liveBody, halves []half) error {
	text := ""
	for _, h := range halves {
		voters := h.voters
		whole, rows := b.holders(index, l.term, voters, nil)
		if b.quorums.grid() {
			if !b.quorums.elect(h, func(id uint64) bool { return !b.whole(index, l.term, id) }) {
				return nil
			}
		} else if spare := len(voters) - b.reads(len(voters)); whole >= spare+1 ||
			l.fact.k > 1 && whole+rows >= spare+int(l.fact.k) {
			return nil
		}
		text += fmt.Sprintf(" whole on %d and in %d rows on the disks of %x;", whole, rows, voters)
	}
	return fmt.Errorf("C1: the body of (%d, term %d), k=%d, is%s: %s", index, l.term, l.fact.k, text, b.where(index))
}

func (b *Bodies) where(index uint64) string {
	text := ""
	for _, m := range slices.Sorted(maps.Keys(b.disks)) {
		if h, ok := b.disks[m].disk[index]; ok {
			text += fmt.Sprintf("%x has %s of term %d; ", m, h.form, h.term)
		}
	}
	return text
}

// Check judges every live body whose holders changed since the last call.
func (b *Bodies) Check() error {
	if len(b.touched) == 0 {
		return nil
	}
	for _, index := range slices.Sorted(maps.Keys(b.touched)) {
		delete(b.touched, index)
		if l := b.live[index]; l != nil && len(b.halves) > 0 {
			if err := b.judge(index, l, b.halves); err != nil {
				return err
			}
		}
	}
	return nil
}

// Live returns the indexes of all live bodies, ascending.
func (b *Bodies) Live() []uint64 { return slices.Sorted(maps.Keys(b.live)) }

// Holds returns the form of a member's undamaged copy of the live body at an index.
func (b *Bodies) Holds(member, index uint64) Form {
	l, d := b.live[index], b.disks[member]
	if l == nil || d == nil {
		return NoBody
	}
	if h := d.disk[index]; h.term == l.term && !h.bad && !h.loose {
		return h.form
	}
	return NoBody
}

// Recoverable reports whether the undamaged copies of those members make the live body at an index whole. A body that
// is not live needs none.
func (b *Bodies) Recoverable(index uint64, members []uint64) bool {
	whole, rows := b.good(index, members)
	l := b.live[index]
	return l == nil || whole > 0 || rows >= int(l.fact.k)
}

// RecoverableFromRows is Recoverable if every whole copy were only a row.
func (b *Bodies) RecoverableFromRows(index uint64, members []uint64) bool {
	whole, rows := b.good(index, members)
	l := b.live[index]
	return l == nil || whole+rows >= int(l.fact.k)
}

// good counts the members with an undamaged whole copy, and the others' distinct rows.
func (b *Bodies) good(index uint64, members []uint64) (whole, rows int) {
	var seen [256]bool
	for _, m := range members {
		switch f := b.Holds(m, index); {
		case f == WholeBody:
			whole++
		case f != NoBody && !seen[f]:
			seen[f] = true
			rows++
		}
	}
	return whole, rows
}

// Whole returns the live body at an index as it was proposed, nil if it is not known.
func (b *Bodies) Whole(index uint64) []byte {
	if l := b.live[index]; l != nil {
		return l.fact.whole
	}
	return nil
}

// OnDisk returns the copy on a member's disk at an index: the entry's term and the form.
func (b *Bodies) OnDisk(member, index uint64) (term uint64, form Form) {
	h := b.of(member).disk[index]
	return h.term, h.form
}
