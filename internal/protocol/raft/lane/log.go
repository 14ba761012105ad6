package lane

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/protocol/raft/raftlog"
	"github.com/braidlog/braid/protocol"
)

// What the log says about lanes as it grows, is cut, committed and replaced.

// Appended takes in an entry that was just appended to the log.
func (l *Lanes) Appended(e *protocol.Entry) {
	if l != nil {
		if l.end.apply(e); e.Kind == protocol.EntryLane {
			l.opened = append(l.opened, openedLane{e.Index, e.ID.Session})
		}
		l.own.shorter.sent.appended(e)
	}
}

// Cut goes back to what the log says, which was cut.
func (l *Lanes) Cut(log *raftlog.Log, given protocol.Index) {
	if l != nil {
		l.end, l.opened, l.own.shorter.sent.index = l.confirmed.clone(), l.opened[:0], 0
		for i := given + 1; i <= log.Last; i++ {
			l.Appended(log.At(i))
		}
	}
}

// Fits reports whether entries that are to follow those before them say about lanes what they can.
func (l *Lanes) Fits(log *raftlog.Log, given protocol.Index, entries []protocol.Entry) bool {
	if l == nil || !slices.ContainsFunc(entries, func(e protocol.Entry) bool { _, ok := e.Range(); return ok }) {
		return true
	}
	end := l.end.clone()
	if entries[0].Index <= log.Last {
		end = l.confirmed.clone()
		for i := given + 1; i < entries[0].Index; i++ {
			end.apply(log.At(i))
		}
	}
	for i := range entries {
		if !end.fits(&entries[i]) {
			return false
		}
		end.apply(&entries[i])
	}
	return true
}

// Committed takes in entries that are committed. Groups whose payload is only on disk get it back from what is
// held of their lanes: a member finds its own batches in them.
func (l *Lanes) Committed(entries []protocol.Entry) {
	if l != nil {
		for i := range entries {
			e := &entries[i]
			if _, ok := e.Range(); ok && !e.Applicable() {
				if batches := l.ranged(e); batches != nil {
					group := protocol.NewGroup(batches)
					e.Payload = group.Payload
				}
			}
			l.confirmed.apply(e)
			l.earlier.note(l.own.lane, e)
		}
		last := entries[len(entries)-1].Index
		l.opened = slices.DeleteFunc(l.opened, func(o openedLane) bool { return o.index <= last })
	}
}

// Installed starts again after a snapshot.
func (l *Lanes) Installed(v *View, base *protocol.Base) {
	if l == nil {
		return
	}
	says, err := restored(base)
	if err != nil {
		panic(fmt.Sprintf("raft: member %s: a snapshot that was taken has no lanes: %v", v.Settings.Self, err))
	}
	says.again = l.confirmed.again
	l.confirmed, l.end, l.opened = says, says.clone(), nil
	l.earlier.last = max(l.earlier.last, base.Index)
	l.Settle(v)
}

// Settle gives up what is held and is committed, or belongs to lanes that are closed. The log has
// what is committed: its record is before the one that empties the cell.
func (l *Lanes) Settle(v *View) {
	if l == nil {
		return
	}
	says := &l.confirmed
	if v.Settings.Mutant == MutantDropEarly {
		says = &l.end
	}
	for _, h := range l.held {
		if !l.known(h.lane) {
			l.drop(v, h, h.high())
		} else if m := says.of(h.lane); m != nil && m.to > h.base {
			l.drop(v, h, m.to)
		}
	}
	l.countAnew(v)
	l.choose(v)
	l.held = slices.DeleteFunc(l.held, func(h *heldLane) bool { return len(h.batches) == 0 && !l.known(h.lane) })
}

// drop gives up a lane's entries up to a number.
func (l *Lanes) drop(v *View, h *heldLane, to uint64) {
	n := int(min(to, h.high()) - h.base)
	for i := range n {
		if h.bytes -= h.batches[i].Bytes(); h.rows > 0 && h.partial(h.base+1+uint64(i)) {
			h.rows--
		}
		if h.lane == l.own.lane {
			delete(l.own.ids, h.batches[i].ID)
		}
		v.Out.Record(protocol.Record{Kind: protocol.RecordDrop, Cell: protocol.Cell{Number: h.cells[i].number}})
	}
	h.base = max(to, h.base+uint64(n))
	if h.lane == l.own.lane {
		l.own.keepTail(h, h.batches[:n], v.tail(), l.known(h.lane))
	}
	if h.batches, h.cells = h.batches[n:], h.cells[n:]; len(h.batches) == 0 {
		h.batches, h.cells = nil, nil
	}
	if len(h.pieces) > 0 {
		h.dropPieces(func(n uint64) bool { return n <= h.base })
		l.joinNext(v, h)
	}
}
