package wal

import (
	"math/bits"
	"sync"
	"time"
)

// Writer executes Commits in a goroutine of its own. It syncs at once when it has nothing else
// to do, and covers with one sync whatever was submitted while the last one ran, by all
// instances. The Log's own ReadEntry, Size and Instances stay safe; its other
// methods are the writer's until Close.
type Writer struct {
	log  *Log
	wake chan struct{} // holds one token while something was submitted to nothing
	done chan struct{} // closed when the goroutine has ended

	// mu guards stats and those methods of steps that look at what waits; the others are the
	// goroutine's own.
	mu    sync.Mutex
	steps *Commits
	stats WriterStats
}

// LatencyBuckets is how many buckets the histogram of sync latencies has.
const LatencyBuckets = 32

// WriterStats are counts since the writer began.
type WriterStats struct {
	CommitStats
	// SyncTime is the time spent in writing and syncing; SyncMax the longest of them.
	SyncTime, SyncMax time.Duration
	// SyncLatency[i] counts the syncs that took less than 2^i microseconds, and not less
	// than half of that; the last also counts longer ones.
	SyncLatency [LatencyBuckets]uint64
	// SyncStart is when the sync that runs now began; zero if none runs. A disk that stands
	// still shows here.
	SyncStart time.Time
	// QueuedBytes wait for the sync that runs now to end; PendingBytes are covered by it.
	QueuedBytes int64
}

// NewWriter starts group commit on a log and the bodies beside it, which must not be used
// otherwise from then on. bodies may be nil if no record has a body.
func NewWriter(l *Log, bodies *Bodies) *Writer {
	w := &Writer{log: l, wake: make(chan struct{}, 1), done: make(chan struct{})}
	w.steps = NewCommits(l, bodies, inGoroutine)
	go w.run()
	return w
}

// inGoroutine is a Beside.
func inGoroutine(do func()) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	return func() { <-done }
}

// Submit hands over records and their bodies to be made durable, and never blocks. The records and their
// parts are the writer's until done was called. done is called from the writer's goroutine,
// in the order of submission, with nil when the records and all submitted before are
// durable, else with *FailedError; after Close it is called at once with ErrClosed. It must
// not block. Submit without records is a barrier. How many bytes may wait is the
// caller's to bound: see WriterStats.
func (w *Writer) Submit(records []Record, done func(error)) {
	w.mu.Lock()
	ok := w.steps.Submit(records, done)
	w.submitted(ok, done)
}

// Compact is Log.Compact, in the order of submission. It never blocks. An error shows in
// what is submitted later.
func (w *Writer) Compact(instance uint32, index uint64) {
	w.mu.Lock()
	ok := w.steps.Compact(instance, index)
	w.submitted(ok, nil)
}

// Rewrite writes an instance's last state again, because the place where it stands is damaged;
// see Scrubber. It never blocks. done is as that of Submit.
func (w *Writer) Rewrite(instance uint32, done func(error)) {
	w.mu.Lock()
	ok := w.steps.Rewrite(instance, done)
	w.submitted(ok, done)
}

// submitted ends what holds mu, and wakes the goroutine if it may be waiting.
func (w *Writer) submitted(ok bool, done func(error)) {
	jobs, _ := w.steps.Queued()
	w.mu.Unlock()
	switch {
	case !ok && done != nil:
		done(ErrClosed)
	case ok && jobs == 1:
		w.wakeUp()
	}
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
	_, w.stats.QueuedBytes = w.steps.Queued()
	return w.stats
}

// Close makes durable what was submitted and ends the goroutine. The Log stays open. It
// returns the log's *FailedError if it had failed.
func (w *Writer) Close() error {
	w.mu.Lock()
	w.steps.Close()
	w.mu.Unlock()
	w.wakeUp()
	<-w.done
	return w.log.err
}

func (w *Writer) run() {
	defer close(w.done)
	pause := time.NewTimer(w.steps.Pause())
	defer pause.Stop()
	for {
		ready, over := w.gather()
		if over {
			return
		}
		if !ready {
			select {
			case <-w.wake:
				continue
			case <-pause.C:
			}
		}
		w.steps.Step()
		w.account()
		if d := w.steps.Pause(); d > 0 {
			pause.Reset(d)
		}
	}
}

// gather lets the steps take what waits. It reports whether the next one is due, and whether
// there will be none.
func (w *Writer) gather() (ready, over bool) {
	if w.steps.Busy() {
		return true, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	ready = w.steps.Gather()
	if w.steps.Busy() {
		w.stats.PendingBytes, w.stats.SyncStart = w.steps.Stats().PendingBytes, time.Now()
	}
	return ready, w.steps.Closed()
}

// account takes over the counts after a step, and measures a round that has ended.
func (w *Writer) account() {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, before := &w.stats, w.stats.Syncs
	s.CommitStats = w.steps.Stats()
	if s.Syncs == before {
		return
	}
	now := time.Now()
	took := now.Sub(s.SyncStart)
	s.SyncStart = time.Time{}
	if w.steps.More() {
		s.SyncStart = now
	}
	s.SyncTime += took
	s.SyncMax = max(s.SyncMax, took)
	s.SyncLatency[min(bits.Len64(uint64(took.Microseconds())), LatencyBuckets-1)]++
}
