package wal

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/braidlog/braid/internal/vfs"
)

// Cover is the part of a log that is not needed, because a snapshot covers it. The log opens in spite of damaged
// batches if they had nothing else.
type Cover struct {
	// Instances are all instances that the snapshot knows of.
	Instances []uint32
	// Cells: instances may have cells, which no snapshot covers.
	Cells bool
	// Upto is the last entry of an instance that the snapshot covers; 0: none.
	Upto func(instance uint32) uint64
}

func (c *Cover) upto(instance uint32) uint64 {
	if c == nil {
		return 0
	}
	return c.Upto(instance)
}

// lost is what an instance may have had in a gap, that is in damaged batches. The contents of the gap are unknown,
// but later records are evidence. A later state replaces the one that may be lost; a later entry x replaces those
// from x on, and shows that all entries before x had been written. So nothing is missing if a snapshot covers all
// entries before x. A later mark shows that all cells were rewritten after the gap.
type lost uint8

const (
	lostState lost = 1 << iota
	lostEntries
	lostCells
)

// gaps is the damage that recovery found.
type gaps struct {
	first error // the damage of the first gap; nil: there is none
	ids   map[uint32]lost
	// before[id] is the first entry of an instance after the gap, while entries before it may be missing. They are not
	// needed if the entry was replaced later.
	before map[uint32]uint64
	// end is the place of the first record after the last gap; nowhere: it was not found yet.
	end place
}

// lose records a gap: everything known so far of any instance may be outdated. It returns the reason if the log
// cannot be opened in spite of it.
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

// all is what any instance may have had in a gap.
func (r *recovery) all() lost {
	if r.l.cells {
		return lostState | lostEntries | lostCells
	}
	return lostState | lostEntries
}

// passed records the place of a record.
func (r *recovery) passed(at place) {
	if r.gaps.first != nil && r.gaps.end.seg == 0 {
		r.gaps.end = at
	}
}

// found records that a state, or a base, of an instance is after the gap.
func (r *recovery) found(in *instance, what lost) {
	if r.gaps.first != nil {
		r.gaps.ids[in.id] &^= what
	}
}

// foundEntry records that an entry is after the gap. If entries before it may be missing that are needed, a later
// entry must replace it.
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

// seen returns an instance that has a record.
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

// gone records that an instance was removed: its records in a gap are not needed.
func (r *recovery) gone(instance uint32) {
	r.l.index.remove(instance)
	delete(r.gaps.ids, instance)
	delete(r.gaps.before, instance)
}

// needed is the first gap's error, with the reason why it cannot be skipped.
func (r *recovery) needed(instance uint32, what string) error {
	return fmt.Errorf("%w (%s; the newest snapshot stands for those up to %d)", r.gaps.first, what, r.cover.upto(instance))
}

// complete returns an error if records that are needed may be missing.
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

// heal writes the first index of each instance, because the record with it may be damaged. It is part of the new
// incarnation's first batch.
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

// flaw returns the reason why the place of the next batch in segs[i] is damage. It is nil if there is no evidence:
// then the log ends there.
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
			return here("batch %d is damaged: it was durable when the one at offset %d of segment %d was written", r.expect, at,
				segs[j].seq), nil
		}
	}
	was := l.marks.last
	switch {
	case was.number >= r.expect:
		return here("batch %d is damaged: %s says that the log was durable up to batch %d", r.expect, l.marks.path,
			was.number), nil
	case r.gaps.first != nil && r.incarnation < was.incarnation:
		return here("batches of life %d follow the damage, but %s is of life %d", r.incarnation, l.marks.path,
			was.incarnation), nil
	case len(segs) > i+2:
		return here("the log ends here, but there are segments up to %d", segs[len(segs)-1].seq), nil
	}
	return nil, nil
}

// search looks for the header of a wanted batch; -1 if there is none. A record's bytes can look like such a header
// only if they contain a future batch of this log. Bytes that were never written are not read; most of a new segment is
// such. They are zeros, so a header that reaches into them is not good: the count at its end is never zero.
func (r *recovery) search(s *segment, from int64, want func(*batchHeader) bool) (int64, error) {
	const step = 256 << 10
	for {
		if from = vfs.NextWritten(s.file, from); from >= s.capacity {
			return -1, nil
		}
		hole := max(vfs.NextHole(s.file, from), from+1)
		end := min(from+step, hole, s.capacity)
		b, err := r.buffer.bytes(s.file, from, int(min(end+batchHeaderSize, hole, s.capacity)-from))
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
		from = end
	}
}

// resume finds the first good batch of a segment after a gap; -1 if there is none. It was written when the missing
// one was durable, so it is not the rest of a torn write.
func (r *recovery) resume(s *segment, from int64) (int64, error) {
	sc := scanner{buffer: &r.buffer, seg: s, identity: r.l.identity, incarnation: r.incarnation}
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

// pass skips the damage at an offset of segs[i]: it returns the offset of the next good batch, or -1 if there is none
// in this segment.
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

// missing skips segments whose files are missing: the log begins after them.
func (r *recovery) missing(segs []*segment, i int, want uint64) error {
	l := r.l
	why := &CorruptError{File: l.path(want, liveSuffix),
		Detail: fmt.Sprintf("the segment is missing: the log has %d to %d", l.first, segs[len(segs)-1].seq)}
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

// mend rewrites the damaged first page of segments whose batches are good.
func (l *Log) mend() error {
	for _, s := range l.segs {
		if s.flaw == nil || s.short {
			continue
		}
		h := segmentHeader{version: l.version.Load(), seq: s.seq, capacity: s.capacity, identity: l.identity}
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
