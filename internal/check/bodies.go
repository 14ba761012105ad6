package check

import (
	"fmt"
	"maps"
	"slices"
)

// Form is the stored form of a body: none, whole, or one row of its code.
type Form uint8

// Forms that are not rows.
const (
	NoBody Form = iota
	WholeBody
	firstRow
)

// RowForm is the form that holds row r.
func RowForm(r uint8) Form { return firstRow + Form(r) }

// Row returns the row of the form; false if it is not a row.
func (f Form) Row() (r uint8, ok bool) { return uint8(f - firstRow), f >= firstRow }

func (f Form) String() string {
	switch f {
	case NoBody:
		return "nothing"
	case WholeBody:
		return "the whole"
	}
	return fmt.Sprintf("row %d", uint8(f-firstRow))
}

// covers reports whether a member that stores f may claim to store g.
func (f Form) covers(g Form) bool { return f == g || f == WholeBody || g == NoBody }

// Body is a member's copy of the body of the entry (Index, Term).
type Body struct {
	Index, Term uint64
	// K is the number of rows that make the body whole; 1 if it is not coded, 0 if there is none.
	K            uint8
	Form         Form
	Size, Digest uint32
	// Bytes is the body in that form; nil if it was not read.
	Bytes []byte
	// Unreadable: it was found, and its bytes are damaged.
	Unreadable bool
}

// Bodies tracks the bodies of one instance's entries on every member's disk, and judges the invariants of
// docs/internals/craft.md, 2.8. All its methods return an error at the first violation.
//
// A body is live from when its entry is decided until the state machine drops it.
type Bodies struct {
	// Appends: logs hold decided entries only. So a written entry replaces none after it, and the bodies of their cells
	// are kept.
	Appends bool

	cut   func(body []byte, k, row uint8) ([]byte, error)
	facts map[slot]*bodyFact
	disks map[uint64]*bodyDisk
	live  map[uint64]*liveBody // by index
	// halves are sets of voters. Any quorum of one of them must be able to make every live body whole. While joint, one
	// half is enough, because a leader then has answers from quorums of both.
	halves []half
	slots  map[uint8]uint64 // row → the member that has it in a decided configuration
	// quorums are those of elections and of decisions.
	quorums Quorums
	// touched are live indexes whose holders changed since the last Check.
	touched map[uint64]bool
}

// bodyFact is what (index, term) determines.
type bodyFact struct {
	k            uint8
	size, digest uint32
	whole        []byte
	dropped      bool // it is not used again
}

type liveBody struct {
	term uint64
	fact *bodyFact
}

// heldBody is what one medium stores at an index.
type heldBody struct {
	term uint64
	form Form
	bad  bool // damaged on purpose, and not repaired since
	// loose: the log, or the member's vote, has another entry there, and this one is decided. The store keeps the body,
	// and it counts again if its entry returns; but a start may drop it. Until then it does not count.
	loose bool
}

type bodyDisk struct {
	memory, disk map[uint64]heldBody
	top          uint64 // the highest key of both maps
	pending      []pendingBody
	// ever is everything that was written here; it may reappear after a crash. True: it was durable once.
	ever map[uint64]map[heldBody]bool
	// restored are the terms of bodies, by index, that arrived for the state and not with an entry: they did not count
	// in the decision.
	restored map[uint64]uint64
	// lost is the term in which the disk lost its copy at an index. released: the member dropped it. A whole copy that
	// becomes a row is lost in the member's term at that time.
	lost map[uint64]uint64
	// spoilt are the terms of bodies, by index, that were damaged on purpose when the member dropped them. A start from
	// an earlier snapshot may find them again.
	spoilt map[uint64]uint64
}

const released = ^uint64(0)

// pendingBody is a write that is not known to be durable: an entry with its body, or (alone) a
// body in another form. bare: an entry that has no body anywhere.
type pendingBody struct {
	seq   uint64
	index uint64
	held  heldBody
	// appended: it replaces no entry after it.
	alone, bare, appended bool
	in                    uint64 // the member's term, if that is known
}

// NewBodies returns a judge without bodies. cut computes rows, as the members do.
func NewBodies(cut func(body []byte, k, row uint8) ([]byte, error)) *Bodies {
	return &Bodies{cut: cut, facts: map[slot]*bodyFact{}, disks: map[uint64]*bodyDisk{}, live: map[uint64]*liveBody{},
		slots: map[uint8]uint64{}, touched: map[uint64]bool{}}
}

