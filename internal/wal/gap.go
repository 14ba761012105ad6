package wal

import (
	"bytes"
	"errors"
	"fmt"
)

// Cover says which part of a log is not needed, because a snapshot stands for it. The log opens
// although batches are damaged, if nothing else was in them.
type Cover struct {
	// Instances are all instances that the snapshot knows of.
	Instances []uint32
	// Cells: instances may have cells, for which no snapshot stands.
	Cells bool
	// Upto is the last of an instance's entries for which the snapshot stands; 0: none.
	Upto func(instance uint32) uint64
}

func (c *Cover) upto(instance uint32) uint64 {
	if c == nil {
		return 0
	}
	return c.Upto(instance)
}

// lost says what of an instance may have been in a gap, that is in damaged batches. No one knows what was in the gap,
// but what comes after it tells. A later state replaces the one that may be lost; a later entry x replaces those from x
// on, and shows that all before x had been written. So nothing is missing if a snapshot stands for all entries before
// x. A later mark says that all cells were written again behind the gap.
type lost uint8

const (
	lostState lost = 1 << iota
	lostEntries
	lostCells
)

// gaps is what recovery found to be damaged.
type gaps struct {
	first error // why the first gap is one; nil: there is none
	ids   map[uint32]lost
	// before[id] is the first entry of an instance that came after the gap, while entries before it may
	// be missing that are needed. They are not needed if it was replaced later.
	before map[uint32]uint64
	// end is where the first record behind the last gap stands; nowhere: it was not met yet.
	end place
}

// lose notes a gap: everything known so far of any instance may be out of date. It returns the
// reason if the log cannot be opened with it.
func (r *recovery) lose(why error) error {
	if r.gaps.first == nil {
		r.gaps.first = why
	}
	if r.cover == nil {
		return why
	}
	var corrupt *CorruptError
	if errors.As(why, &corrupt) {
		r.l.damage = append(r.l.damage, corrupt)
	}
	for _, id := range r.cover.Instances {
		r.l.index.get(id)
	}
	r.gaps.ids, r.gaps.before, r.gaps.end = map[uint32]lost{}, map[uint32]uint64{}, place{}
	for _, in := range r.l.index.all {
		r.gaps.ids[in.id] = r.all()
	}
	return nil
}

// all is what of any instance may have been in a gap.
func (r *recovery) all() lost {
	if r.l.cells {
		return lostState | lostEntries | lostCells
	}
	return lostState | lostEntries
}

// passed notes that there is a record at a place.
func (r *recovery) passed(at place) {
	if r.gaps.first != nil && r.gaps.end.seg == 0 {
		r.gaps.end = at
	}
}

// found notes that a state, or a new beginning, of an instance comes after the gap.
func (r *recovery) found(in *instance, what lost) {
	if r.gaps.first != nil {
		r.gaps.ids[in.id] &^= what
	}
}

// foundEntry notes that an entry comes after the gap. If entries before it may be missing that are
// needed, another one must come that replaces it.
func (r *recovery) foundEntry(in *instance, index uint64) error {
	if r.gaps.first == nil || r.gaps.ids[in.id]&lostEntries == 0 {
		return nil
	}
	if index <= in.marked {
		return r.needsBefore(in.id, index)
	}
	in.entries.truncate(0)
	in.floor = index - 1
	if in.floor > max(in.marked, r.cover.upto(in.id)) {
		if r.gaps.before[in.id] == 0 {
			r.gaps.before[in.id] = index
		}
		return nil
	}
	r.found(in, lostEntries)
	return nil
}

func (r *recovery) needsBefore(instance uint32, index uint64) error {
	return r.needed(instance, fmt.Sprintf("entries before %d of instance %d were perhaps in it", index, instance))
}

// seen returns an instance of which a record was met.
func (r *recovery) seen(id uint32) *instance {
	in := r.l.index.find(id)
	if in == nil {
		in = r.l.index.get(id)
		if r.gaps.first != nil {
			r.gaps.ids[id] = r.all()
		}
	}
	return in
}

// gone takes in that an instance was given up: whatever a gap has of it is not needed.
func (r *recovery) gone(instance uint32) {
	r.l.index.remove(instance)
	delete(r.gaps.ids, instance)
	delete(r.gaps.before, instance)
}

// needed is the first gap's error, with what makes it one that cannot be skipped.
func (r *recovery) needed(instance uint32, what string) error {
	return fmt.Errorf("%w (%s; the newest snapshot stands for those up to %d)", r.gaps.first, what, r.cover.upto(instance))
}

// complete returns an error if something may be missing that is needed.
func (r *recovery) complete() error {
	for _, in := range r.l.index.all {
		upto := r.cover.upto(in.id)
		left := lost(0)
		if r.gaps.first != nil {
			left = r.gaps.ids[in.id]
		}
		switch {
		case left != 0 && upto == ^uint64(0): // it is retired
			in.entries.truncate(0)
			in.floor = in.marked
			in.cells = nil
		case left&lostState != 0:
			return r.needed(in.id, fmt.Sprintf("the last state of instance %d was perhaps in it", in.id))
		case left&lostEntries != 0 && r.gaps.before[in.id] > 0:
			return r.needsBefore(in.id, r.gaps.before[in.id])
		case left&lostEntries != 0:
			return r.needed(in.id, fmt.Sprintf("the last entries of instance %d were perhaps in it", in.id))
		case left&lostCells != 0:
			return r.needed(in.id, fmt.Sprintf("cells of instance %d were perhaps in it", in.id))
		case in.floor > in.marked && in.floor > upto:
			return &CorruptError{File: r.l.path(r.l.first, liveSuffix), Detail: fmt.Sprintf(
				"entries %d to %d of instance %d are missing", in.marked+1, in.floor, in.id)}
		}
	}
	return nil
}

