package wal

import (
	"errors"
	"slices"
)

// Compact indicates that an instance's entries up to and including index are not needed. Segments that are not needed
// are freed by the next Sync, from the oldest on. Live records other than entries (states, bases, cells) are first
// rewritten at the log's end. If the disk is full (*FullError), it can be called again.
func (l *Log) Compact(instance uint32, index uint64) error {
	if l.err != nil {
		return l.err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.relieving = true
	defer func() { l.relieving = false }()
	in := l.index.get(instance)
	if index > in.floor {
		at, err := l.put(recordHeader{kind: KindMark, flag: markFloor, instance: instance, index: index}, [2][]byte{})
		if err != nil {
			return l.fail("compact", err)
		}
		in.raise(index, at)
		l.dirty, l.sealed = true, false
	}
	if err := l.retireSegments(); err != nil {
		return l.fail("compact", err)
	}
	return nil
}

// crowdedSegments is the number of segments after which a log with cells frees what it can on its own.
const crowdedSegments = 32

// relieve frees segments as [Log.Compact] does, if many were started since the last time. Compact is called when a
// state is saved. Cells are also written while nothing is applied: each unsuccessful ballot of a recovery writes
// some, and the log would grow until the disk is full. Without space it waits for the next call.
func (l *Log) relieve() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	crowded := l.current().seq >= max(l.carriedAt, l.first)+crowdedSegments
	if !crowded || !slices.ContainsFunc(l.index.all, func(in *instance) bool { return len(in.cells) > 0 }) {
		return nil
	}
	l.relieving = true
	defer func() { l.relieving = false }()
	if err := l.retireSegments(); err != nil && spaceMissing(err) == nil {
		return l.fail("compact", err)
	}
	return nil
}

// Remove deletes everything of an instance permanently: its state, its base, its entries and its cells. The
// instance's promises are forgotten, so no member may need them any more. If the disk is full (*FullError), it can be
// called again.
func (l *Log) Remove(instance uint32) error {
	if l.err != nil {
		return l.err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.index.find(instance) == nil {
		return nil
	}
	l.relieving = true
	defer func() { l.relieving = false }()
	if _, err := l.put(recordHeader{kind: KindMark, flag: markGone, instance: instance}, [2][]byte{}); err != nil {
		return l.fail("remove", err)
	}
	l.index.remove(instance)
	l.dirty, l.sealed = true, false
	if err := l.retireSegments(); err != nil {
		return l.fail("remove", err)
	}
	return nil
}

// retireSegments finds the segments that no entry needs, rewrites other live records of them, and writes a mark with
// the first segment that is needed. Sync frees them when the mark is durable.
func (l *Log) retireSegments() error {
	w := l.newReadBuffer()
	l.relieving = false // not for entries
	for _, in := range l.index.all {
		if err := l.moveForward(&w, in); err != nil && spaceMissing(err) == nil {
			return err // without space they stay in place
		}
	}
	need := l.current().seq
	for _, in := range l.index.all {
		if in.entries.n > 0 {
			need = min(need, l.segment(*in.entries.at(0)).seq)
		}
	}
	need, err := l.moveCells(need)
	if err != nil || need <= l.first {
		return err
	}
	l.relieving = true
	for _, in := range l.index.all {
		if err := l.carry(&w, in, need); errors.As(err, new(*ReadError)) {
			l.dirty, l.sealed = true, false
			return nil // the next compaction may succeed
		} else if err != nil {
			return err
		}
	}
	if _, err := l.put(recordHeader{kind: KindMark, flag: markFirst, index: need}, [2][]byte{}); err != nil {
		return err
	}
	// Not earlier: a segment that is started meanwhile must not record that the others are not needed.
	l.first = need
	l.dirty, l.sealed = true, false
	return nil
}

// laggardSegments is the distance in segments from an instance's first entry to the log's end after which its entries
// are rewritten, if they are few.
const laggardSegments = 4

// moveForward rewrites the entries of an instance if they are few and prevent old segments from being freed. They go
// into one batch, which is atomic: the first of them makes the old ones void.
func (l *Log) moveForward(w *readBuffer, in *instance) error {
	limit := int(min(l.segmentBytes/8, int64(cap(l.buf)/2)))
	n := in.entries.n
	if n == 0 || n > limit/recordHeaderSize || l.segment(*in.entries.at(0)).seq+laggardSegments > l.current().seq {
		return nil
	}
	total := n * recordHeaderSize
	for i := 0; i < n && total <= limit; i++ {
		total += int(in.entries.at(i).len)
	}
	if total > limit {
		return nil
	}
	first := in.floor + 1
	data := make([][]byte, n)
	if err := l.flushLocked(); err != nil {
		return err
	}
	for i := range data {
		d, err := l.readPlace(w, *in.entries.at(i), recordHeader{kind: KindEntry, instance: in.id, index: first + uint64(i)})
		if err != nil {
			return nil // they stay in place, for the inspection of damage
		}
		data[i] = append([]byte(nil), d...)
	}
	if err := l.makeSpace(int64(total)); err != nil {
		return err
	}
	for i := range data {
		h := recordHeader{kind: KindEntry, instance: in.id, index: first + uint64(i)}
		in.entry(h.index, l.putHere(h, [2][]byte{data[i]}))
	}
	l.dirty, l.sealed = true, false
	return nil
}

// carry rewrites the live records of an instance in segments before need, except for entries. A damaged base is
// dropped, because a snapshot has the same information.
func (l *Log) carry(w *readBuffer, in *instance, need uint64) error {
	old := func(at place) bool { return at.seg == 0 || l.segment(at).seq < need }
	if in.state.seg != 0 && old(in.state) {
		at, err := l.put(recordHeader{kind: KindState, flag: flagCarried, instance: in.id},
			[2][]byte{append([]byte(nil), in.saved...)})
		if err != nil {
			return err
		}
		in.state = at
	}
	if in.base.seg != 0 && old(in.base) {
		h := recordHeader{kind: KindBase, instance: in.id, index: in.baseIndex}
		data, err := l.readPlace(w, in.base, h)
		if errors.As(err, new(*ReadError)) {
			return err
		}
		at := place{}
		if err == nil {
			h.flag = flagCarried
			// The buffer is reused before the batch is written.
			if at, err = l.put(h, [2][]byte{append([]byte(nil), data...)}); err != nil {
				return err
			}
		}
		if in.floor == in.baseIndex {
			in.floorAt = at
		}
		if in.base = at; at.seg == 0 {
			in.baseIndex = 0
		}
	}
	if in.floor > 0 && old(in.floorAt) {
		at, err := l.put(recordHeader{kind: KindMark, flag: markFloor, instance: in.id, index: in.floor}, [2][]byte{})
		if err != nil {
			return err
		}
		in.floorAt = at
	}
	return nil
}

// freeSegments removes the files of segments that a durable mark lists as not needed.
func (l *Log) freeSegments() error {
	if l.segs[0].seq < l.first {
		l.maxFree = len(l.segs)
	}
	for l.segs[0].seq < l.first {
		l.mu.Lock()
		s := l.segs[0]
		l.segs = l.segs[1:]
		l.mu.Unlock()
		if err := l.release(s); err != nil {
			return l.fail("free", err)
		}
	}
	return nil
}
