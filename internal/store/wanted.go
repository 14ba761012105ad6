package store

import (
	"sync"
	"time"
)

// Wanted returns the channel of commands that the store itself needs ordered: ends of leases, checkpoints of leases,
// alarms. Propose each and ignore the results. A command that is lost comes again after a while. Close closes the
// channel.
func (s *Store) Wanted() <-chan []byte { return s.wanted.c }

// wantedBytes bounds the commands that wait in Wanted.
const wantedBytes = 4 << 20

// wanted is the queue behind [Store.Wanted]. It is bounded. What does not fit is refused, and comes again later.
type wanted struct {
	mu     sync.Mutex
	closed bool
	queue  [][]byte
	bytes  int
	wake   chan struct{}
	c      chan []byte
	done   chan struct{}

	alarmed time.Time // when the alarm was last put in
}

func (w *wanted) init() {
	w.wake = make(chan struct{}, 1)
	w.c = make(chan []byte)
	w.done = make(chan struct{})
	go w.run()
}

// add puts a command in, and reports whether there was space for it.
func (w *wanted) add(data []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.bytes+len(data) > wantedBytes {
		return false
	}
	w.queue = append(w.queue, data)
	w.bytes += len(data)
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return true
}

func (w *wanted) drain() [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	queue := w.queue
	w.queue, w.bytes = nil, 0
	return queue
}

func (w *wanted) run() {
	defer close(w.c)
	for {
		select {
		case <-w.wake:
		case <-w.done:
			return
		}
		for _, data := range w.drain() {
			select {
			case w.c <- data:
			case <-w.done:
				return
			}
		}
	}
}

func (w *wanted) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		close(w.done)
	}
}
