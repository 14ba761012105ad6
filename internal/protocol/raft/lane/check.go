package lane

import (
	"fmt"

	"github.com/braidlog/braid/protocol"
)

// Check verifies the invariants of lanes.
func (l *Lanes) Check(v *View) error {
	if l == nil {
		return nil
	}
	for i, h := range l.held {
		if i > 0 {
			if at, _ := l.find(h.lane); at != i {
				return fmt.Errorf("lanes: %v is not sorted", h.lane)
			}
		}
		if err := l.checkLane(v, h); err != nil {
			return fmt.Errorf("lane %s: %w", h.lane, err)
		}
	}
	end := l.confirmed.clone()
	if err := v.Log.Each(v.Given+1, v.Log.Last, func(e *protocol.Entry) error { end.apply(e); return nil }); err != nil {
		return err
	}
	if !end.equal(&l.end) {
		return fmt.Errorf("lanes: the log says %v at its end, not %v", end, l.end)
	}
	if l.wrong != nil {
		return l.wrong
	}
	return l.checkOwn(v)
}

func (l *Lanes) checkLane(v *View, h *heldLane) error {
	bytes, rows := 0, 0
	for i := range h.batches {
		b := &h.batches[i]
		if h.partial(h.base + 1 + uint64(i)) {
			rows++
		}
		if b.BodySize > 0 && (b.Form == protocol.FormNone || !b.Resident() ||
			h.lane == l.own.lane && b.Form != protocol.FormWhole) {
			return fmt.Errorf("holds %s of the body of %d, %d bytes", b.Form, b.Index, len(b.Body))
		}
		if n := h.base + 1 + uint64(i); uint64(h.batches[i].Index) != n {
			return fmt.Errorf("holds %d where %d belongs", h.batches[i].Index, n)
		}
		if c := h.cells[i]; c.number > l.cells || c.step > v.Disk.Seq ||
			i > 0 && (c.step < h.cells[i-1].step || c.number <= h.cells[i-1].number) {
			return fmt.Errorf("cell %d of step %d", c.number, c.step)
		}
		bytes += h.batches[i].Bytes()
	}
	switch m := l.confirmed.of(h.lane); {
	case rows != h.rows || len(h.pieces) > 0 && v.Role != protocol.Leader:
		return fmt.Errorf("%d rows, says %d, and %d pieces", rows, h.rows, len(h.pieces))
	case bytes != h.bytes || len(h.cells) != len(h.batches):
		return fmt.Errorf("%d bytes in %d batches, says %d", bytes, len(h.batches), h.bytes)
	case m != nil && h.base < m.to:
		return fmt.Errorf("holds from %d on what is committed up to %d", h.base+1, m.to)
	case !l.known(h.lane):
		return fmt.Errorf("is not open")
	}
	return h.checkPieces()
}

// checkOwn verifies the invariants of a member's own lane.
func (l *Lanes) checkOwn(v *View) error {
	o := &l.own
	held := 0
	if i, ok := l.find(o.lane); ok {
		held = len(l.held[i].batches)
		for j := range l.held[i].batches {
			if id := l.held[i].batches[j].ID; !o.ids[id] {
				return fmt.Errorf("own lane: %v is held and not known", id)
			}
		}
	}
	if held != len(o.ids) {
		return fmt.Errorf("own lane: %d batches are held, %d known", held, len(o.ids))
	}
	bytes := 0
	for i := range o.tail {
		if j, ok := l.find(o.lane); !ok || uint64(o.tail[i].Index) != o.first(l.held[j])+uint64(i) {
			return fmt.Errorf("own lane: %d of its tail is not before what is held", o.tail[i].Index)
		}
		bytes += o.tail[i].Bytes()
	}
	if bytes != o.tailBytes || bytes > v.tail() {
		return fmt.Errorf("own lane: a tail of %d bytes, says %d", bytes, o.tailBytes)
	}
	for _, t := range o.to {
		bytes, last := 0, t.acked
		for _, f := range t.frames {
			if f.last <= last {
				return fmt.Errorf("own lane to %s: frame to %d after %d", t.id, f.last, last)
			}
			bytes, last = bytes+f.bytes, f.last
		}
		if t.counted > t.acked || bytes != t.bytes || t.next <= t.acked || last >= t.next && len(t.frames) > 0 ||
			t.probe && len(t.frames) > 1 {
			return fmt.Errorf("own lane to %s: %d bytes in %d frames to %d, says %d, next %d", t.id, bytes, len(t.frames), last,
				t.bytes, t.next)
		}
	}
	return nil
}

// checkPieces: what a leader can make whole is whole. Otherwise a fence would skip it.
func (h *heldLane) checkPieces() error {
	for i := range h.pieces {
		n := uint64(h.pieces[i].batch.Index)
		if rows, like := h.rowsOf(n); n <= h.high()+1 && len(rows) >= int(like.K) {
			return fmt.Errorf("has %d rows of the body of %d, and not the whole", len(rows), n)
		}
	}
	return nil
}
