package wal

import (
	"math/bits"
	"sync"
	"time"
)

// Writer executes Commits in a goroutine of its own. An idle Writer syncs at once. Records that instances submit
// while a sync runs are covered by the next sync. The Log's ReadEntry, Size and Instances remain safe for concurrent
// use. Its other methods must not be called until Close has returned.
type Writer struct {
	log  *Log
	wake chan struct{} // holds a token after something was submitted while nothing waited
	done chan struct{} // closed when the goroutine has ended

	// mu guards stats and the methods of steps that use the queue. Only the goroutine calls the other methods of steps.
	mu    sync.Mutex
	steps *Commits
	stats WriterStats
	waits func(*FullError) // see Waits
}

// LatencyBuckets is the number of buckets of the histogram of sync latencies.
const LatencyBuckets = 32

// WriterStats are counters since the writer was created.
type WriterStats struct {
	CommitStats
	// SyncTime is the time spent in writing and syncing. SyncMax is the longest of these times.
	SyncTime, SyncMax time.Duration
	// SyncLatency[i] counts the syncs that took less than 2^i microseconds and at least half of
	// that. The last bucket also counts longer syncs.
	SyncLatency [LatencyBuckets]uint64
	// SyncStart is when the current sync began, including its writes; zero if none is running. It shows a stalled disk.
	SyncStart time.Time
	// Waits counts how often the writer began to wait for disk space, or for a descriptor.
	Waits uint64
	// QueuedBytes wait until the current sync has ended. PendingBytes are covered by it.
	QueuedBytes int64
}

// NewWriter starts group commit on a log and its bodies. From then on others may call only those of their methods
// that are safe for concurrent use. bodies may be nil if no record has a body.
func NewWriter(l *Log, bodies *Bodies) *Writer {
	w := &Writer{log: l, wake: make(chan struct{}, 1), done: make(chan struct{})}
	w.steps = NewCommits(l, bodies, inGoroutine)
	go w.run()
	return w
}

// inGoroutine is a Background.
func inGoroutine(do func()) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	return func() { <-done }
}

// Submit submits records and their bodies, to be made durable. It never blocks. The records and their parts belong to
// the writer until done is called. The writer's goroutine calls done, in the order of submission: with nil when the
// records and everything submitted before are durable, with *FailedError if the log failed, with ErrClosed if Close
// ended the wait for space on a full disk. After Close, Submit calls done itself, at once, with ErrClosed. done must
// not block. Submit without records is a barrier. The caller must bound the queued bytes: see WriterStats.
func (w *Writer) Submit(records []Record, done func(error)) {
	w.mu.Lock()
	ok := w.steps.Submit(records, done)
	w.submitted(ok, done)
}

// Compact is Log.Compact, done in the order of submission. It never blocks. If it fails, later submissions fail too.
func (w *Writer) Compact(instance uint32, index uint64) {
	w.mu.Lock()
	ok := w.steps.Compact(instance, index)
	w.submitted(ok, nil)
}

// Rewrite writes an instance's last hard state and its cells again, because their place on disk is damaged; see
// Scrubber. It never blocks. done is called as by Submit.
func (w *Writer) Rewrite(instance uint32, done func(error)) {
	w.mu.Lock()
	ok := w.steps.Rewrite(instance, done)
	w.submitted(ok, done)
}

// Tidy indicates that bodies were released, so that their files are freed even if nothing is submitted for a long
// time. It never blocks.
func (w *Writer) Tidy() {
	w.mu.Lock()
	w.steps.Tidy()
	w.mu.Unlock()
	w.wakeUp()
}

// submitted unlocks mu, which the caller holds. It wakes the goroutine, which may be waiting.
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

// Waits registers f, which is called whenever the writer starts to wait for disk space, or for a descriptor, and with
// nil when it no longer waits. The writer's goroutine calls f, which must not block.
func (w *Writer) Waits(f func(*FullError)) {
	w.mu.Lock()
	w.waits = f
	w.mu.Unlock()
}

// Metrics returns the current counters.
func (w *Writer) Metrics() WriterStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, w.stats.QueuedBytes = w.steps.Queued()
	return w.stats
}

// Close makes everything submitted durable, and ends the goroutine. If the disk is full, it does not wait for space:
// records that are not durable then fail with ErrClosed. The Log stays open. Close returns the log's *FailedError if
// the log has failed.
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
		if waits, full := w.account(); waits != nil {
			waits(full)
		}
		if d := w.steps.Pause(); d > 0 {
			pause.Reset(d)
		}
	}
}

// gather calls Gather. ready: the next step is due; over: there will be no more steps.
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

// account copies the counts after a step, and measures a round that has ended. It returns the function to call
// because a wait began or ended; nil: none.
func (w *Writer) account() (waits func(*FullError), full *FullError) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, before, waited := &w.stats, w.stats.Syncs, w.stats.Full != nil
	s.CommitStats = w.steps.Stats()
	if s.Full != nil && !waited {
		s.Waits++
	}
	if waited != (s.Full != nil) {
		waits, full = w.waits, s.Full
	}
	if s.Syncs == before {
		return waits, full
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
	return waits, full
}