// Flexible sets quorums that are not majorities. With columns of voters, bodies are whole.
func (b *Bodies) Flexible(q Quorums) { b.quorums = q }

func (b *Bodies) of(member uint64) *bodyDisk {
	d := b.disks[member]
	if d == nil {
		d = &bodyDisk{memory: map[uint64]heldBody{}, disk: map[uint64]heldBody{}, ever: map[uint64]map[heldBody]bool{},
			lost: map[uint64]uint64{}, restored: map[uint64]uint64{}, spoilt: map[uint64]uint64{}}
		b.disks[member] = d
	}
	return d
}

// Entry records that a member writes an entry in step seq: everything from its index on is replaced. Entries without
// a body count too (K 0).
func (b *Bodies) Entry(member, seq uint64, e Body) error {
	delete(b.of(member).restored, e.Index)
	return b.put(member, 0, seq, e, false)
}

// Body records that a member replaces, in step seq, its copy of an entry's body.
func (b *Bodies) Body(member, seq uint64, e Body) error {
	delete(b.of(member).restored, e.Index)
	return b.put(member, 0, seq, e, true)
}

// Restore is Body for bodies that the member's state needs, and for whole copies that become rows. The member's log
// may not have the entry. The member is in term in, whose leader it may have answered before.
func (b *Bodies) Restore(member, in, seq uint64, e Body) error {
	d := b.of(member)
	if h := d.memory[e.Index]; h.term != e.Term || h.form == NoBody {
		d.restored[e.Index] = e.Term
	}
	return b.put(member, in, seq, e, true)
}

func (b *Bodies) put(member, in, seq uint64, e Body, alone bool) error {
	if err := b.same(member, &e); err != nil {
		return err
	}
	d := b.of(member)
	delete(d.spoilt, e.Index)
	p := pendingBody{in: in, seq: seq, index: e.Index, held: heldBody{term: e.Term, form: e.Form}, alone: alone,
		bare: !alone && e.K == 0, appended: b.Appends}
	if was, ok := d.memory[e.Index]; alone && ok && was.term == e.Term && !was.bad && !e.Form.covers(was.form) {
		if err := b.mayPrune(member, &e, was.form); err != nil {
			return err
		}
	}
	d.write(d.memory, &p, b.isLive)
	if d.ever[e.Index] == nil {
		d.ever[e.Index] = map[heldBody]bool{}
	}
	if _, known := d.ever[e.Index][p.held]; !known {
		d.ever[e.Index][p.held] = false // not durable yet
	}
	d.pending = append(d.pending, p)
	return nil
}

// same judges that a body and every row of it are the same on all members (C4).
func (b *Bodies) same(member uint64, e *Body) error {
	key := slot{e.Index, e.Term}
	f := b.facts[key]
	if f == nil {
		f = &bodyFact{k: e.K, size: e.Size, digest: e.Digest}
		b.facts[key] = f
	}
	if f.k != e.K || f.size != e.Size || f.digest != e.Digest {
		return fmt.Errorf("C4: member %x has the body of (%d, term %d) with k=%d, %d bytes, digest %08x; "+
			"elsewhere it has k=%d, %d bytes, digest %08x",
			member, e.Index, e.Term, e.K, e.Size, e.Digest, f.k, f.size, f.digest)
	}
	row, isRow := e.Form.Row()
	if isRow && e.K < 2 {
		return fmt.Errorf("C4: member %x holds %s of (%d, term %d), which is not coded", member, e.Form, e.Index, e.Term)
	}
	if e.Form == NoBody || e.Bytes == nil || f.dropped {
		return nil
	}
	if e.Form == WholeBody && f.whole == nil {
		f.whole = e.Bytes
	}
	if f.whole == nil {
		return fmt.Errorf("C4: member %x holds %s of (%d, term %d) before anybody held it whole", member, e.Form, e.Index,
			e.Term)
	}
	want, err := f.whole, error(nil)
	if isRow {
		if want, err = b.cut(f.whole, e.K, row); err != nil {
			return err
		}
	}
	if !slices.Equal(want, e.Bytes) {
		return fmt.Errorf("C4: member %x holds %d bytes as %s of (%d, term %d), which are not that", member, len(e.Bytes),
			e.Form, e.Index, e.Term)
	}
	return nil
}

