package wal

import (
	"math/bits"
	"sync"
	"time"
)

// sealAfter is how long a log is idle before it is sealed.
const sealAfter = 100 * time.Millisecond

// tidyAfter is the pause between parts of the work that is done when a log is idle.
const tidyAfter = 5 * time.Millisecond

// Writer is group commit around a Log: one goroutine, which syncs at once when it has
// nothing else to do, and covers with one sync whatever was submitted while the last one
// ran, by all instances. The Log's own ReadEntry, Size and Instances stay safe; its other
// methods are the writer's until Close.
type Writer struct {
	log    *Log
	bodies *Bodies       // nil: records have none
	wake   chan struct{} // holds one token while the queue is not empty
	done   chan struct{} // closed when the goroutine has ended
	gaveUp error         // why nothing is written any more

	mu     sync.Mutex
	queue  []job
	spare  []job // the other half of a pair of buffers
	closed bool
	stats  WriterStats
}

// job is one call of Submit, Compact or Rewrite.
type job struct {
	records  []Record
	done     func(error)
	bytes    int
	compact  bool
	rewrite  bool
	instance uint32
	index    uint64
}

// LatencyBuckets is how many buckets the histogram of sync latencies has.
const LatencyBuckets = 32

// WriterStats are counts since the writer began.
type WriterStats struct {
	Submits uint64 // calls of Submit that are durable or failed
	Records uint64
	Bytes   uint64 // of records' parts and bodies, without headers
	Syncs   uint64
	// SyncTime is the time spent in writing and syncing; SyncMax the longest of them.
	SyncTime, SyncMax time.Duration
	// SyncLatency[i] counts the syncs that took less than 2^i microseconds, and not less
	// than half of that; the last also counts longer ones.
	SyncLatency [LatencyBuckets]uint64
	// SyncStart is when the sync that runs now began; zero if none runs. A disk that stands
	// still shows here.
	SyncStart time.Time
	// QueuedBytes wait for the sync that runs now to end; PendingBytes are covered by it.
	QueuedBytes, PendingBytes int64
	// Failed is why the log is shut, or nil.
	Failed error
	// Full is why the sync that runs waits for room on the disk; nil: it does not.
	Full *FullError
}

// NewWriter starts group commit on a log and the bodies beside it, which must not be used
// otherwise from then on. bodies may be nil if no record has a body.
func NewWriter(l *Log, bodies *Bodies) *Writer {
	w := &Writer{log: l, bodies: bodies, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go w.run()
	return w
}

// Submit hands over records and their bodies to be made durable, and never blocks. The records and their
// parts are the writer's until done was called. done is called from the writer's goroutine,
// in the order of submission, with nil when the records and all submitted before are
// durable, else with *FailedError; after Close it is called at once with ErrClosed. It must
// not block. Submit without records is a barrier. How many bytes may wait is the
// caller's to bound: see WriterStats.
func (w *Writer) Submit(records []Record, done func(error)) {
	j := job{records: records, done: done}
	for i := range records {
		j.bytes += records[i].size()
		if body := records[i].Body; body != nil {
			j.bytes += len(body.Bytes)
		}
	}
	if !w.add(j) && done != nil {
		done(ErrClosed)
	}
}

// Compact is Log.Compact, in the order of submission. It never blocks. An error shows in
// what is submitted later.
func (w *Writer) Compact(instance uint32, index uint64) {
	w.add(job{compact: true, instance: instance, index: index})
}

// Rewrite writes an instance's last state again, because the place where it stands is damaged;
// see Scrubber. It never blocks. done is as that of Submit.
func (w *Writer) Rewrite(instance uint32, done func(error)) {
	if !w.add(job{rewrite: true, instance: instance, done: done}) && done != nil {
		done(ErrClosed)
	}
}

func (w *Writer) add(j job) bool {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return false
	}
	w.queue = append(w.queue, j)
	w.stats.QueuedBytes += int64(j.bytes)
	first := len(w.queue) == 1
	w.mu.Unlock()
	if first {
		w.wakeUp()
	}
	return true
}

func (w *Writer) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Metrics returns the counts up to now.
func (w *Writer) Metrics() WriterStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

// Close makes durable what was submitted and ends the goroutine. The Log stays open. It
// returns the log's *FailedError if it had failed.
func (w *Writer) Close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.wakeUp()
	<-w.done
	return w.log.err
}

func (w *Writer) run() {
	defer close(w.done)
	idle := time.NewTimer(sealAfter)
	defer idle.Stop()
	for {
		batch, closed := w.take()
		if len(batch) > 0 {
			w.commit(batch)
			idle.Reset(sealAfter)
			continue
		}
		if closed {
			return
		}
		select {
		case <-w.wake:
		case <-idle.C:
			if w.seal() {
				idle.Reset(tidyAfter)
			}
		}
	}
}

// seal seals an idle log and its bodies, and reports whether there is more to do.
func (w *Writer) seal() (more bool) {
	err := w.log.seal()
	if err == nil && w.bodies != nil {
		more = w.tidyBodies()
		if err = w.bodies.Sync(); err == nil {
			err = w.bodies.seal()
		}
	}
	if roomMissing(err) != nil {
		return true // later
	}
	if err != nil {
		w.failed(err)
		return false
	}
	return more
}

// failed shuts the log for what is submitted next.
func (w *Writer) failed(err error) {
	err = w.log.fail("tidy", err)
	w.mu.Lock()
	w.stats.Failed = err
	w.mu.Unlock()
}

