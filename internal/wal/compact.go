package wal

import (
	"errors"
	"slices"
)

// Compact indicates that an instance's entries up to and including index are not needed. The space
// of segments that no one needs is free again after the next Sync: segments are given up from the
// oldest on, and what is live in them besides entries (states, bases, cells) is written again at
// the log's end first. If the disk is full (*FullError), it can be called again.
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

// crowdedSegments is how many segments a log with cells begins at most until it gives up what it can on its own.
const crowdedSegments = 32

// relieve gives up segments as [Log.Compact] does, if many were begun since the last time. Compact is called when a
// state is saved. Cells are written repeatedly also while nothing is applied: each ballot of a recovery that does not
// succeed writes some, and the log would grow until the disk is full. Where there is no space, it waits for the next
// call.
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

// Remove gives up everything of an instance permanently: its state, its base, its entries and its cells. Afterwards the
// log does not know that there was one. So no one may need to know it: what the instance had promised is forgotten. If
// the disk is full (*FullError), it can be called again.
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

// retireSegments finds the segments that no entry needs, writes forward what else is live in them,
// and marks the rest as what is needed. Sync frees them when the mark is durable.
func (l *Log) retireSegments() error {
	w := l.newReadBuffer()
	l.relieving = false // not for entries
	for _, in := range l.index.all {
		if err := l.moveForward(&w, in); err != nil && spaceMissing(err) == nil {
			return err // where there is no space, they stay where they are
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
			return nil // it may succeed at the next compaction
		} else if err != nil {
			return err
		}
	}
	if _, err := l.put(recordHeader{kind: KindMark, flag: markFirst, index: need}, [2][]byte{}); err != nil {
		return err
	}
	// Not before: a segment begun meanwhile must not say that the others can go.
	l.first = need
	l.dirty, l.sealed = true, false
	return nil
}

// laggardSegments is how far behind the log's end an instance's first entry may be before
// its entries are written again, if they are few.
const laggardSegments = 4

// moveForward writes the entries of an instance again if they are few and prevent old segments
// from being freed. They go into one batch, which counts whole or not at all after a crash: the
// first of them makes the old ones void.
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
			return nil // they stay where they are, for the inspection of damage
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

// carry writes forward what an instance has in segments before need, besides entries. A base that
// is damaged is given up, because a snapshot says the same.
func (l *Log) carry(w *readBuffer, in *instance, need uint64) error {
	old := func(at place) bool { return at.seg == 0 || l.segment(at).seq < need }
	if in.state.seg != 0 && old(in.state) {
		at, err := l.put(recordHeader{kind: KindState, flag: flagCarried, instance: in.id}, [2][]byte{append([]byte(nil), in.saved...)})
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
			// The buffer is used again before the batch is written.
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

// freeSegments gives up the files of segments that the log durably says are not needed.
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
