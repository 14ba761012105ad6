package server

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
)

// What a watch stream sends. All of it runs in the goroutine of run.

// sendAnswers sends the answers that wait.
func (w *watchStream) sendAnswers() error {
	for {
		w.mu.Lock()
		if len(w.answers) == 0 {
			w.mu.Unlock()
			return nil
		}
		answer := w.answers[0]
		w.answers[0] = nil
		if w.answers = w.answers[1:]; len(w.answers) == 0 {
			w.answers = nil
		}
		w.answerBytes -= proto.Size(answer) + answerOverhead
		w.mu.Unlock()
		if err := w.stream.Send(answer); err != nil {
			return err
		}
	}
}

// deliver sends what the store has for one watch.
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
		return nil // cancelled with events under way
	}
	out := &pb.WatchResponse{
		Header: w.s.header(resp.Revision), WatchId: state.id, Events: resp.Events,
		CompactRevision: resp.CompactRevision, Canceled: resp.CompactRevision != 0,
	}
	if out.Canceled {
		if !w.forget(state) {
			return nil
		}
		return w.send(out)
	}
	if err := state.reader.Still(); err != nil {
		return w.end(state, &pb.WatchResponse{Header: out.Header, WatchId: out.WatchId}, err)
	}
	w.s.metrics.Events.Add(int64(len(resp.Events)))
	if state.prevKV {
		out.Events = w.withPrevious(resp.Events)
	}
	return w.pass(state, out)
}

// sendProgress tells a revision up to which everything was sent. A watch that was parked since the store said
// so has not caught up, and its client is told later.
func (w *watchStream) sendProgress(revision int64) error {
	w.mu.Lock()
	behind := len(w.fed) < len(w.watches)
	if behind {
		w.askedProgress = true
		w.poke()
	}
	w.mu.Unlock()
	if behind {
		return nil
	}
	return w.send(&pb.WatchResponse{Header: w.s.header(revision), WatchId: noWatch})
}

// pass sends the events of a watch, up to the first whose values are not at hand.
func (w *watchStream) pass(state *watch, out *pb.WatchResponse) error {
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
		w.park(state, later, &pb.WatchResponse{Header: out.Header, WatchId: out.WatchId, Events: out.Events[sent+len(later.piece.Events):]})
		return nil
	case endsWatch(err):
		return w.end(state, out, err)
	}
	return toStatus(err) // the client comes again, here or elsewhere
}

// end cancels one watch because of an error.
func (w *watchStream) end(state *watch, out *pb.WatchResponse, err error) error {
	if !w.forget(state) {
		return nil
	}
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
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, state := range w.fed {
		if state.progress && state.quiet {
			w.events.RequestProgress(id)
		}
		state.quiet = true
	}
}

// tryProgress answers a progress request once all watches of the stream have caught up, and reports
// whether it must be tried again. The store drops the answer if the channel is full.
func (w *watchStream) tryProgress() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	full := len(w.events.Chan()) == cap(w.events.Chan())
	switch {
	case len(w.watches) == 0:
		w.askedProgress = false
	case len(w.fed) < len(w.watches), full: // a parked watch has not caught up
	case w.askedProgress && w.events.RequestProgressAll():
		w.askedProgress = false
	}
	return w.askedProgress
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
