package server

import (
	"context"
	"sync"
)

// openStreams has the open streams. All end when the member stops. Those that require a leader also end when the
// member has had no leader for too long. The clients of ended streams reconnect to another member.
type openStreams struct {
	mu      sync.Mutex
	stopped error
	next    uint64
	open    map[uint64]openStream
}

type openStream struct {
	cancel        context.CancelCauseFunc
	requireLeader bool
}

func newOpenStreams() *openStreams { return &openStreams{open: map[uint64]openStream{}} }

// enter registers a stream and returns its context. The caller calls cancel at the end.
func (o *openStreams) enter(parent context.Context, requireLeader bool) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped != nil {
		cancel(o.stopped)
		return ctx, cancel
	}
	id := o.next
	o.next++
	o.open[id] = openStream{cancel, requireLeader}
	return ctx, func(cause error) {
		o.mu.Lock()
		delete(o.open, id)
		o.mu.Unlock()
		cancel(cause)
	}
}

// endLeaderless ends the streams that require a leader.
func (o *openStreams) endLeaderless(cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.open {
		if s.requireLeader {
			s.cancel(cause)
		}
	}
}

// end ends the streams that are open now.
func (o *openStreams) end(cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.open {
		s.cancel(cause)
	}
}

// stop ends all streams, now and from now on.
func (o *openStreams) stop(cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stopped = cause
	for _, s := range o.open {
		s.cancel(cause)
	}
}
