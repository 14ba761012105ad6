package wal

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Cells are numbered places next to an instance's entries, each of which has the bytes that were last written to it.
// Entries and bases do not change them. Acceptors of a protocol that decides out of order store their promises and
// votes in cells. Like the last states, cells are in memory too, which they share with their owner.
//
// A cell that is rewritten, or emptied, is void from then on. The record that made it void is after it in the log. So
// segments can be removed from the oldest on, as with entries: a removed segment has only void cells, and cells that
// were rewritten before.

// cell is the place of a cell, and its contents.
type cell struct {
	at   place
	data [2][]byte // never modified; empty only in recovery, before rememberCells
}

// bytes returns the cell's contents in one slice.
func (c cell) bytes() []byte {
	if len(c.data[1]) == 0 {
		return c.data[0]
	}
	return slices.Concat(c.data[0], c.data[1])
}

func (in *instance) setCell(number uint64, c cell) {
	if in.cells == nil {
		in.cells = map[uint64]cell{}
	}
	in.cells[number] = c
}

func (in *instance) dropCell(number uint64) {
	if in.cells == nil {
		in.cells = map[uint64]cell{} // the instance has had cells
	}
	delete(in.cells, number)
}

// numbers are those of the instance's cells, ascending.
func (in *instance) numbers() []uint64 { return slices.Sorted(maps.Keys(in.cells)) }

// oldCell is a cell in a segment that may be removed.
type oldCell struct {
	in     *instance
	number uint64
	at     place
}

// cellsBefore lists the cells in segments before need, the oldest first.
func (l *Log) cellsBefore(need uint64) (old []oldCell) {
	for _, in := range l.index.all {
		for number, c := range in.cells { // any order: they are sorted
			if l.segment(c.at).seq < need {
				old = append(old, oldCell{in, number, c.at})
			}
		}
	}
	slices.SortFunc(old, func(a, b oldCell) int {
		return cmp.Or(cmp.Compare(a.at.seg, b.at.seg), cmp.Compare(a.at.off, b.at.off))
	})
	return old
}

// carriedCells limits the bytes of cells that a compaction rewrites: one in carriedCells of the log's growth since
// the last one, or of a segment. So a compaction does not take long. If there are more cells, their segments wait for
// the next compactions. So the oldest cell is at most this many times the cells' bytes after the end.
const carriedCells = 8

// CellBytes is the size of the live cells of all instances.
func (l *Log) CellBytes() (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, in := range l.index.all {
		for _, c := range in.cells { // any order: they are counted
			n += recordHeaderSize + int64(c.at.len)
		}
	}
	return n
}

// moveCells writes cells in segments before need again, at the log's end, the oldest first. It returns the first
// segment that is needed afterwards. If the disk is full, it writes only into the space that every segment reserves
// for this, and only if that frees a segment.
func (l *Log) moveCells(need uint64) (uint64, error) {
	old := l.cellsBefore(need)
	l.relieving = false
	old, err := l.carryCells(old, upTo(old, l.grown()/carriedCells))
	l.carriedAt = l.current().seq
	if l.relieving = true; spaceMissing(err) != nil {
		old, err = l.carryCells(old, wholeSegments(old, upTo(old, l.headroom()/4)))
	}
	if err != nil && spaceMissing(err) == nil {
		return 0, err
	}
	if len(old) > 0 { // they stay in place
		need = l.segment(old[0].at).seq
	}
	return need, nil
}

// grown is the log's growth in bytes since cells were last rewritten, in whole segments, but at least one. A segment
// is larger than others if a record is.
func (l *Log) grown() (n int64) {
	since := max(l.carriedAt, l.first)
	for i := len(l.segs) - 2; i >= 0 && l.segs[i].seq >= since; i-- {
		n += l.segs[i].capacity
	}
	return max(n, l.segmentBytes)
}

// upTo is the number of cells that have at most this many bytes together, but at least one.
func upTo(old []oldCell, bytes int64) (n int) {
	for ; n < len(old); n++ {
		bytes -= recordHeaderSize + int64(old[n].at.len)
		if n > 0 && bytes < 0 {
			break
		}
	}
	return n
}

