package lane

import (
	"slices"

	"github.com/braidlog/braid/internal/erasure"
	"github.com/braidlog/braid/protocol"
)

// Bodies in lanes (docs/internals/lcr.md, 1.5 (e)). A member that brings a batch with a large body cuts it as a
// leader would: each of the others gets its own row, and the member that leads the whole. What is held of
// the body is in the batch's cell. A leader puts a body into the log only if it holds it whole. From then
// on the body is as any other under the placement.

// k is the k for a body that this member brings now.
func (o *ownLane) k(v *View) uint8 {
	o.trackTargets(v)
	return v.Place.KOf(&v.View, func(id protocol.MemberID) bool {
		i := slices.IndexFunc(o.to, func(t *target) bool { return t.id == id })
		return i >= 0 && !o.to[i].paused && !o.to[i].probe
	})
}

// dressed are batches of this member's lane in the form for another member. It does not touch their
// bodies: the sender cuts the rows.
func (v *View) dressed(id protocol.MemberID, batches []protocol.Entry) []protocol.Entry {
	if id == v.Leader || untilCoded(batches) == len(batches) {
		return batches
	}
	row, known := v.Members.Slot(id)
	if !known {
		return batches
	}
	out := slices.Clone(batches)
	for i := range out {
		if out[i].Coded() {
			out[i].Form = protocol.RowForm(row)
		}
	}
	return out
}

// untilCoded and untilBody are how many batches come before the first one with a coded body, or with any.
func untilCoded(batches []protocol.Entry) (n int) {
	for n < len(batches) && batches[n].K < 2 {
		n++
	}
	return n
}

func untilBody(batches []protocol.Entry) (n int) {
	for n < len(batches) && batches[n].BodySize == 0 {
		n++
	}
	return n
}

// ownForm reports whether a batch is in a form in which this member may hold it: rows of others would
// count twice.
func (v *View) ownForm(e *protocol.Entry) bool {
	if e.BodySize == 0 {
		return true
	}
	row, known := v.Members.Slot(v.Settings.Self)
	return e.Resident() && (e.Form == protocol.FormWhole || known && e.Coded() && e.Form == protocol.RowForm(row))
}

// proven reports whether a batch of this member's lane that a quorum acknowledged can be made whole whatever
// crashes (docs/internals/craft.md, 2.1). Of the others it counts rows only, even of those that were sent the whole.
func (o *ownLane) proven(v *View, h *heldLane, n uint64) bool {
	b := &h.batches[n-h.base-1]
	if !b.Coded() || v.Settings.Mutant == MutantRowsMajority {
		return true
	}
	return v.Members.Electorate(v.Given).Durable(int(b.K), v.Settings.ReadQuorum,
		func(id protocol.MemberID) protocol.Form {
			if id == v.Settings.Self {
				return protocol.FormWhole
			}
			i := slices.IndexFunc(o.to, func(t *target) bool { return t.id == id })
			if row, known := v.Members.Slot(id); i >= 0 && known && o.to[i].counted >= n {
				return protocol.RowForm(row)
			}
			return protocol.FormNone
		})
}

// piece is what another member sent of a batch whose body this leader holds only in part.
type piece struct {
	from  protocol.MemberID
	batch protocol.Entry
}

// partial reports whether of the batch with that number a part of its body is held, but not the whole.
func (h *heldLane) partial(n uint64) bool {
	if n > h.base && n <= h.high() {
		b := &h.batches[n-h.base-1]
		return b.BodySize > 0 && b.Form != protocol.FormWhole
	}
	return n == h.high()+1 && slices.ContainsFunc(h.pieces, func(p piece) bool { return uint64(p.batch.Index) == n })
}

// wholeTo is how far a lane is held whole, from a number on up to which that is so.
func (h *heldLane) wholeTo(from uint64) uint64 {
	n := h.high()
	if h.rows > 0 {
		for n = max(from, h.base); n < h.high() && !h.partial(n+1); {
			n++
		}
	}
	return n
}

// takePiece takes what this leader is missing of a batch's body: a row of another member, or the whole of what it holds
// a row of. It reports whether the batch is of that kind.
func (l *Lanes) takePiece(v *View, h *heldLane, from protocol.MemberID, e *protocol.Entry) bool {
	n := uint64(e.Index)
	whole := e.Form == protocol.FormWhole
	if v.Role != protocol.Leader || n <= h.base || whole && !h.partial(n) || !whole && v.ownForm(e) || !e.Resident() {
		return false
	}
	switch {
	case whole:
		l.madeWhole(v, h, e)
		l.joinNext(v, h)
		return true
	case n <= h.high() && !h.partial(n):
		return true // nothing is missing of it
	}
	bytes := e.Bytes()
	if h.hasPiece(from, n) {
		return true
	}
	for i := range h.pieces {
		bytes += h.pieces[i].batch.Bytes()
	}
	if m := l.end.of(h.lane); m != nil && n == m.to+1 || bytes <= v.window() {
		h.pieces = append(h.pieces, piece{from, *e})
		l.joinPieces(v, h, n)
		l.joinNext(v, h)
	}
	return true
}

