package server

import (
	"context"
	"sync"
	"time"

	"github.com/braidlog/braid"
)

// barrier lets concurrent linearizable reads share read barriers. Reads that come while a barrier
// is under way wait together for the next one. It begins after they came, so it covers all of
// them.
type barrier struct {
	run     func(ctx context.Context) error
	timeout time.Duration // of a barrier, and of the wait for one

	mu sync.Mutex
	// running: a goroutine runs drive.
	running bool
	// next gathers the reads that the next barrier will cover; nil if there are none.
	next *barrierGroup
}

type barrierGroup struct {
	done chan struct{}
	err  error // set before done is closed
}

func newBarrier(run func(ctx context.Context) error, timeout time.Duration) *barrier {
	return &barrier{run: run, timeout: timeout}
}

// wait returns when everything acknowledged before the call is applied here.
func (b *barrier) wait(ctx context.Context) error {
	b.mu.Lock()
	if b.next == nil {
		b.next = &barrierGroup{done: make(chan struct{})}
	}
	group := b.next
	if !b.running {
		b.running = true
		go b.drive()
	}
	b.mu.Unlock()
	timer := time.NewTimer(b.timeout)
	defer timer.Stop()
	select {
	case <-group.done:
		return group.err
	case <-timer.C:
		return braid.ErrReadTimeout
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drive runs barriers as long as reads wait for one.
func (b *barrier) drive() {
	for {
		b.mu.Lock()
		group := b.next
		b.next = nil
		if group == nil {
			b.running = false
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), b.timeout)
		group.err = b.run(ctx)
		cancel()
		close(group.done)
	}
}
