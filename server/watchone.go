package server

import (
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
)

// watch is one watch of a stream. It is in one of three states:
//
//	fed     the store sends it events, and run sends them on at once
//	parked  the first piece of its queue needs values that are not at hand. The store sends it nothing meanwhile, the
//	        values are fetched in the background, and the other watches of the stream continue. Then the queue is sent,
//	        and the store feeds the watch again from the revision that it had reached. If the values do not come, the
//	        watch ends with an error.
//	ended   the stream has removed it
//
// All sending is done by the stream's run. The stream's mu guards the fields below reader.
type watch struct {
	w                *watchStream
	id               int64 // the client's
	prevKV, fragment bool
	progress         bool // the client asked for the revision at intervals
	filters          []mvcc.FilterFunc
	key, end         []byte // end is what the store expects
	reader           *store.Reader

	fed mvcc.WatchID // the store's id
	// quiet: nothing was sent since the last time that progress was due.
	quiet  bool
	parked *parked // nil unless the watch is parked
}

// parked is the queue of a watch that is parked.
type parked struct {
	header  *pb.ResponseHeader
	pieces  []*pb.WatchResponse // events of the first are copies
	missing []*mvccpb.KeyValue  // of the first piece, without their values
	next    int64               // the first revision after those of the queue
	until   time.Time
}

// fetched is the outcome of fetching the values for which a watch is parked.
type fetched struct {
	watch  *watch
	parked *parked
	err    error
}

const (
	// resolveInline is how long a stream waits for values before the watch is parked.
	resolveInline = time.Second
	// parkedFor is how long a watch is parked at most.
	parkedFor = time.Minute
	// parkedPause is between attempts to get the values.
	parkedPause = 100 * time.Millisecond
)

// feed makes the store send the events of the watch from a revision on, 0: from now on, except those that a filter
// removes. The stream's mu is held.
func (s *watch) feed(revision int64, filters ...mvcc.FilterFunc) error {
	w := s.w
	filters = append(filters, s.filters...)
	id, err := w.events.Watch(w.stream.Context(), w.lastFed+1, s.key, s.end, revision, filters...)
	if err != nil {
		return err
	}
	w.lastFed, s.fed = id, id
	w.fed[id] = s
	return nil
}

// stopFeed makes the store send no more events. The stream's mu is held.
func (s *watch) stopFeed() {
	w := s.w
	if w.fed[s.fed] == s {
		delete(w.fed, s.fed)
		_ = w.events.Cancel(s.fed) // the store may have ended it
	}
}

// remove ends a watch, whose id is free then. It reports whether the client still had it.
func (s *watch) remove() bool {
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	s.stopFeed()
	if w.watches[s.id] != s {
		return false
	}
	delete(w.watches, s.id)
	w.count(-1)
	return true
}

// deliver sends what the store has for the watch.
func (s *watch) deliver(resp *mvcc.WatchResponse) error {
	w := s.w
	out := &pb.WatchResponse{
		Header: w.s.header(resp.Revision), WatchId: s.id, Events: resp.Events,
		CompactRevision: resp.CompactRevision, Canceled: resp.CompactRevision != 0,
	}
	if out.Canceled {
		if !s.remove() {
			return nil
		}
		return w.stream.Send(out)
	}
	if err := s.reader.Still(); err != nil {
		return s.fail(out.Header, err)
	}
	w.s.metrics.Events.Add(int64(len(resp.Events)))
	if s.prevKV {
		out.Events = w.withPrevious(resp.Events)
	}
	limit := min(w.s.cfg.MaxRequestBytes, chunkBytes) + frameOverhead
	return s.send(out.Header, fragment(out, limit, s.fragment, w.missing))
}

// send sends pieces in order, up to the first whose values are not at hand. What is sent is removed from pieces,
// because the values of all pieces together can be very large.
func (s *watch) send(header *pb.ResponseHeader, pieces []*pb.WatchResponse) error {
	for i, piece := range pieces {
		later, err := s.w.resolve(piece)
		if len(later) > 0 {
			s.park(&parked{header: header, pieces: pieces[i:], missing: later})
			return nil
		}
		if err == nil {
			err = s.w.stream.Send(piece)
		}
		switch {
		case err == nil:
			pieces[i] = nil
		case endsWatch(err):
			return s.fail(header, err)
		default:
			return toStatus(err) // the client retries, here or at another member
		}
	}
	return nil
}

// park makes the watch wait for the values of the first piece of a queue.
func (s *watch) park(p *parked) {
	last := p.pieces[len(p.pieces)-1].Events
	p.next, p.until = last[len(last)-1].Kv.ModRevision+1, time.Now().Add(parkedFor)
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watches[s.id] != s {
		return // cancelled meanwhile
	}
	s.parked = p
	s.stopFeed()
	go s.fetch(p)
}

// fetch gets the values for which the watch waits.
func (s *watch) fetch(p *parked) {
	w := s.w
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
	err := w.s.store.Resolve(ctx, p.missing...)
	select {
	case w.fetched <- fetched{s, p, err}:
	case <-ctx.Done():
	case <-w.done:
	}
}

// isParked reports whether the watch still waits with a queue.
func (s *watch) isParked(p *parked) bool {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.watches[s.id] == s && s.parked == p
}

// unpark sends the queue of the watch, up to the next value that is not at hand. err is why fetching failed.
func (s *watch) unpark(p *parked, err error) error {
	header := p.pieces[0].Header
	switch {
	case !s.isParked(p):
		return nil // it has ended
	case err != nil && (endsWatch(err) || time.Now().After(p.until)):
		return s.fail(header, err)
	case err != nil:
		go s.fetch(p)
		return nil
	}
	if err := s.w.stream.Send(p.pieces[0]); err != nil {
		return err
	}
	p.pieces[0], p.missing = nil, nil
	if err := s.send(p.header, p.pieces[1:]); err != nil {
		return err
	}
	if err := s.resume(p); err != nil {
		return s.fail(header, err)
	}
	return nil
}

// resume makes the store feed the watch again, unless it ended or waits for another value.
func (s *watch) resume(p *parked) error {
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watches[s.id] != s || s.parked != p {
		return nil
	}
	s.parked = nil
	from, rest := p.next, []mvcc.FilterFunc(nil)
	if from > w.events.Rev() { // the store reports no progress to a watch of future revisions
		from--
		rest = append(rest, olderThan(p.next))
	}
	return s.feed(from, rest...)
}

// olderThan returns a filter that removes events before a revision. The store keeps it as long as it feeds the watch,
// so it refers to nothing of the queue.
func olderThan(revision int64) mvcc.FilterFunc {
	return func(e *mvccpb.Event) bool { return e.Kv.ModRevision < revision }
}

// fail ends the watch because of an error.
func (s *watch) fail(header *pb.ResponseHeader, err error) error {
	if !s.remove() {
		return nil
	}
	end := &pb.WatchResponse{Header: header, WatchId: s.id, Canceled: true}
	if errors.Is(err, mvcc.ErrCompacted) {
		end.CompactRevision = s.w.s.store.CompactRevision()
	} else {
		end.CancelReason = toStatus(err).Error()
	}
	return s.w.stream.Send(end)
}

// endsWatch reports errors for which a retry is useless: the client was too slow and the values of its events are
// gone; values are damaged, or lost according to all members; or the values of one revision are too large for one
// message.
func endsWatch(err error) bool {
	var tooLarge *store.ResponseError
	var body *braid.BodyError
	return errors.Is(err, mvcc.ErrCompacted) || errors.Is(err, store.ErrWrongBytes) || errors.As(err, &tooLarge) ||
		errors.As(err, &body) && body.Certain()
}
