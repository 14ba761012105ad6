package wal

import (
	"fmt"
	"slices"
	"sort"
)

// place is where a record is: 12 bytes for each live entry.
type place struct {
	seg uint32 // the segment's number, its low 32 bits; 0: nowhere
	off uint32 // of the record's header in the segment
	len uint32 // of its bytes, without the header
}

const (
	chunkBits = 10
	chunkSize = 1 << chunkBits
)

// places is a deque of places in chunks, so that growing copies nothing and dropping the front frees memory.
type places struct {
	chunks []*[chunkSize]place
	head   int // dropped places of the first chunk; < chunkSize
	n      int
}

func (p *places) at(i int) *place {
	i += p.head
	return &p.chunks[i>>chunkBits][i&(chunkSize-1)]
}

func (p *places) push(x place) {
	if p.head+p.n == len(p.chunks)*chunkSize {
		p.chunks = append(p.chunks, new([chunkSize]place))
	}
	p.n++
	*p.at(p.n - 1) = x
}

// truncate keeps the first n.
func (p *places) truncate(n int) {
	p.n = n
	keep := (p.head + n + chunkSize - 1) >> chunkBits
	// One spare chunk is kept, so that replacing at a chunk's border does not allocate.
	for i := len(p.chunks) - 1; i > keep; i-- {
		p.chunks[i] = nil
		p.chunks = p.chunks[:i]
	}
}

// drop removes the first n.
func (p *places) drop(n int) {
	p.head += n
	p.n -= n
	k := p.head >> chunkBits
	p.head &= chunkSize - 1
	if k > 0 {
		m := copy(p.chunks, p.chunks[k:])
		clear(p.chunks[m:])
		p.chunks = p.chunks[:m]
	}
}

// instance has the live records of one instance.
type instance struct {
	id    uint32
	state place
	saved []byte // the last state
	base  place
	// floor: entries up to and including it were dropped. entries begin at floor+1.
	floor uint64
	// floorAt is the place of the record with the floor: a base, or a mark; nowhere if there is none.
	floorAt   place
	entries   places
	baseIndex uint64
	// cells are the cells that are not empty, by number; nil: there was never one.
	cells map[uint64]cell
	// cellsFrom is the place after which all cells are, as recorded by a mark; nowhere if there is no mark.
	cellsFrom place
	// marked is the recorded floor. It is less than floor only in recovery, while entries are missing whose compaction
	// is recorded later in the log.
	marked uint64
}

func (in *instance) next() uint64 { return in.floor + 1 + uint64(in.entries.n) }

// entry sets the place of entry i. The caller has verified that i is in order.
func (in *instance) entry(i uint64, at place) {
	in.entries.truncate(int(i - in.floor - 1))
	in.entries.push(at)
}

// begun reports whether the instance's log has a first index.
func (in *instance) begun() bool {
	return in.floor > 0 || in.entries.n > 0 || in.base.seg != 0
}

// raise drops entries up to and including floor, which the record at a place has.
func (in *instance) raise(floor uint64, at place) {
	if floor < in.marked {
		return
	}
	in.marked, in.floorAt = floor, at
	if floor > in.floor {
		n := min(floor-in.floor, uint64(in.entries.n))
		in.entries.drop(int(n))
		in.floor = floor
	}
}

// startAt restarts the log after a base.
func (in *instance) startAt(base uint64, at place) {
	in.entries.truncate(0)
	in.floor, in.marked, in.floorAt = base, base, at
	in.base, in.baseIndex = at, base
}

// index has the instances of a log in the order of their ids.
type index struct {
	all  []*instance
	last *instance // the one asked for last
}

func (x *index) find(id uint32) *instance {
	if x.last != nil && x.last.id == id {
		return x.last
	}
	i := sort.Search(len(x.all), func(i int) bool { return x.all[i].id >= id })
	if i < len(x.all) && x.all[i].id == id {
		return x.all[i]
	}
	return nil
}

// get finds an instance or adds it.
func (x *index) get(id uint32) *instance {
	in := x.find(id)
	if in == nil {
		i := sort.Search(len(x.all), func(i int) bool { return x.all[i].id >= id })
		in = &instance{id: id}
		x.all = append(x.all, nil)
		copy(x.all[i+1:], x.all[i:])
		x.all[i] = in
	}
	x.last = in
	return in
}

// remove removes an instance.
func (x *index) remove(id uint32) {
	x.last = nil
	x.all = slices.DeleteFunc(x.all, func(in *instance) bool { return in.id == id })
}

// before reports whether a place is before another one.
func (p place) before(o place) bool { return p.seg < o.seg || p.seg == o.seg && p.off < o.off }

// check verifies the invariants of a log's index.
func (l *Log) check() error {
	oldest, newest := l.segs[0].seq, l.current().seq
	inLog := func(at place) bool { return uint64(at.seg) >= oldest && uint64(at.seg) <= newest }
	for k, in := range l.index.all {
		if k > 0 && l.index.all[k-1].id >= in.id {
			return fmt.Errorf("instance %d after %d", in.id, l.index.all[k-1].id)
		}
		if in.floor != in.marked || in.floor > 0 && !inLog(in.floorAt) {
			return fmt.Errorf("instance %d: floor %d, the log says %d at %v", in.id, in.floor, in.marked, in.floorAt)
		}
		if in.state.seg != 0 && !inLog(in.state) || in.base.seg != 0 && !inLog(in.base) {
			return fmt.Errorf("instance %d: state at %v, base at %v, the log has %d to %d", in.id, in.state, in.base, oldest,
				newest)
		}
		if err := in.checkCells(inLog); err != nil {
			return err
		}
		last := place{}
		for i := 0; i < in.entries.n; i++ {
			at := *in.entries.at(i)
			if !inLog(at) || !last.before(at) {
				return fmt.Errorf("instance %d: entry %d at %v after %v", in.id, in.floor+1+uint64(i), at, last)
			}
			last = at
		}
	}
	return nil
}
