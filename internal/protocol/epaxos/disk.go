package epaxos

import (
	"math"
	"slices"

	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// A member's disk has the log of what it has executed, in its own order, and cells: one for each command that it
// knows and has not executed, one for each class of keys with the last executed commands, and one with the end of the
// log. The last one is written after everything else of a step. So a step's commands count as executed only if all of
// the step is on disk, and they are handed over then. The cell of a class also has the state before the step, which
// counts if the step is torn.

// The numbers of cells. That of a command is its column and its number.
const (
	numberBits          = 48
	classCells   uint64 = 255 << numberBits // and a class, behind the last column: no member has slot 255
	progressCell uint64 = classCells + Classes
	reserveCell         = progressCell + 1  // and a class, after the last column: no member has slot 255
	wideCells    uint64 = 254 << numberBits // and an index: see wide
)

func cellOf(id ID) uint64 { return uint64(id.Column)<<numberBits | id.Number }

// progress records the end of the log.
type progress struct {
	step     uint64 // grows with each step
	index    protocol.Index
	executed Vector // by the log's entries up to index
	all, any Vector // all, any Vector // of the executed commands: see latest
}

func (p *progress) append(dst []byte) []byte {
	dst = appendID(appendID(dst, ID{1, p.step}), ID{1, uint64(p.index)})
	for _, v := range [...]Vector{p.executed, p.all, p.any} {
		dst = appendVector(dst, v)
	}
	return dst
}

func decodeProgress(b []byte) (p progress, err error) {
	in := reader{b: b}
	p.step, p.index = in.id().Number, protocol.Index(in.id().Number)
	p.executed, p.all, p.any = in.vector(), in.vector(), in.vector()
	if !in.ended() {
		return p, corrupt("progress", b)
	}
	return p, nil
}

// classCell is the content of the cell of a class.
type classCell struct {
	step        uint64 // of the last write: see progress
	now, before Vector
}

func (c *classCell) append(dst []byte) []byte {
	dst = appendID(dst, ID{1, c.step})
	return appendVector(appendVector(dst, c.now), c.before)
}

func decodeClass(b []byte) (c classCell, err error) {
	in := reader{b: b}
	c.step = in.id().Number
	c.now, c.before = in.vector(), in.vector()
	if !in.ended() {
		return c, corrupt("class of keys", b)
	}
	return c, nil
}

// disk tracks this member's own disk.
type disk struct {
	slots.Disk
	changed []*Record         // by the step in progress, in the order of their first change
	gone    []uint64          // cells of commands that it executed, or found to be executed, or of entries cut off
	classes map[uint16]Vector // changed by what it has executed, with their state before
	step    uint64            // of the last write: see progress
	moved   bool              // it has executed something
	// used is the highest number of this member's own column that is on disk; using are higher ones in flight, with the
	// steps that write them.
	used  uint64
	using []numbered
	// reserved is the highest number of its column that this member may use before the command is on its disk: the
	// reservation is on disk, and a later incarnation begins after it. reserving is the reservation in flight.
	reserved  uint64
	reserving numbered
	// recent is the number of commands since the last heartbeat, before that in the interval before it.
	recent, before uint64
}

// numbered is a step and the highest number of the own column that it writes.
type numbered struct{ seq, number uint64 }

// use records that the current step writes a number of this member's column.
func (d *disk) use(number uint64) {
	if n := len(d.using); n > 0 && d.using[n-1].seq == d.Touch() {
		d.using[n-1].number = number
		return
	}
	d.using = append(d.using, numbered{d.Touch(), number})
}

// persisted handles a completion.
func (d *disk) persisted(seq uint64) {
	d.Completed(seq)
	for len(d.using) > 0 && d.using[0].seq <= d.Done {
		d.used, d.using = d.using[0].number, d.using[1:]
	}
	if r := d.reserving; r.number > 0 && r.seq <= d.Done {
		d.reserved, d.reserving = r.number, numbered{}
	}
}

// A member reserves as many numbers as it uses within two heartbeats, within these limits. A later incarnation must
// have the unused ones decided.
const (
	leastReserved = 4
	mostReserved  = 128
)

// reserve reserves more numbers when half of them are used.
func (s *EPaxos) reserve(used uint64) {
	d := &s.disk
	d.recent++
	ahead := min(max(leastReserved, 2*max(d.recent, d.before)), mostReserved)
	if d.reserving.number == 0 && used+ahead/2 > d.reserved {
		d.reserving = numbered{d.Touch(), used + ahead}
		s.cell(reserveCell, appendID(nil, ID{s.self, d.reserving.number}))
	}
}

// change records that a record is to be written before any message of the step is sent.
func (s *EPaxos) change(rec *Record) {
	s.count(rec)
	if !rec.changed {
		rec.changed = true
		s.disk.changed = append(s.disk.changed, rec)
	}
}

// write adds the changes to the step's effects.
func (s *EPaxos) write() {
	d := &s.disk
	for _, rec := range d.changed {
		if rec.changed = false; !s.replica.Executed(rec.ID) {
			rec.stored = true
			s.cell(cellOf(rec.ID), rec.Append(nil))
		}
	}
	d.changed = d.changed[:0]
	if d.moved {
		s.writeExecuted()
	}
	for _, number := range d.gone {
		d.Record(s.out, protocol.Record{Kind: protocol.RecordDrop, Cell: protocol.Cell{Number: number}})
	}
	d.gone = d.gone[:0]
}

func (s *EPaxos) writeExecuted() {
	d, x := &s.disk, &s.replica.index.executed
	touched := make([]uint16, 0, len(d.classes))
	for class := range d.classes { // any order: they are sorted
		touched = append(touched, class)
	}
	slices.Sort(touched)
	for _, class := range touched {
		c := classCell{d.step + 1, x.classes[class], d.classes[class]}
		s.cell(classCells+uint64(class), c.append(nil))
	}
	clear(d.classes)
	d.step++
	p := progress{d.step, s.log.Last(), s.graph.Executed(), x.all, x.any}
	s.cell(progressCell, p.append(nil))
	d.moved = false
}

func (s *EPaxos) cell(number uint64, data []byte) {
	s.disk.Record(s.out, protocol.Record{Kind: protocol.RecordCell, Cell: protocol.Cell{Number: number, Data: data}})
}

// recovered is the state that a member reads from its disk.
type recovered struct {
	executed Executed
	base     Vector // what was executed at the log's base
	step     uint64 // of the last write
	reserved uint64 // see disk.reserved
	records  []*Record
	stale    []uint64 // cells of commands that were executed, and of entries that the log does not have
	wide     wide
	torn     []uint16 // classes whose cells are of a torn step
	entries  []protocol.Entry
}

// readDisk reads the state from the disk.
func readDisk(rec *protocol.Recovered, mutant protocol.Mutant) (had recovered, err error) {
	had.executed, had.wide = Executed{index: &Index{}}, wide{}
	if err = rec.Base.Restore(&had.executed); err != nil {
		return had, err
	}
	had.base = had.executed.vector.Clone()
	reached := progress{index: rec.Base.Index}
	for _, c := range rec.Cells {
		if c.Number == progressCell {
			if reached, err = decodeProgress(c.Data); err != nil {
				return had, err
			}
		}
	}
	had.step = reached.step
	if last := rec.Base.Index + protocol.Index(len(rec.Entries)); reached.index > rec.Base.Index && last >= reached.index {
		had.executed.vector = reached.executed.Clone()
		had.entries = rec.Entries[:reached.index-rec.Base.Index]
	} // else the log ends with a snapshot, which stands for all that was executed (rule 12)
	x := &had.executed.index.executed
	x.all, x.any = x.all.unite(reached.all), x.any.unite(reached.any)
	counts := reached.step
	if mutant == MutantTornClass {
		counts = math.MaxUint64
	}
	if err := had.readCells(rec, counts); err != nil {
		return had, err
	}
	had.executed.index.Prune()
	return had, nil
}

func (had *recovered) readCells(rec *protocol.Recovered, reached uint64) error {
	for _, c := range rec.Cells {
		switch {
		case c.Number == progressCell:
		case c.Number == reserveCell:
			in := reader{b: c.Data}
			if had.reserved = in.id().Number; !in.ended() {
				return corrupt("reserved numbers", c.Data)
			}
		case c.Number >= classCells:
			was, err := decodeClass(c.Data)
			if err != nil {
				return err
			}
			if was.step > reached {
				was.now = was.before
				had.torn = append(had.torn, uint16(c.Number-classCells))
			}
			x, class := &had.executed.index.executed, uint16(c.Number-classCells)
			x.set(class, x.classes[class].unite(was.now))
		case c.Number >= wideCells:
			if err := had.readWide(c, rec.Base.Index); err != nil {
				return err
			}
		default:
			r, err := DecodeRecord(c.Data)
			if err != nil {
				return err
			}
			if cellOf(r.ID) != c.Number {
				return corrupt("cell of command "+r.ID.String(), c.Data)
			}
			if r.stored = true; had.executed.vector.Covers(r.ID) {
				had.stale = append(had.stale, c.Number)
			} else {
				had.records = append(had.records, r)
			}
		}
	}
	return nil
}

func (had *recovered) readWide(c protocol.Cell, base protocol.Index) error {
	in, at := reader{b: c.Data}, protocol.Index(c.Number-wideCells)
	counts := in.vector()
	if !in.ended() {
		return corrupt("counts of an entry", c.Data)
	}
	if at <= base || at > base+protocol.Index(len(had.entries)) {
		had.stale = append(had.stale, c.Number)
		return nil
	}
	had.wide[at] = counts
	return nil
}
