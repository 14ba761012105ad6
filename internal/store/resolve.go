package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// Bodies stores commands' bodies: the log does.
type Bodies interface {
	// Body returns a whole body, which no one changes. It asks other members if it has to. It fails after a while, or
	// when ctx is done.
	Body(ctx context.Context, ref BodyRef) ([]byte, error)
	// Release deletes a body, durably.
	Release(ref BodyRef)
}

// ErrWrongBytes: the bytes of a value are not those that were written. A retry is useless before the members that hold
// them are repaired.
var ErrWrongBytes = errors.New("store: the bytes of a value are not those that were written")

// errNowhere: a value cannot be found, because the state is being replaced, or because it is in a body and the store
// has no Bodies.
var errNowhere = errors.New("store: it is not known where the value is")

// ValueError: a large value cannot be read. Unless it wraps [ErrWrongBytes], a retry is safe, and may succeed when
// more members can be reached.
type ValueError struct {
	Revision int64
	Size     uint64
	Body     BodyRef
	Cause    error
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("store: value of %d bytes at revision %d: %s", e.Size, e.Revision, e.Cause)
}

func (e *ValueError) Unwrap() error { return e.Cause }

// ResponseError: a response would hold too many large values. The same request in smaller parts can be answered.
type ResponseError struct{ Bytes, Limit uint64 }

func (e *ResponseError) Error() string {
	return fmt.Sprintf("store: the values of the answer have %d bytes, more than %d: ask for fewer keys at a time",
		e.Bytes, e.Limit)
}

// fetchers is how many bodies are fetched at a time for one answer.
const fetchers = 8

// value is a value that was read, wherever its bytes are.
type value struct {
	kv        *mvccpb.KeyValue
	place     place
	elsewhere bool  // in a body
	err       error // the value cannot be found
}

// values finds and fetches large values. It is safe for concurrent use.
type values struct {
	bodies Bodies // nil: there are none
	limit  uint64 // of an answer, in bytes
	lg     *zap.Logger
	refs   func() *refs // of the database now
	// compacted is the revision up to which the database is compacted.
	compacted func() int64
	// fetching bounds the bytes of large values that are being fetched.
	fetching *semaphore.Weighted
	// verified are large values that were read recently.
	verified verified
}

// locate finds a value's bytes. The key must have been read recently: within the grace period.
func (s *values) locate(kv *mvccpb.KeyValue) value {
	v := value{kv: kv}
	if !marked(kv.Value) {
		return v
	}
	p, ok := s.refs().find(kv.ModRevision, kv.Value)
	switch {
	case ok:
		v.place, v.elsewhere = p, p.body != nil
	case kv.ModRevision <= s.compacted():
		v.err = mvcc.ErrCompacted
	default:
		v.err = &ValueError{Revision: kv.ModRevision, Size: uint64(len(kv.Value)), Cause: errNowhere}
	}
	return v
}

// size is the length of the value itself.
func (v *value) size() uint64 {
	if v.elsewhere {
		return v.place.record.size
	}
	return uint64(len(v.kv.Value))
}

// equals compares the value with another one without fetching it.
func (v *value) equals(other []byte) bool {
	if v.elsewhere {
		return v.place.record.verify(other)
	}
	return bytes.Equal(v.kv.Value, other)
}

// bytesOf returns the value itself. The caller must not change it.
func (s *values) bytesOf(ctx context.Context, v *value) ([]byte, error) {
	if !v.elsewhere {
		return v.kv.Value, v.err
	}
	ref := v.place.body.ref
	whole, err := []byte(nil), errNowhere
	if s.bodies != nil {
		whole, err = s.bodies.Body(ctx, ref)
	}
	if err == nil && uint64(len(whole)) != uint64(ref.Size) {
		err = ErrWrongBytes
	}
	if err == nil {
		begin, end := uint64(v.place.offset), uint64(v.place.offset)+v.place.record.size
		if out := whole[begin:end:end]; s.verified.check(v.place.record, out) {
			return out, nil
		}
		err = ErrWrongBytes
	}
	if errors.Is(err, ErrWrongBytes) {
		s.lg.Error(err.Error() + ": " + fmt.Sprintf("revision %d, %+v", v.kv.ModRevision, ref))
	}
	return nil, &ValueError{Revision: v.kv.ModRevision, Size: v.place.record.size, Body: ref, Cause: err}
}

