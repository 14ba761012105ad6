package server

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/braidlog/braid/internal/store"
)

const (
	// noWatch is the watch id of answers that belong to no single watch.
	noWatch = -1
	// progressRetry is how soon a progress request is tried again while some watch of
	// its stream has not caught up.
	progressRetry = 50 * time.Millisecond
	// unsentAnswers bounds the answers of a stream that wait to be sent, in bytes. answerOverhead is the memory of one
	// besides its own bytes.
	unsentAnswers, answerOverhead = 4 << 20, 128
)

// errUnread ends the stream of a client that sends requests and does not read the answers. A retry
// is safe: clients of etcd open a new stream and continue where they were.
var errUnread = status.Error(codes.Unavailable, "etcdserver: the client does not read the answers of its watch stream")

// watchService implements pb.WatchServer.
type watchService struct {
	pb.UnsafeWatchServer
	s *Server
}

// Watch serves one stream of watches. One goroutine receives and carries out requests, and another one sends. The
// first never waits for the second: a client may stop reading until its requests are accepted. While a client does not
// read, its events wait in the store's history; writers never wait for it. Neither does the end of the stream: what is
// being sent fails when Watch has returned.
func (w *watchService) Watch(stream pb.Watch_WatchServer) error {
	w.s.metrics.WatchStreams.Add(1)
	defer w.s.metrics.WatchStreams.Add(-1)
	ws := &watchStream{
		s: w.s, stream: stream, events: w.s.store.KV().NewWatchStream(),
		watches: map[int64]*watch{}, fed: map[mvcc.WatchID]*watch{}, wake: make(chan struct{}, 1),
		ended: make(chan error, 2), done: make(chan struct{}), fetched: make(chan fetched),
	}
	defer close(ws.done)
	w.s.watching.Go(ws.receive)
	w.s.watching.Go(ws.run)
	var err error
	select {
	case err = <-ws.ended:
	case <-stream.Context().Done():
		err = stream.Context().Err()
	}
	if errors.Is(err, context.Canceled) {
		return rpctypes.ErrGRPCWatchCanceled
	}
	return err
}

// watchStream is one client's stream.
type watchStream struct {
	s      *Server
	stream pb.Watch_WatchServer
	events mvcc.WatchStream

	ended   chan error    // why receiving or sending ended
	wake    chan struct{} // holds a token if something in answers or askedProgress is new
	fetched chan fetched
	done    chan struct{} // Watch returned

	mu sync.Mutex
	// watches are those that the client knows and has not cancelled, by the client's ids.
	watches map[int64]*watch
	closed  bool // they are counted no more
	// nextID is where the search for an id begins if the client leaves it to the server.
	nextID int64
	// fed are those that the store sends events of, by the store's ids. An id of the store is never used twice, so events
	// that it still sends of a cancelled watch belong to none.
	fed map[mvcc.WatchID]*watch
	// lastFed is the newest of the store's ids.
	lastFed mvcc.WatchID
	// answers are sent before any event that the store sends later.
	answers answerQueue
	// askedProgress: a progress request waits until all watches have caught up.
	askedProgress bool
	// reports has, for each report of progress that is on its way, lastFed of when the store was asked for it. If the
	// store had no space for one, they are older than the reports.
	reports []mvcc.WatchID
}

// receive carries out requests until the client sends no more.
func (w *watchStream) receive() {
	for {
		req, err := w.stream.Recv()
		if err == nil {
			err = w.handle(req)
		}
		if errors.Is(err, io.EOF) {
			return // the client sends no more requests, but still receives
		}
		if err != nil {
			w.ended <- err
			return
		}
		select {
		case <-w.done:
			return
		default:
		}
	}
}

// run sends, until the stream ends.
func (w *watchStream) run() {
	interval := w.s.cfg.WatchProgressInterval
	progress := time.NewTicker(interval + rand.N(interval/10+1)) // spread over the streams
	defer progress.Stop()
	retry := time.NewTicker(progressRetry)
	retry.Stop()
	defer retry.Stop()
	defer w.close()
	for {
		var err error
		select {
		case <-w.wake:
			if w.answerProgress() {
				retry.Reset(progressRetry)
			}
			err = w.sendAnswers()
		case resp := <-w.events.Chan():
			if err = w.sendAnswers(); err == nil {
				err = w.deliver(&resp)
			}
		case f := <-w.fetched:
			err = f.watch.unpark(f.parked, f.err)
		case <-progress.C:
			w.requestProgress()
		case <-retry.C:
			if !w.answerProgress() {
				retry.Stop()
			}
		case <-w.done:
			return
		}
		if err != nil {
			w.ended <- err
			return
		}
	}
}

// count counts watches that begin, or end. w.mu is held.
func (w *watchStream) count(n int) {
	if !w.closed {
		w.s.metrics.Watches.Add(int64(n))
	}
}

func (w *watchStream) close() {
	w.mu.Lock()
	w.count(-len(w.watches))
	w.closed = true
	w.mu.Unlock()
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
			return w.cancel(r.CancelRequest.WatchId)
		}
	case *pb.WatchRequest_ProgressRequest:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.askedProgress = true
		w.wakeUp()
	}
	return nil // unknown requests of newer clients are ignored
}

