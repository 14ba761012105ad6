package server

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/braidlog/braid/internal/store"
)

// fragment cuts a response into pieces of about limit bytes, or of one event if that alone is
// larger. A watch that asked for fragments gets all pieces but the last marked as such. Another
// watch must see the events of a revision together. It gets whole responses, cut between
// revisions, so that a watch that is far behind does not get everything at once.
//
// missing is how much an event grows when it is sent.
func fragment(resp *pb.WatchResponse, limit int, marked bool,
	missing func(*mvccpb.Event) int) (pieces []*pb.WatchResponse) {
	total := proto.Size(resp)
	for _, e := range resp.Events {
		total += missing(e)
	}
	if len(resp.Events) < 2 || total < limit {
		return []*pb.WatchResponse{resp}
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
		piece := &pb.WatchResponse{Header: resp.Header, WatchId: resp.WatchId, Events: rest[:n:n],
			Fragment: marked && n < len(rest)}
		if !marked && n < len(rest) {
			piece.Header = resp.Header.Clone()
			piece.Header.Revision = rest[n-1].Kv.ModRevision
		}
		pieces = append(pieces, piece)
		rest = rest[n:]
	}
	return pieces
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

// resolve fetches the large values of a piece. Events that get one are copied, because other watches share them. It
// returns the keys whose values are not at hand but may be later, or an error after which they will not be.
func (w *watchStream) resolve(piece *pb.WatchResponse) (later []*mvccpb.KeyValue, err error) {
	missing := copyReferences(piece)
	if len(missing) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(w.stream.Context(), resolveInline)
	defer cancel()
	err = w.s.store.Resolve(ctx, missing...)
	if err == nil {
		return nil, nil
	}
	var value *store.ValueError
	if mayCome := errors.As(err, &value) ||
		ctx.Err() != nil; mayCome && !endsWatch(err) && w.stream.Context().Err() == nil {
		return missing, nil
	}
	return nil, err
}

// copyReferences copies the events of a piece that need large values, and returns the keys to be resolved.
func copyReferences(piece *pb.WatchResponse) (missing []*mvccpb.KeyValue) {
	copied := func(kv *mvccpb.KeyValue) *mvccpb.KeyValue {
		if !store.IsReference(kv) {
			return kv
		}
		kv = &mvccpb.KeyValue{
			Key: kv.Key, Value: kv.Value, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version,
			Lease: kv.Lease,
		}
		missing = append(missing, kv)
		return kv
	}
	own := false
	for i, e := range piece.Events {
		if !store.IsReference(e.Kv) && !store.IsReference(e.PrevKv) {
			continue
		}
		if !own {
			piece.Events, own = slices.Clone(piece.Events), true
		}
		piece.Events[i] = &mvccpb.Event{Type: e.Type, Kv: copied(e.Kv), PrevKv: copied(e.PrevKv)}
	}
	return missing
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