// heal writes where the entries of each instance begin, because the record that said so may be
// damaged. It is part of the new incarnation's first batch.
func (l *Log) heal() error {
	oldest := l.segs[0].seq
	gone := func(at place) bool { return at.seg != 0 && uint64(at.seg) < oldest }
	for _, in := range l.index.all {
		if gone(in.base) {
			in.base, in.baseIndex = place{}, 0
		}
		if gone(in.state) { // it is retired, or the log would not open
			in.state = place{}
		}
		if in.floor == 0 || in.floor == in.marked && !gone(in.floorAt) {
			continue
		}
		at, err := l.put(recordHeader{kind: KindMark, flag: markFloor, instance: in.id, index: in.floor}, [2][]byte{})
		if err != nil {
			return err
		}
		in.raise(in.floor, at)
	}
	return nil
}

// flaw explains why the place in segs[i] where the next batch should be is damage. It is nil if
// nothing says so: then the log ends there.
func (r *recovery) flaw(segs []*segment, i int, offset int64) (*CorruptError, error) {
	l, s := r.l, segs[i]
	here := func(format string, args ...any) *CorruptError {
		return &CorruptError{File: l.path(s.seq, liveSuffix), Offset: offset, Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case s.flaw != nil && (s.short || offset == segmentHeaderSize):
		return s.flaw, nil
	case r.expect == 0:
		return here("the first batch of the log is damaged"), nil
	}
	for j := i; j < len(segs); j++ {
		from := int64(segmentHeaderSize)
		if j == i {
			from = offset
		}
		at, err := r.search(segs[j], from, func(h *batchHeader) bool { return h.durable >= r.expect })
		if err != nil {
			return nil, err
		}
		if at >= 0 {
			return here("batch %d is damaged: it was durable when the one at offset %d of segment %d was written", r.expect, at, segs[j].seq), nil
		}
	}
	was := l.marks.last
	switch {
	case was.number >= r.expect:
		return here("batch %d is damaged: %s says that the log was durable up to batch %d", r.expect, l.marks.path, was.number), nil
	case r.gaps.first != nil && r.life < was.life:
		return here("batches of life %d follow the damage, but %s is of life %d", r.life, l.marks.path, was.life), nil
	case len(segs) > i+2:
		return here("the log ends here, but there are segments up to %d", segs[len(segs)-1].seq), nil
	}
	return nil, nil
}

// search looks for the header of a batch that is wanted; -1 if there is none. The bytes of records
// may look like a header only if someone stores the future of this very log in it.
func (r *recovery) search(s *segment, from int64, want func(*batchHeader) bool) (int64, error) {
	const step = 256 << 10
	for from < s.capacity {
		b, err := r.buffer.bytes(s.file, from, int(min(step+batchHeaderSize, s.capacity-from)))
		if err != nil {
			return 0, &ReadError{"read", r.l.path(s.seq, liveSuffix), err}
		}
		for at := 0; at < len(b); at++ {
			k := bytes.Index(b[at:], batchMagic)
			if k < 0 {
				break
			}
			at += k
			h, ok := decodeBatchHeader(b[at:], r.l.identity, s.seq, from+int64(at))
			if ok && want(&h) {
				return from + int64(at), nil
			}
		}
		from += step
	}
	return -1, nil
}

// resume finds the first good batch of a segment behind a gap; -1 if there is none. It was
// written when the one that is missing was durable, so it is not what a torn write left.
func (r *recovery) resume(s *segment, from int64) (int64, error) {
	sc := scanner{buffer: &r.buffer, seg: s, identity: r.l.identity, life: r.life}
	for {
		at, err := r.search(s, from, func(h *batchHeader) bool { return h.number > r.expect && h.durable >= r.expect })
		if at < 0 || err != nil {
			return at, err
		}
		if h, _, err := sc.batch(at, 0); err != nil || h.number > 0 {
			return at, err
		}
		from = at + 1
	}
}

// pass goes over the damage at an offset of segs[i]: it returns where good batches continue, or -1
// if that is not in this segment.
func (r *recovery) pass(segs []*segment, i int, offset int64, why error) (int64, error) {
	if err := r.lose(why); err != nil {
		return 0, err
	}
	r.behind = true
	at, err := r.resume(segs[i], offset)
	if err == nil && at < 0 && i == len(segs)-1 {
		err = why // nothing follows it
	}
	return at, err
}

// missing skips segments whose files are not there: the log begins behind them.
func (r *recovery) missing(segs []*segment, i int, want uint64) error {
	l := r.l
	why := &CorruptError{File: l.path(want, liveSuffix), Detail: fmt.Sprintf("the segment is missing: the log has %d to %d", l.first, segs[len(segs)-1].seq)}
	if err := r.lose(why); err != nil {
		return err
	}
	closeAll(segs[:i])
	l.segs = segs[i:]
	l.first = segs[i].seq
	r.behind = true
	for _, in := range l.index.all {
		in.entries.truncate(0)
	}
	return nil
}

// mend writes the first page of segments again whose batches are whole although it is not.
func (l *Log) mend() error {
	for _, s := range l.segs {
		if s.flaw == nil || s.short {
			continue
		}
		h := segmentHeader{seq: s.seq, capacity: s.capacity, identity: l.identity}
		if err := writeAt(s.file, h.encode(), 0); err != nil {
			return &FailedError{Op: "write", Err: fmt.Errorf("%s: %w", l.path(s.seq, liveSuffix), err)}
		}
		if err := syncData(s.file); err != nil {
			return &FailedError{Op: "sync", Err: fmt.Errorf("%s: %w", l.path(s.seq, liveSuffix), err)}
		}
		l.damage = append(l.damage, s.flaw)
		s.flaw = nil
	}
	return nil
}
