package server

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/store"
)

const (
	// noWatch is the watch id of answers that belong to no single watch.
	noWatch = -1
	// progressRetry is how soon a progress request is tried again while some watch of
	// its stream has not caught up.
	progressRetry = 50 * time.Millisecond
)

// watchService implements pb.WatchServer.
type watchService struct {
	pb.UnsafeWatchServer
	s *Server
}

// Watch serves one stream of watches. One goroutine receives. Another one sends and does
// everything else, also the creation of watches. So a watch is announced before its first event.
// While a client does not read, its events wait in the store's history; writers never wait for it.
func (w *watchService) Watch(stream pb.Watch_WatchServer) error {
	w.s.metrics.watchStreams.Add(1)
	defer w.s.metrics.watchStreams.Add(-1)
	ws := &watchStream{
		s: w.s, stream: stream, events: w.s.store.KV().NewWatchStream(),
		watches: map[mvcc.WatchID]*watch{}, requests: make(chan *pb.WatchRequest),
		received: make(chan error, 1), done: make(chan struct{}), fetched: make(chan fetchedPiece),
	}
	go ws.receive()
	err := ws.run()
	ws.close()
	if errors.Is(err, context.Canceled) {
		return rpctypes.ErrGRPCWatchCanceled
	}
	return err
}

// watchStream is one client's stream. All fields belong to the goroutine in run.
type watchStream struct {
	s      *Server
	stream pb.Watch_WatchServer
	events mvcc.WatchStream
	// watches are those that were announced to the client and not cancelled.
	watches map[mvcc.WatchID]*watch

	requests chan *pb.WatchRequest
	received chan error // why receiving ended
	fetched  chan fetchedPiece
	done     chan struct{} // run returned

	// askedProgress: a progress request waits until all watches have caught up.
	askedProgress bool
}

type watch struct {
	prevKV, fragment bool
	// progress: the client wants to be told the revision now and then.
	progress bool
	// quiet: nothing was sent since the last time that progress was due.
	quiet bool
	// parked: values of its events are not at hand; see watchpark.go.
	parked *parked
}

func (w *watchStream) receive() {
	for {
		req, err := w.stream.Recv()
		if err != nil {
			w.received <- err
			return
		}
		select {
		case w.requests <- req:
		case <-w.done:
			return
		}
	}
}

