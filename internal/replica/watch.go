package replica

import (
	"context"
	"slices"
	"sync"
)

// watchers are those who wait for changes of leader, term or membership.
type watchers struct {
	mu    sync.Mutex
	all   []chan struct{} // guarded by mu; each has room for a token
	ended bool            // guarded by mu
}

// notify gives a token to each one without a token.
func (w *watchers) notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.all {
		poke(c)
	}
}

// end closes all channels, also those that are asked for later.
func (w *watchers) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for _, c := range w.all {
		close(c)
	}
	w.all = nil
}

// leave closes one channel, unless it is closed.
func (w *watchers) leave(c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.all, c); i >= 0 {
		w.all = slices.Delete(w.all, i, i+1)
		close(c)
	}
}

// Changes returns a channel of the caller's own. It holds a token at first and after the leader, term or membership
// changed, and is closed when ctx ends or the member has stopped.
func (r *Replica) Changes(ctx context.Context) <-chan struct{} {
	c := make(chan struct{}, 1)
	w := &r.watchers
	w.mu.Lock()
	ended := w.ended
	if !ended {
		c <- struct{}{} // what the caller saw before it asked may be old
		w.all = append(w.all, c)
	}
	w.mu.Unlock()
	if ended {
		close(c)
		return c
	}
	context.AfterFunc(ctx, func() { w.leave(c) })
	return c
}
