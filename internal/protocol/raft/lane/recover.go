package lane

import (
	"encoding/binary"
	"fmt"

	"github.com/braidlog/braid/protocol"
)

// Recover finds what the disk holds of lanes. The log is loaded, and its commit index known. A log without a profile
// may be started without the lanes that it has; that is refused.
func Recover(v *View, rec *protocol.Recovered) (*Lanes, error) {
	l := &Lanes{}
	l.own = ownLane{lane: v.Settings.Session, ids: map[protocol.ProposalID]bool{}}
	var err error
	if l.confirmed, err = restored(&rec.Base); err != nil {
		return nil, err
	}
	l.confirmed.again = v.Settings.Mutant == MutantNumbersAgain
	l.Cut(v.Log, v.Given)
	if v.Members.Config.Profile.Version == 0 && !v.On && l.end.gen > 0 {
		return nil, &protocol.SettingsError{Detail: "the log has lanes, and members that start without lanes would lose " +
			"what was accepted: start with lanes (protocol lcr)"}
	}
	for i := range rec.Entries {
		l.earlier.note(l.own.lane, &rec.Entries[i])
	}
	for _, c := range rec.Cells {
		if err := l.recoverCell(c); err != nil {
			return nil, err
		}
	}
	l.sameName(v)
	l.Applied(0)
	return l, nil
}

// sameName is for a mutant: this incarnation continues with the lane of the one before.
func (l *Lanes) sameName(v *View) {
	if m := l.end.member(v.Settings.Self); m != nil && v.Settings.Mutant == MutantSameName {
		l.own.lane = m.lane
		for _, b := range l.hold(m.lane).batches {
			l.own.ids[b.ID] = true
		}
	}
}

// recoverCell takes a batch that the disk holds of a lane. Which lanes are committed how far may not be known yet, as
// the commit index that is on disk lags. Batches that were given up are committed. So the first batch that is there
// says where the lane continues.
func (l *Lanes) recoverCell(c protocol.Cell) error {
	wrong := func(detail string) error { return &protocol.CorruptError{What: "cell of a lane", Detail: detail} }
	l.cells = max(l.cells, c.Number)
	switch {
	case len(c.Data) < cellHead, c.Number == fenceCell && len(c.Data) != cellHead+8:
		return wrong(fmt.Sprintf("%d bytes", len(c.Data)))
	case c.Number == fenceCell:
		l.fence.number = binary.LittleEndian.Uint64(c.Data[cellHead:])
		return nil
	}
	lane, e, rest, err := decodeCell(c.Data)
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return wrong("has more than a batch")
	case !l.known(lane):
		l.stale = append(l.stale, c.Number)
		return nil
	}
	h := l.hold(lane)
	switch n := uint64(e.Index); {
	case n <= h.base:
		l.stale = append(l.stale, c.Number)
		return nil
	case len(h.batches) == 0:
		h.base = n - 1
	case n != h.high()+1:
		return wrong(fmt.Sprintf("has number %d of lane %s, after %d", n, lane, h.high()))
	}
	h.batches, h.cells, h.bytes = append(h.batches, e), append(h.cells, cell{number: c.Number}), h.bytes+e.Bytes()
	if h.partial(h.high()) {
		h.rows++
	}
	return nil
}

// DropStale empties the cells that a start found to be void.
func (l *Lanes) DropStale(v *View) {
	for _, n := range l.stale {
		v.Out.Record(protocol.Record{Kind: protocol.RecordDrop, Cell: protocol.Cell{Number: n}})
	}
	l.stale = nil
}