func (w *watchStream) create(r *pb.WatchCreateRequest) error {
	if len(r.Key) == 0 {
		r.Key = []byte{0} // the smallest key
	}
	if r.StartRevision < 0 {
		return w.refuse(rpctypes.ErrCompacted.Error())
	}
	reader, err := w.permitted(r)
	if err != nil {
		return w.refuse(err.Error())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	state := &watch{
		w: w, prevKV: r.PrevKv, fragment: r.Fragment, progress: r.ProgressNotify, quiet: true,
		filters: filters(r), key: r.Key, end: storeEnd(r.RangeEnd), reader: reader,
	}
	if state.id, err = w.freeID(r.WatchId); err == nil {
		err = state.feed(r.StartRevision)
	}
	if err != nil {
		return w.queue(w.refusal(err.Error()))
	}
	w.watches[state.id] = state
	w.count(1)
	return w.queue(&pb.WatchResponse{Header: w.s.header(w.events.Rev()), WatchId: state.id, Created: true})
}

// storeEnd is the end of a range as the store expects it.
func storeEnd(end []byte) []byte {
	switch {
	case len(end) == 0:
		return nil // this key alone
	case len(end) == 1 && end[0] == 0:
		return []byte{} // every key from this one on
	}
	return end
}

// freeID returns the id that a client asked for, or a free one if it asked for none. w.mu is held.
func (w *watchStream) freeID(asked int64) (int64, error) {
	if asked != 0 {
		if w.watches[asked] != nil {
			return 0, mvcc.ErrWatcherDuplicateID
		}
		return asked, nil
	}
	for w.watches[w.nextID] != nil {
		w.nextID++
	}
	id := w.nextID
	w.nextID++
	return id, nil
}

func (w *watchStream) refusal(reason string) *pb.WatchResponse {
	return &pb.WatchResponse{
		Header: w.s.header(w.events.Rev()), WatchId: noWatch, Created: true, Canceled: true, CancelReason: reason,
	}
}

func (w *watchStream) refuse(reason string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queue(w.refusal(reason))
}

// permitted returns the reader of a watch, or an error with the text that clients expect. It checks the state here, as
// etcd does. This member may lag behind a change of users, so deliver asks again after each.
func (w *watchStream) permitted(r *pb.WatchCreateRequest) (*store.Reader, error) {
	reader, err := w.s.store.Rights().Reader(w.stream.Context(), r.Key, r.RangeEnd)
	switch {
	case err == nil:
		return reader, nil
	case errors.Is(err, auth.ErrInvalidAuthToken), errors.Is(err, auth.ErrAuthOldRevision),
		errors.Is(err, auth.ErrUserEmpty):
		return nil, toStatus(err)
	}
	return nil, rpctypes.ErrGRPCPermissionDenied
}

func (w *watchStream) cancel(id int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.watches[id]
	if state == nil {
		return nil // never created, or it ended by itself
	}
	delete(w.watches, id)
	w.count(-1)
	state.stopFeed()
	return w.queue(&pb.WatchResponse{Header: w.s.header(w.events.Rev()), WatchId: id, Canceled: true})
}

// wakeUp makes run check answers and askedProgress.
func (w *watchStream) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
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

// answerQueue holds answers to requests until run sends them. It is bounded by unsentAnswers.
type answerQueue struct {
	all   []*pb.WatchResponse
	bytes int
}

// push returns errUnread if there are too many.
func (q *answerQueue) push(answer *pb.WatchResponse) error {
	size := proto.Size(answer) + answerOverhead
	if q.bytes+size > unsentAnswers {
		return errUnread
	}
	q.all, q.bytes = append(q.all, answer), q.bytes+size
	return nil
}

// pop returns the oldest answer; nil: there is none.
func (q *answerQueue) pop() *pb.WatchResponse {
	if len(q.all) == 0 {
		return nil
	}
	answer := q.all[0]
	q.all[0] = nil
	if q.all = q.all[1:]; len(q.all) == 0 {
		q.all = nil
	}
	q.bytes -= proto.Size(answer) + answerOverhead
	return answer
}

// queue makes run send an answer. w.mu is held.
func (w *watchStream) queue(answer *pb.WatchResponse) error {
	if err := w.answers.push(answer); err != nil {
		return err
	}
	w.wakeUp()
	return nil
}

// deliver sends what the store has for one watch, or the revision that it reports.
func (w *watchStream) deliver(resp *mvcc.WatchResponse) error {
	mvcc.ReportEventReceived(len(resp.Events))
	if resp.WatchID == noWatch {
		return w.sendProgress(resp.Revision)
	}
	w.mu.Lock()
	state := w.fed[resp.WatchID]
	if state != nil && len(resp.Events) > 0 {
		state.quiet = false
	}
	w.mu.Unlock()
	if state == nil {
		return nil // cancelled while events were queued
	}
	return state.deliver(resp)
}

// sendAnswers sends the answers that wait.
func (w *watchStream) sendAnswers() error {
	for {
		w.mu.Lock()
		answer := w.answers.pop()
		w.mu.Unlock()
		if answer == nil {
			return nil
		}
		if err := w.stream.Send(answer); err != nil {
			return err
		}
	}
}
