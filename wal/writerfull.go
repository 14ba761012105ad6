package wal

import (
	"math"
	"time"
)

// What a Writer does while the disk is full: it waits for room. Nothing that was submitted
// fails, and nothing is told to be durable, so to whoever submits it is a disk that stands
// still. Meanwhile it gives back what may go.

// roomAfter is how long the pause between two attempts to find room is.
const roomAfter = 50 * time.Millisecond

// whileFull does a step again and again for as long as the disk has no room for it. It ends
// with ErrClosed if the writer is closed first. rest are the jobs that are not written yet.
func (w *Writer) whileFull(rest []job, step func() error) error {
	err := step()
	if roomMissing(err) == nil {
		return err
	}
	pause := time.NewTimer(roomAfter)
	defer pause.Stop()
	defer w.full(nil)
	for {
		w.full(roomMissing(err))
		if w.isClosed() {
			return ErrClosed
		}
		if rerr := w.relieve(rest); rerr != nil && roomMissing(rerr) == nil {
			return rerr
		}
		if err = step(); roomMissing(err) == nil {
			return err
		}
		pause.Reset(roomAfter)
		select {
		case <-pause.C:
		case <-w.wake:
		}
	}
}

func (w *Writer) full(err *FullError) {
	w.mu.Lock()
	w.stats.Full = err
	w.mu.Unlock()
}

func (w *Writer) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// relieve gives back what is not needed any more: bodies that were released, and the entries
// of which a compaction that waits behind what cannot be written says so.
func (w *Writer) relieve(rest []job) error {
	if w.bodies != nil {
		if err := w.bodies.Sync(); err != nil {
			return err
		}
		if _, err := w.bodies.Compact(); err != nil {
			return err
		}
	}
	w.mu.Lock()
	cuts := earlyCuts(append(append([]job(nil), rest...), w.queue...))
	w.mu.Unlock()
	for _, cut := range cuts {
		if err := w.log.compactEarly(cut.instance, cut.index); err != nil {
			return err
		}
	}
	return w.log.Sync()
}

// earlyCuts lists up to where each instance's log may be cut before the jobs before the
// compaction are written: below everything that they still write of the instance.
func earlyCuts(jobs []job) (cuts []job) {
	lowest := map[uint32]uint64{}
	for i := range jobs {
		j := &jobs[i]
		if j.compact {
			below, ok := lowest[j.instance]
			if !ok {
				below = math.MaxUint64
			}
			if index := min(j.index, below-1); index > 0 {
				cuts = append(cuts, job{instance: j.instance, index: index})
			}
			continue
		}
		for k := range j.records {
			r := &j.records[k]
			at, ok := lowest[r.Instance]
			switch {
			case r.Kind == KindBase:
				at = 1 // the log begins anew with it
			case r.Kind == KindEntry && ok:
				at = min(at, r.Index)
			case r.Kind == KindEntry:
				at = r.Index
			default:
				continue
			}
			lowest[r.Instance] = at
		}
	}
	return cuts
}

// compactEarly is Compact of no more than the log has of an instance.
func (l *Log) compactEarly(instance uint32, index uint64) error {
	l.mu.Lock()
	in := l.index.find(instance)
	if in == nil || !in.begun() {
		l.mu.Unlock()
		return nil
	}
	index = min(index, in.next()-1)
	l.mu.Unlock()
	return l.Compact(instance, index)
}
