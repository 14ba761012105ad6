package server

import (
	"time"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// A watch is parked if an event has a large value that is not at hand. The value is fetched in the
// background, the watch's later events wait, and the other watches of the stream go on. If the
// value does not come, that watch ends with an error.

const (
	// resolveInline is how long a stream waits for values before the watch is parked.
	resolveInline = time.Second
	// parkedFor is how long a watch is parked at most, and parkedBytes how much may wait in it.
	parkedFor   = time.Minute
	parkedBytes = 16 << 20
	// parkedPause is between attempts to get the values.
	parkedPause = 100 * time.Millisecond
)

// parked is what waits in a watch.
type parked struct {
	later *laterError // is being fetched
	queue []*pb.WatchResponse
	bytes int // of queue; ≤ parkedBytes
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
	id     mvcc.WatchID
	parked *parked
	err    error
}

// park makes a watch wait for the values of a piece; rest is what follows it.
func (w *watchStream) park(id mvcc.WatchID, state *watch, later *laterError, rest *pb.WatchResponse) {
	if state.parked == nil {
		state.parked = &parked{until: time.Now().Add(parkedFor)}
	}
	p := state.parked
	p.later = later
	if len(rest.Events) > 0 {
		p.queue = append([]*pb.WatchResponse{rest}, p.queue...)
		p.bytes += proto.Size(rest)
	}
	w.fetch(id, p)
}

// fetch gets the values of the piece for which a watch waits.
func (w *watchStream) fetch(id mvcc.WatchID, p *parked) {
	ctx := w.stream.Context()
	go func() {
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
		case w.fetched <- fetchedPiece{id, p, err}:
		case <-ctx.Done():
		case <-w.done:
		}
	}()
}

// queue keeps what comes for a parked watch. One that has too much ends.
func (w *watchStream) queue(id mvcc.WatchID, state *watch, out *pb.WatchResponse) error {
	p := state.parked
	p.queue = append(p.queue, out)
	if p.bytes += proto.Size(out); p.bytes > parkedBytes {
		return w.end(id, out, p.later.cause)
	}
	return nil
}

// unpark sends what waited in a watch, up to the next value that is not at hand.
func (w *watchStream) unpark(f *fetchedPiece) error {
	state := w.watches[f.id]
	if state == nil || state.parked != f.parked {
		return nil // it has ended
	}
	p := state.parked
	switch {
	case f.err != nil && (endsWatch(f.err) || time.Now().After(p.until)):
		return w.end(f.id, p.later.piece, f.err)
	case f.err != nil:
		w.fetch(f.id, p)
		return nil
	}
	if err := w.send(p.later.piece); err != nil {
		return err
	}
	state.parked = nil
	for i, out := range p.queue {
		if err := w.pass(f.id, state, out); err != nil {
			return err
		}
		if w.watches[f.id] == nil {
			return nil
		}
		if state.parked != nil { // the next value is missing
			for _, out := range p.queue[i+1:] {
				if err := w.queue(f.id, state, out); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return nil
}