// mayPrune judges that a member may replace a whole body by a row (C9): the entry is decided, and enough copies
// remain without this one, whichever minority fails. If the cluster became too small for rows, whole copies must
// remain. A member that does not know that yet, or is no longer a voter, may still drop its own if others have
// enough.
func (b *Bodies) mayPrune(member uint64, e *Body, was Form) error {
	l := b.live[e.Index]
	if b.facts[slot{e.Index, e.Term}].dropped {
		return nil
	}
	if l == nil || l.term != e.Term {
		return fmt.Errorf("C9: member %x goes back from %s to %s of (%d, term %d), which is not decided", member, was, e.Form,
			e.Index, e.Term)
	}
	for _, h := range b.halves {
		voters := h.voters
		whole, rows := b.holders(e.Index, l.term, voters, func(m uint64, h heldBody) heldBody {
			if m == member {
				h = heldBody{term: e.Term, form: e.Form}
			}
			return h
		})
		n := len(voters)
		tooSmall := int(e.K) > b.reads(n) && whole > n-b.reads(n)
		if whole+rows >= n-b.reads(n)+int(e.K) || tooSmall || !slices.Contains(voters, member) {
			return nil
		}
	}
	return fmt.Errorf("C9: member %x goes back from %s to %s of (%d, term %d) with k=%d; that leaves too little: %s",
		member, was, e.Form, e.Index, e.Term, e.K, b.where(e.Index))
}

// isLive reports whether a copy is of a live body.
func (b *Bodies) isLive(index uint64, h heldBody) bool {
	l := b.live[index]
	return l != nil && l.term == h.term
}

// write applies a write to a medium. Live bodies after a written entry are kept, because they may have been restored
// before their entries arrive. The Ledger judges that no decided entry is replaced.
func (d *bodyDisk) write(m map[uint64]heldBody, p *pendingBody, live func(uint64, heldBody) bool) (changed []uint64) {
	was := m[p.index]
	if !p.alone {
		last := d.top
		if p.appended {
			last = p.index
		}
		for i := p.index; i <= last; i++ {
			h, ok := m[i]
			switch loose := p.bare && i == p.index && live(i, h); {
			case loose:
				h.loose = true
				m[i] = h
			case ok && (i == p.index || !live(i, h)):
				delete(m, i)
				changed = append(changed, i)
			}
		}
	}
	d.top = max(d.top, p.index)
	switch {
	case m[p.index].loose: // it is kept
	case p.held.form == NoBody && !p.alone && was.form != NoBody && was.term == p.held.term:
		was.loose = false
		m[p.index] = was // an entry that arrives without its body replaces none
	case p.held.form == NoBody:
		delete(m, p.index)
	default:
		m[p.index] = p.held
	}
	return append(changed, p.index)
}

// Durable records that everything that a member wrote up to step seq is durable.
func (b *Bodies) Durable(member, seq uint64) {
	d := b.of(member)
	n := 0
	for n < len(d.pending) && d.pending[n].seq <= seq {
		p := &d.pending[n]
		was, lost := d.disk[p.index], d.lost[p.index]
		for _, i := range d.write(d.disk, p, b.isLive) {
			if d.lost[i] = p.held.term; b.live[i] != nil {
				b.touched[i] = true
			}
		}
		switch {
		case !p.alone || was.term != p.held.term: // the earlier copy was of another entry
		case p.held.form.covers(was.form):
			d.lost[p.index] = lost
		default:
			d.lost[p.index] = max(lost, p.in)
		}
		d.ever[p.index][p.held] = true
		n++
	}
	d.pending = append(d.pending[:0], d.pending[n:]...)
}

func (b *Bodies) touch(indexes []uint64) {
	for _, i := range indexes {
		if b.live[i] != nil {
			b.touched[i] = true
		}
	}
}

// Release records that a member drops its copy of the body of (index, term).
func (b *Bodies) Release(member, index, term uint64) {
	d := b.of(member)
	for _, m := range [...]map[uint64]heldBody{d.memory, d.disk} {
		if h := m[index]; h.term == term {
			if h.bad {
				d.spoilt[index] = term
			}
			delete(m, index)
			d.lost[index] = released
		}
	}
	b.touch([]uint64{index})
}

// Refer records that a member's state durably refers to the body of (index, term). The copy is kept, whatever entry
// the log has there.
func (b *Bodies) Refer(member, index, term uint64) {
	d := b.of(member)
	for _, m := range [...]map[uint64]heldBody{d.memory, d.disk} {
		if h, ok := m[index]; ok && h.term == term {
			h.loose = false
			m[index] = h
		}
	}
	b.touch([]uint64{index})
}