// wholeSegments is the number of cells among the first n that are in segments without others.
func wholeSegments(old []oldCell, n int) int {
	for n > 0 && n < len(old) && old[n-1].at.seg == old[n].at.seg {
		n--
	}
	return n
}

// carryCells writes the first n cells again, and returns those that are still in place.
func (l *Log) carryCells(old []oldCell, n int) ([]oldCell, error) {
	for i := range n {
		if err := l.carryCell(old[i].in, old[i].number); err != nil {
			return old[i:], err
		}
	}
	return old[n:], nil
}

// carryCell writes a cell again, from memory.
func (l *Log) carryCell(in *instance, number uint64) error {
	c := in.cells[number]
	at, err := l.put(recordHeader{kind: KindCell, flag: flagCarried, instance: in.id, index: number}, c.data)
	if err != nil {
		return err
	}
	c.at = at
	in.cells[number] = c
	l.dirty, l.sealed = true, false
	return nil
}

// rewriteCells rewrites all cells of an instance, and then writes a mark with the place after which all cells are.
// Before that place there may be damage, in which any cell may have been.
func (l *Log) rewriteCells(in *instance) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.cells && in.cells == nil {
		return nil
	}
	from := place{}
	for _, number := range in.numbers() {
		if err := l.carryCell(in, number); err != nil {
			return l.fail("rewrite", err)
		}
		if from.seg == 0 {
			from = in.cells[number].at
		}
	}
	h := recordHeader{kind: KindMark, flag: markCells, instance: in.id, index: uint64(from.seg)<<32 | uint64(from.off)}
	at, err := l.put(h, [2][]byte{})
	if err != nil {
		return l.fail("rewrite", err)
	}
	in.beginCells(from, at)
	l.dirty, l.sealed = true, false
	return nil
}

// beginCells applies a mark with the place after which all of the instance's cells are; nowhere: it has none.
func (in *instance) beginCells(from, mark place) {
	for number, c := range in.cells { // any order: they are judged one by one
		if from.seg == 0 || c.at.before(from) {
			in.dropCell(number)
		}
	}
	if in.cellsFrom = from; from.seg == 0 {
		in.cellsFrom = mark
	}
}

// cell applies a record about cells.
func (r *recovery) cell(s *segment, in *instance, h recordHeader, at place) error {
	if r.gaps.first != nil && !r.l.cells {
		return r.needed(in.id, fmt.Sprintf("cells of instance %d were perhaps in it", in.id))
	}
	r.l.cells = true
	switch {
	case h.kind == KindCell:
		in.setCell(h.index, cell{at: at})
	case h.kind == KindDrop:
		in.dropCell(h.index)
	default:
		from := place{seg: uint32(h.index >> 32), off: uint32(h.index)}
		if from.seg != 0 && !from.before(at) {
			return &CorruptError{File: r.l.path(s.seq, liveSuffix), Offset: int64(at.off),
				Detail: fmt.Sprintf("cells from %v on", from)}
		}
		in.beginCells(from, at)
		if from.seg == 0 || !from.before(r.gaps.end) {
			r.found(in, lostCells)
		}
	}
	return nil
}

// rememberCells reads the contents of the cells.
func (l *Log) rememberCells(w *readBuffer) error {
	for _, old := range l.cellsBefore(math.MaxUint64) {
		data, err := l.readPlace(w, old.at, recordHeader{kind: KindCell, instance: old.in.id, index: old.number})
		if err != nil {
			return err
		}
		old.in.setCell(old.number, cell{old.at, [2][]byte{slices.Clone(data)}})
	}
	return nil
}

// checkCells verifies the invariants of an instance's cells.
func (in *instance) checkCells(inLog func(place) bool) error {
	for number, c := range in.cells { // any order: each is checked alone
		if !inLog(c.at) || c.at.before(in.cellsFrom) || int(c.at.len) != len(c.data[0])+len(c.data[1]) {
			return fmt.Errorf("instance %d: cell %d of %d bytes at %v, all are from %v on", in.id, number,
				len(c.data[0])+len(c.data[1]), c.at, in.cellsFrom)
		}
	}
	return nil
}