func (w *watchStream) run() error {
	interval := w.s.cfg.WatchProgressInterval
	progress := time.NewTicker(interval + rand.N(interval/10+1)) // spread over the streams
	defer progress.Stop()
	retry := time.NewTicker(progressRetry)
	retry.Stop()
	defer retry.Stop()
	ctx := w.stream.Context()
	for {
		var err error
		select {
		case req := <-w.requests:
			err = w.handle(req)
			if w.askedProgress {
				retry.Reset(progressRetry)
			}
		case resp := <-w.events.Chan():
			err = w.deliver(&resp)
		case f := <-w.fetched:
			err = w.unpark(&f)
		case <-progress.C:
			w.tellProgress()
		case <-retry.C:
			if w.tryProgress(); !w.askedProgress {
				retry.Stop()
			}
		case err = <-w.received:
			if errors.Is(err, io.EOF) {
				err = nil // the client asks nothing more, but still listens
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

func (w *watchStream) close() {
	close(w.done)
	w.events.Close()
	for resp := range w.events.Chan() {
		mvcc.ReportEventReceived(len(resp.Events))
	}
}

func (w *watchStream) handle(req *pb.WatchRequest) error {
	switch r := req.RequestUnion.(type) {
	case *pb.WatchRequest_CreateRequest:
		if r.CreateRequest != nil {
			return w.create(r.CreateRequest)
		}
	case *pb.WatchRequest_CancelRequest:
		if r.CancelRequest != nil {
			return w.cancel(mvcc.WatchID(r.CancelRequest.WatchId))
		}
	case *pb.WatchRequest_ProgressRequest:
		w.askedProgress = true
		w.tryProgress()
	}
	return nil // unknown requests of newer clients are none of our business
}

func (w *watchStream) create(r *pb.WatchCreateRequest) error {
	if len(r.Key) == 0 {
		r.Key = []byte{0} // the smallest key
	}
	if r.StartRevision < 0 {
		return w.refuse(rpctypes.ErrCompacted.Error())
	}
	if err := w.permitted(r); err != nil {
		return w.refuse(err.Error())
	}
	end := r.RangeEnd
	switch {
	case len(end) == 0:
		end = nil // this key alone
	case len(end) == 1 && end[0] == 0:
		end = []byte{} // every key from this one on
	}
	id, err := w.events.Watch(w.stream.Context(), mvcc.WatchID(r.WatchId), r.Key, end, r.StartRevision, filters(r)...)
	if err != nil {
		return w.refuse(err.Error())
	}
	w.watches[id] = &watch{prevKV: r.PrevKv, fragment: r.Fragment, progress: r.ProgressNotify, quiet: true}
	return w.send(&pb.WatchResponse{Header: w.s.header(w.events.Rev()), WatchId: int64(id), Created: true})
}

func (w *watchStream) refuse(reason string) error {
	return w.send(&pb.WatchResponse{
		Header: w.s.header(w.events.Rev()), WatchId: noWatch, Created: true, Canceled: true, CancelReason: reason,
	})
}

// permitted returns an error whose text is what clients expect to read.
func (w *watchStream) permitted(r *pb.WatchCreateRequest) error {
	err := w.s.store.CheckRange(w.stream.Context(), r.Key, r.RangeEnd)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, auth.ErrInvalidAuthToken), errors.Is(err, auth.ErrAuthOldRevision), errors.Is(err, auth.ErrUserEmpty):
		return toStatus(err)
	}
	return rpctypes.ErrGRPCPermissionDenied
}

func (w *watchStream) cancel(id mvcc.WatchID) error {
	if _, known := w.watches[id]; !known {
		return nil
	}
	delete(w.watches, id)
	if err := w.events.Cancel(id); err != nil {
		return nil // it ended by itself
	}
	return w.send(&pb.WatchResponse{Header: w.s.header(w.events.Rev()), WatchId: int64(id), Canceled: true})
}

// deliver sends what the store has for one watch.
func (w *watchStream) deliver(resp *mvcc.WatchResponse) error {
	mvcc.ReportEventReceived(len(resp.Events))
	state := w.watches[resp.WatchID]
	if state == nil && resp.WatchID != noWatch {
		return nil // cancelled with events under way
	}
	out := &pb.WatchResponse{
		Header: w.s.header(resp.Revision), WatchId: int64(resp.WatchID), Events: resp.Events,
		CompactRevision: resp.CompactRevision, Canceled: resp.CompactRevision != 0,
	}
	if out.Canceled {
		delete(w.watches, resp.WatchID)
		_ = w.events.Cancel(resp.WatchID) // frees the id; the store has ended the watch
		return w.send(out)
	}
	if state == nil {
		return w.send(out)
	}
	if len(resp.Events) > 0 {
		state.quiet = false
		w.s.metrics.events.Add(int64(len(resp.Events)))
	}
	if state.prevKV {
		out.Events = w.withPrevious(resp.Events)
	}
	return w.pass(resp.WatchID, state, out)
}

// pass sends the events of a watch, up to the first whose values are not at hand.
func (w *watchStream) pass(id mvcc.WatchID, state *watch, out *pb.WatchResponse) error {
	if state.parked != nil {
		return w.queue(id, state, out)
	}
	sent := 0
	err := fragment(out, min(w.s.cfg.MaxRequestBytes, chunkBytes)+frameOverhead, state.fragment, w.missing, func(piece *pb.WatchResponse) error {
		err := w.sendResolved(piece)
		if err == nil {
			sent += len(piece.Events)
		}
		return err
	})
	var later *laterError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &later):
		rest := &pb.WatchResponse{Header: out.Header, WatchId: out.WatchId, Events: out.Events[sent+len(later.piece.Events):]}
		w.park(id, state, later, rest)
		return nil
	case endsWatch(err):
		return w.end(id, out, err)
	}
	return toStatus(err) // the client comes again, here or elsewhere
}

// end cancels one watch because of an error.
func (w *watchStream) end(id mvcc.WatchID, out *pb.WatchResponse, err error) error {
	delete(w.watches, id)
	_ = w.events.Cancel(id)
	end := &pb.WatchResponse{Header: out.Header, WatchId: out.WatchId, Canceled: true}
	if errors.Is(err, mvcc.ErrCompacted) {
		end.CompactRevision = w.s.store.CompactRevision()
	} else {
		end.CancelReason = toStatus(err).Error()
	}
	return w.send(end)
}

// endsWatch reports errors for which a retry is useless: the client was too slow and the values of
// its events are gone; values are damaged, or lost by the word of all members; or the values of
// one revision are too large for one message.
func endsWatch(err error) bool {
	var tooLarge *store.ResponseError
	var body *braid.BodyError
	return errors.Is(err, mvcc.ErrCompacted) || errors.Is(err, store.ErrWrongBytes) || errors.As(err, &tooLarge) ||
		errors.As(err, &body) && body.Certain()
}

// missing is how many bytes an event grows by when it gets its large values.
func (w *watchStream) missing(e *mvccpb.Event) (n int) {
	for _, kv := range [...]*mvccpb.KeyValue{e.Kv, e.PrevKv} {
		if store.IsReference(kv) {
			n += max(0, w.s.store.ValueSize(kv)-len(kv.Value))
		}
	}
	return n
}