// ValueSize returns the length of a key's value, also where it is not at hand.
func (s *Store) ValueSize(kv *mvccpb.KeyValue) int {
	if !marked(kv.GetValue()) {
		return len(kv.GetValue())
	}
	v := s.values.locate(kv)
	return int(v.size())
}

// IsReference reports whether a key that was read from KV or from a watch may not have its value yet; [Store.Resolve]
// fetches it.
func IsReference(kv *mvccpb.KeyValue) bool { return kv != nil && marked(kv.Value) }

// Resolve fetches the values of keys that were read from KV or from a watch. It changes the keys themselves: copy
// those that others may read. Errors: [ValueError], [ResponseError], etcd's ErrCompacted for what was compacted too
// long ago, ctx's.
func (s *Store) Resolve(ctx context.Context, kvs ...*mvccpb.KeyValue) error {
	return s.values.resolve(ctx, kvs)
}

func (s *values) resolve(ctx context.Context, kvs []*mvccpb.KeyValue) error {
	var missing []value
	total := uint64(0)
	for _, kv := range kvs {
		if !IsReference(kv) {
			continue
		}
		v := s.locate(kv)
		if v.err != nil {
			return v.err
		}
		if v.elsewhere {
			missing = append(missing, v)
			total += v.size()
		}
	}
	if len(missing) == 0 {
		return nil
	}
	limit := s.limit
	if total > limit && len(missing) > 1 {
		return &ResponseError{total, limit}
	}
	weight := int64(min(total, limit))
	if err := s.fetching.Acquire(ctx, weight); err != nil {
		return err
	}
	defer s.fetching.Release(weight)
	return s.fetchAll(ctx, missing)
}

func (s *values) fetchAll(ctx context.Context, missing []value) error {
	if len(missing) == 1 {
		return s.fetch(ctx, &missing[0])
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetchers)
	for i := range missing {
		group.Go(func() error { return s.fetch(ctx, &missing[i]) })
	}
	return group.Wait()
}

func (s *values) fetch(ctx context.Context, v *value) error {
	b, err := s.bytesOf(ctx, v)
	if err == nil {
		v.kv.Value = b
	}
	return err
}

// Answer completes the response of an applied request with large values, and with ranges sorted by value. It is called
// once, with the response of the [Result].
func (s *Store) Answer(ctx context.Context, e *Encoded, response proto.Message) error {
	var asked *pb.TxnRequest
	if e.request != nil {
		asked = e.request.Txn
	}
	switch r := response.(type) {
	case *pb.PutResponse:
		if IsReference(r.PrevKv) {
			return s.Resolve(ctx, r.PrevKv)
		}
	case *pb.DeleteRangeResponse:
		return s.Resolve(ctx, r.PrevKvs...)
	case *pb.RangeResponse:
		return s.Resolve(ctx, r.Kvs...)
	case *pb.TxnResponse:
		if asked != nil {
			if err := s.values.sortTxn(ctx, asked, r); err != nil {
				return err
			}
		}
		return s.Resolve(ctx, keysOf(r, nil)...)
	}
	return nil
}

// keysOf gathers all keys of a transaction's response.
func keysOf(r *pb.TxnResponse, out []*mvccpb.KeyValue) []*mvccpb.KeyValue {
	for _, op := range r.Responses {
		switch o := op.Response.(type) {
		case *pb.ResponseOp_ResponseRange:
			out = append(out, o.ResponseRange.GetKvs()...)
		case *pb.ResponseOp_ResponsePut:
			if kv := o.ResponsePut.GetPrevKv(); kv != nil {
				out = append(out, kv)
			}
		case *pb.ResponseOp_ResponseDeleteRange:
			out = append(out, o.ResponseDeleteRange.GetPrevKvs()...)
		case *pb.ResponseOp_ResponseTxn:
			out = keysOf(o.ResponseTxn, out)
		}
	}
	return out
}