// rowsOf are the distinct rows that are here of a batch's body, and one of the batches that have them.
func (h *heldLane) rowsOf(n uint64) (rows []erasure.Row, like *protocol.Entry) {
	add := func(e *protocol.Entry) {
		row, ok := e.Form.Row()
		if ok && !slices.ContainsFunc(rows, func(o erasure.Row) bool { return o.R == row }) {
			like, rows = e, append(rows, erasure.Row{R: row, Bytes: e.Body})
		}
	}
	if n > h.base && n <= h.high() {
		add(&h.batches[n-h.base-1])
	}
	for i := range h.pieces {
		if p := &h.pieces[i]; uint64(p.batch.Index) == n {
			add(&p.batch)
		}
	}
	return rows, like
}

// joinNext continues after a batch was added. It may be the last missing row of its own body, or come before a batch
// whose rows are complete.
func (l *Lanes) joinNext(v *View, h *heldLane) {
	for n := uint64(0); len(h.pieces) > 0 && n < h.high(); {
		n = h.high()
		l.joinPieces(v, h, n)
		l.joinPieces(v, h, n+1)
	}
}

// joinPieces makes a body whole if there are enough rows of it, and what comes before it in the lane.
func (l *Lanes) joinPieces(v *View, h *heldLane, n uint64) {
	rows, like := h.rowsOf(n)
	if n > h.high()+1 || like == nil || len(rows) < int(like.K) {
		return
	}
	made := *like
	body, err := erasure.Join(int(made.BodySize), made.K, rows[:made.K])
	if err != nil || protocol.Digest(body) != made.BodyDigest {
		h.dropPieces(func(at uint64) bool { return at == n }) // they are asked for again
		return
	}
	made.Form, made.Body = protocol.FormWhole, body
	l.madeWhole(v, h, &made)
}

// madeWhole takes a batch of which this leader had a part, or nothing. A row that the disk has stays
// there: what goes into the log is written whole with its entry.
func (l *Lanes) madeWhole(v *View, h *heldLane, e *protocol.Entry) {
	n := uint64(e.Index)
	h.dropPieces(func(at uint64) bool { return at == n })
	if n > h.high() {
		if n == h.high()+1 && v.takesInto(h, e) {
			l.store(v, h, e)
		}
		return
	}
	h.batches = slices.Clone(h.batches)
	b := &h.batches[n-h.base-1]
	h.bytes -= b.Bytes()
	b.Form, b.Body = protocol.FormWhole, e.Body
	h.bytes += b.Bytes()
	h.rows--
}

func (h *heldLane) hasPiece(from protocol.MemberID, n uint64) bool {
	return slices.ContainsFunc(h.pieces, func(p piece) bool { return p.from == from && uint64(p.batch.Index) == n })
}

func (h *heldLane) dropPieces(of func(n uint64) bool) {
	h.pieces = slices.DeleteFunc(h.pieces, func(p piece) bool { return of(uint64(p.batch.Index)) })
}

// Gather asks for what this leader is missing of bodies, so that it cannot put them into the log: first the member
// whose lane it is, then all.
func (l *Lanes) Gather(v *View) {
	for _, h := range l.held {
		m := l.end.of(h.lane)
		if h.rows+len(h.pieces) == 0 || m == nil || !h.partial(m.to+1) || v.Now < h.fetched+v.Settings.Heartbeat {
			continue
		}
		h.fetched = v.Now
		if h.asks++; h.asks%2 == 1 {
			l.fetch(v, h.lane.Member, h)
			continue
		}
		for _, p := range v.Peers {
			if !h.hasPiece(p.ID, m.to+1) {
				l.fetch(v, p.ID, h)
			}
		}
	}
}

// seen reports whether a member's part of the first batch that the log is missing of a lane is here, and the batch
// cannot be made whole. If that is so of a quorum, the batch was never accepted, nor any after it: of what is accepted
// any quorum holds enough.
func (l *Lanes) seen(v *View, lane protocol.Lane, id protocol.MemberID) bool {
	h, m := l.hold(lane), l.end.of(lane)
	if m == nil || !h.partial(m.to+1) {
		return false
	}
	return id == v.Settings.Self || v.Settings.Mutant == MutantCutUnseen || h.hasPiece(id, m.to+1)
}