// Damage records that the simulator damaged the copy on a member's disk at an index.
func (b *Bodies) Damage(member, index uint64) {
	d := b.of(member)
	for _, m := range [...]map[uint64]heldBody{d.memory, d.disk} {
		if h, ok := m[index]; ok {
			h.bad = true
			m[index] = h
		}
	}
}

// Voted records for which commands a member that has recovered has voted, in slots that are not decided there. Its
// body of another command in such a slot may be gone.
func (b *Bodies) Voted(member uint64, voted func(index uint64) (term uint64, ok bool)) {
	d := b.of(member)
	for index, h := range d.disk {
		if term, ok := voted(index); ok && term != h.term {
			h.loose = true
			d.disk[index] = h
		}
	}
}

// Start records the bodies that a member found on its disk: everything durable, and perhaps others.
func (b *Bodies) Start(member uint64, found []Body) error {
	d := b.of(member)
	now := make(map[uint64]heldBody, len(found))
	for i := range found {
		f := &found[i]
		h := heldBody{term: f.Term, form: f.Form}
		if f.Unreadable {
			if h.bad = d.spoilt[f.Index] == f.Term; h.bad {
				now[f.Index] = h
			}
			continue
		}
		if _, ok := d.ever[f.Index][h]; !ok {
			return fmt.Errorf("member %x restarts: finds %s of (%d, term %d), which it never wrote", member, f.Form, f.Index,
				f.Term)
		}
		if err := b.same(member, f); err != nil {
			return err
		}
		d.ever[f.Index][h] = true
		h.bad = d.spoilt[f.Index] == f.Term
		now[f.Index] = h
	}
	for _, index := range slices.Sorted(maps.Keys(d.disk)) {
		was := d.disk[index]
		h, ok := now[index]
		switch l := b.live[index]; {
		case was.bad:
			now[index] = was // a copy found in its place does not count until it is repaired
		case was.loose && ok && h.term == was.term:
			now[index] = was
		case was.loose:
		case l == nil || l.term != was.term || ok && h.term == was.term && (h.form == was.form || d.replaces(index, h)):
		default:
			return fmt.Errorf("member %x restarts: has %s of (%d, term %d), which is decided; it had %s", member, h.form, index,
				was.term, was.form)
		}
		b.touch([]uint64{index})
	}
	for index := range now {
		d.top = max(d.top, index)
		b.touch([]uint64{index})
	}
	d.disk, d.memory, d.pending = now, maps.Clone(now), nil
	return nil
}

// replaces reports whether a pending write is the copy that was found.
func (d *bodyDisk) replaces(index uint64, h heldBody) bool {
	return slices.ContainsFunc(d.pending, func(p pendingBody) bool { return p.index == index && p.held == h })
}

// ReportHolds records that a member reports its copy of (index, term) to the leader of term in (C7). If the message
// is sent late, that leader or a later one may have replaced the entry meanwhile. Or the member learned, from that
// leader or a later one, that the entry is decided, and its whole copy became a row. A report in a later term is
// about the row.
func (b *Bodies) ReportHolds(member, in, index, term uint64, form Form) error {
	d := b.of(member)
	h := b.on(member, index, term)
	if h.form.covers(form) || d.lost[index] >= in && d.ever[index][heldBody{term: term, form: form}] {
		return nil
	}
	return fmt.Errorf("C7: member %x says that it holds %s of (%d, term %d); its disk has %s", member, form, index, term,
		h.form)
}

// AnswerHolds records that a member answers a new leader with its copy. If it reported less than it has, that leader
// could delete a decided entry (C2). It need not report a body that was only restored: its log, which answers, may
// not have the entry yet.
func (b *Bodies) AnswerHolds(member, in, index, term uint64, form Form) error {
	if h, l := b.on(member, index, term),
		b.live[index]; l != nil && l.term == term && !h.bad && !form.covers(h.form) && b.of(member).restored[index] != term {
		return fmt.Errorf("C2: member %x answers that it holds %s of (%d, term %d); its disk has %s", member, form, index,
			term, h.form)
	}
	return b.ReportHolds(member, in, index, term, form)
}

func (b *Bodies) on(member, index, term uint64) heldBody {
	if h := b.of(member).disk[index]; h.term == term && !h.loose {
		return h
	}
	return heldBody{}
}

// Damaged reports whether the simulator damaged the copy on a member's disk at an index.
func (b *Bodies) Damaged(member, index uint64) bool { return b.of(member).disk[index].bad }

// Serve records that a member sends another one these bytes as the body in that form.
func (b *Bodies) Serve(member uint64, e Body) error { return b.same(member, &e) }