// take empties the queue.
func (w *Writer) take() (batch []job, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	batch = w.queue
	w.queue, w.spare = w.spare[:0], batch
	w.stats.PendingBytes, w.stats.QueuedBytes = w.stats.QueuedBytes, 0
	if len(batch) > 0 {
		w.stats.SyncStart = time.Now()
	}
	return batch, w.closed
}

// commit writes a batch of jobs, syncs once, and tells them. If the disk has no room for all of
// them, those that fit are told first.
func (w *Writer) commit(batch []job) {
	for rest := batch; len(rest) > 0; {
		n, err := len(rest), w.gaveUp
		if err == nil {
			n, err = w.commitSome(rest)
		}
		if err != nil {
			w.gaveUp, n = err, len(rest) // nothing may follow what is missing
		}
		w.count(rest[:n], rest[n:], err)
		for i := range rest[:n] {
			if done := rest[i].done; done != nil {
				done(err)
			}
		}
		rest = rest[n:]
	}
	clear(batch)
	if w.log.err == nil {
		w.log.prepareBeside()
		w.tidyBodies()
	}
}

// commitSome makes jobs durable: all, or the first n that there is room for, at least one. An
// error is that of n jobs.
func (w *Writer) commitSome(batch []job) (n int, err error) {
	n, err = w.commitBodies(batch)
	if err != nil {
		return n, err
	}
	if n, err = w.write(batch, n); err == nil {
		err = w.whileFull(nil, w.log.Sync)
	}
	if err == nil && w.bodies != nil {
		w.bodies.Settle()
	}
	if err != nil && w.log.err == nil {
		w.log.unlend() // it was closed while it waited for room
	}
	return n, err
}

// write adds the first n jobs to the log, or as many of them as there is room for.
func (w *Writer) write(batch []job, n int) (int, error) {
	for i := range batch[:n] {
		j := &batch[i]
		records := j.records
		step := func() error {
			switch {
			case j.compact:
				return w.log.Compact(j.instance, j.index)
			case j.rewrite:
				return w.log.Rewrite(j.instance)
			}
			k, err := w.log.gatherRecords(records)
			records = records[k:]
			return err
		}
		if ok, err := w.fits(i, batch, step); err != nil || !ok {
			return max(i, 1), err
		}
	}
	return n, nil
}

// fits does a step of job i. Where there is no room the jobs before it come first, and without
// such it waits.
func (w *Writer) fits(i int, batch []job, step func() error) (bool, error) {
	if i == 0 {
		err := w.whileFull(batch, step)
		return err == nil, err
	}
	err := step()
	if roomMissing(err) != nil {
		return false, nil
	}
	return err == nil, err
}

// commitBodies makes the bodies of the first n jobs durable, before the records that name them
// are written. If that fails, the log is shut too: it must not name what is not there.
func (w *Writer) commitBodies(batch []job) (n int, err error) {
	if w.bodies == nil {
		return len(batch), w.refuseBodies(batch)
	}
	for n = range batch {
		for k := range batch[n].records {
			body := batch[n].records[k].Body
			if body == nil {
				continue
			}
			ok, err := w.fits(n, batch, func() error { return w.bodies.Append(*body) })
			if err != nil {
				return len(batch), w.shut("append of a body", err)
			}
			if !ok {
				return n, w.syncBodies()
			}
		}
	}
	return len(batch), w.syncBodies()
}

func (w *Writer) syncBodies() error {
	if err := w.whileFull(nil, w.bodies.Sync); err != nil {
		return w.shut("sync of bodies", err)
	}
	return nil
}

// shut shuts the log, unless it was only closed meanwhile.
func (w *Writer) shut(op string, err error) error {
	if err == ErrClosed {
		return err
	}
	return w.log.fail(op, err)
}

// refuseBodies shuts a log that has no place for bodies if records bring some.
func (w *Writer) refuseBodies(batch []job) error {
	for i := range batch {
		for k := range batch[i].records {
			if body := batch[i].records[k].Body; body != nil {
				return w.log.fail("append of a body", &NotFoundError{Instance: body.Instance, Index: body.Index})
			}
		}
	}
	return nil
}

// tidyBodies does a part of the work that is not urgent, and reports whether there is more.
// An error shows in what is submitted next.
func (w *Writer) tidyBodies() (more bool) {
	if w.bodies == nil {
		return false
	}
	w.bodies.prepareBeside()
	more, err := w.bodies.Compact()
	if err != nil {
		w.failed(err)
	}
	return more
}

// count counts jobs that are done, and begins to measure the rest of the same batch.
func (w *Writer) count(batch, rest []job, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.stats
	now := time.Now()
	took := now.Sub(s.SyncStart)
	s.SyncStart, s.PendingBytes = time.Time{}, 0
	if len(rest) > 0 {
		s.SyncStart = now
	}
	for i := range rest {
		s.PendingBytes += int64(rest[i].bytes)
	}
	s.Syncs++
	s.SyncTime += took
	s.SyncMax = max(s.SyncMax, took)
	s.SyncLatency[min(bits.Len64(uint64(took.Microseconds())), LatencyBuckets-1)]++
	for i := range batch {
		if batch[i].compact || batch[i].rewrite {
			continue
		}
		s.Submits++
		s.Records += uint64(len(batch[i].records))
		s.Bytes += uint64(batch[i].bytes)
	}
	s.Failed = err
}

// prepareBeside makes the next segment in a goroutine once the current one is half full,
// so that nobody waits for it.
func (l *Log) prepareBeside() {
	cur := l.current()
	if l.next != nil || l.preparing != nil || l.end < cur.capacity/2 {
		return
	}
	ready := make(chan prepared, 1)
	l.preparing = ready
	go func() {
		s, err := l.createSegment(cur.seq+1, l.segmentBytes)
		ready <- prepared{seg: s, err: err}
	}()
}
