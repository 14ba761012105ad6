package server

import (
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// A watch is parked if an event has a large value that is not at hand. The store sends it nothing
// meanwhile, the value is fetched in the background, and the other watches of the stream go on. Then
// the store feeds the watch again from the revision that it had reached. If the value does not come,
// that watch ends with an error.

const (
	// resolveInline is how long a stream waits for values before the watch is parked.
	resolveInline = time.Second
	// parkedFor is how long a watch is parked at most.
	parkedFor = time.Minute
	// parkedPause is between attempts to get the values.
	parkedPause = 100 * time.Millisecond
)

// parked is what waits in a watch.
type parked struct {
	later *laterError       // is being fetched
	rest  *pb.WatchResponse // follows it in the store's response; may have no events
	next  int64             // the first revision that the watch has nothing of
	until time.Time
}

// laterError says that the values of a piece are not at hand, but may come.
type laterError struct {
	piece   *pb.WatchResponse  // its events are copies
	missing []*mvccpb.KeyValue // of the piece, without their values
	cause   error
}

func (e *laterError) Error() string { return e.cause.Error() }
func (e *laterError) Unwrap() error { return e.cause }

// fetchedPiece is a piece that was fetched, or why it was not.
type fetchedPiece struct {
	watch  *watch
	parked *parked
	err    error
}

// park makes a watch wait for the values of a piece; rest is what follows it.
func (w *watchStream) park(state *watch, later *laterError, rest *pb.WatchResponse) {
	last := later.piece.Events
	if len(rest.Events) > 0 {
		last = rest.Events
	}
	p := &parked{later: later, rest: rest, next: last[len(last)-1].Kv.ModRevision + 1, until: time.Now().Add(parkedFor)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watches[state.id] != state {
		return // cancelled meanwhile
	}
	state.parked = p
	w.starve(state)
	go w.fetch(state, p)
}

// fetch gets the values of the piece for which a watch waits.
func (w *watchStream) fetch(state *watch, p *parked) {
	ctx := w.stream.Context()
	pause := time.NewTimer(parkedPause)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return
	case <-w.done:
		return
	}
	err := w.s.store.Resolve(ctx, p.later.missing...)
	select {
	case w.fetched <- fetchedPiece{state, p, err}:
	case <-ctx.Done():
	case <-w.done:
	}
}

// unpark sends what waited in a watch, up to the next value that is not at hand.
func (w *watchStream) unpark(f *fetchedPiece) error {
	state, p := f.watch, f.parked
	w.mu.Lock()
	waits := w.watches[state.id] == state && state.parked == p
	w.mu.Unlock()
	switch {
	case !waits:
		return nil // it has ended
	case f.err != nil && (endsWatch(f.err) || time.Now().After(p.until)):
		return w.end(state, p.later.piece, f.err)
	case f.err != nil:
		go w.fetch(state, p)
		return nil
	}
	if err := w.send(p.later.piece); err != nil {
		return err
	}
	if len(p.rest.Events) > 0 {
		if err := w.pass(state, p.rest); err != nil {
			return err
		}
	}
	return w.resume(state, p)
}

// resume makes the store feed a watch again, unless it ended or waits for another value.
func (w *watchStream) resume(state *watch, p *parked) error {
	w.mu.Lock()
	if w.watches[state.id] != state || state.parked != p {
		w.mu.Unlock()
		return nil
	}
	state.parked = nil
	from, rest := p.next, []mvcc.FilterFunc(nil)
	if from > w.events.Rev() { // the store tells no progress to a watch of what is to come
		from--
		rest = append(rest, func(e *mvccpb.Event) bool { return e.Kv.ModRevision < p.next })
	}
	err := w.feed(state, from, rest...)
	w.mu.Unlock()
	if err != nil {
		return w.end(state, p.later.piece, err)
	}
	return nil
}