// sendResolved sends a response with its large values. They are fetched here, one response
// at a time and in order, and events that get one are copied: others watch them too.
func (w *watchStream) sendResolved(resp *pb.WatchResponse) error {
	var missing []*mvccpb.KeyValue
	whole := func(kv *mvccpb.KeyValue) *mvccpb.KeyValue {
		if !store.IsReference(kv) {
			return kv
		}
		kv = &mvccpb.KeyValue{
			Key: kv.Key, Value: kv.Value, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version, Lease: kv.Lease,
		}
		missing = append(missing, kv)
		return kv
	}
	copied := false
	for i, e := range resp.Events {
		if !store.IsReference(e.Kv) && !store.IsReference(e.PrevKv) {
			continue
		}
		if !copied {
			resp.Events, copied = slices.Clone(resp.Events), true
		}
		resp.Events[i] = &mvccpb.Event{Type: e.Type, Kv: whole(e.Kv), PrevKv: whole(e.PrevKv)}
	}
	if len(missing) == 0 {
		return w.send(resp)
	}
	ctx, cancel := context.WithTimeout(w.stream.Context(), resolveInline)
	defer cancel()
	err := w.s.store.Resolve(ctx, missing...)
	if err == nil {
		return w.send(resp)
	}
	var value *store.ValueError
	if mayCome := errors.As(err, &value) || ctx.Err() != nil; mayCome && !endsWatch(err) && w.stream.Context().Err() == nil {
		return &laterError{resp, missing, err}
	}
	return err
}

// withPrevious adds to events the values from before. Events are shared by all watches, so they
// are copied. A previous value that is compacted is left out.
func (w *watchStream) withPrevious(events []*mvccpb.Event) []*mvccpb.Event {
	out := make([]*mvccpb.Event, len(events))
	for i, e := range events {
		out[i] = e
		created := e.Type == mvccpb.Event_PUT && e.Kv.CreateRevision == e.Kv.ModRevision
		if created {
			continue
		}
		r, err := w.s.store.KV().Range(w.stream.Context(), e.Kv.Key, nil, mvcc.RangeOptions{Rev: e.Kv.ModRevision - 1})
		if err == nil && len(r.KVs) > 0 {
			out[i] = &mvccpb.Event{Type: e.Type, Kv: e.Kv, PrevKv: r.KVs[0]}
		}
	}
	return out
}

// tellProgress asks the store to report the revision to the watches that want it and had
// nothing else for a whole interval. The report comes behind the events on their channel.
func (w *watchStream) tellProgress() {
	for id, state := range w.watches {
		if state.progress && state.quiet && state.parked == nil {
			w.events.RequestProgress(id)
		}
		state.quiet = true
	}
}

// tryProgress answers a progress request once all watches of the stream have caught up. The store
// drops the answer if the channel is full.
func (w *watchStream) tryProgress() {
	for _, state := range w.watches {
		if state.parked != nil {
			return // it has not caught up
		}
	}
	full := len(w.events.Chan()) == cap(w.events.Chan())
	if len(w.watches) == 0 || !full && w.events.RequestProgressAll() {
		w.askedProgress = false
	}
}

func (w *watchStream) send(resp *pb.WatchResponse) error { return w.stream.Send(resp) }

// fragment sends a response in pieces of about limit bytes, or of one event if that alone is
// larger. A watch that asked for fragments gets all pieces but the last marked as such. Another
// watch must see the events of a revision together. It gets whole responses, cut between
// revisions, so that a watch that is far behind does not get everything at once.
//
// missing is how much an event grows when it is sent.
func fragment(resp *pb.WatchResponse, limit int, marked bool, missing func(*mvccpb.Event) int, send func(*pb.WatchResponse) error) error {
	total := proto.Size(resp)
	for _, e := range resp.Events {
		total += missing(e)
	}
	if len(resp.Events) < 2 || total < limit {
		return send(resp)
	}
	const perEvent = 8 // tag and length of an event in the message
	frame := proto.Size(&pb.WatchResponse{Header: resp.Header, WatchId: resp.WatchId, Fragment: true})
	for rest := resp.Events; len(rest) > 0; {
		n, size := 0, frame
		for n < len(rest) {
			size += proto.Size(rest[n]) + missing(rest[n]) + perEvent
			if n > 0 && size >= limit && (marked || rest[n].Kv.ModRevision != rest[n-1].Kv.ModRevision) {
				break
			}
			n++
		}
		piece := &pb.WatchResponse{Header: resp.Header, WatchId: resp.WatchId, Events: rest[:n], Fragment: marked && n < len(rest)}
		if !marked && n < len(rest) {
			piece.Header = resp.Header.Clone()
			piece.Header.Revision = rest[n-1].Kv.ModRevision
		}
		if err := send(piece); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

func filters(r *pb.WatchCreateRequest) []mvcc.FilterFunc {
	var out []mvcc.FilterFunc
	for _, f := range r.Filters {
		switch f {
		case pb.WatchCreateRequest_NOPUT:
			out = append(out, func(e *mvccpb.Event) bool { return e.Type == mvccpb.Event_PUT })
		case pb.WatchCreateRequest_NODELETE:
			out = append(out, func(e *mvccpb.Event) bool { return e.Type == mvccpb.Event_DELETE })
		}
	}
	return out
}
