package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/etcdserver/apply"
	"go.etcd.io/etcd/server/v3/etcdserver/txn"
)

// Range reads keys from this member's state. Errors: etcd's for a revision that is gone or
// not there yet, for permissions, and [ErrBadCommand] for an order that does not exist.
func (s *Store) Range(ctx context.Context, r *pb.RangeRequest) (resp *pb.RangeResponse, err error) {
	if err := checkRange(r); err != nil {
		return nil, err
	}
	asked, byValue := r, sortedByValue(r)
	if byValue {
		asked = unsorted(r)
	}
	allowed := func(user *auth.AuthInfo) error { return s.auth.IsRangePermitted(user, r.Key, r.RangeEnd) }
	err = s.permitted(ctx, allowed, func() error {
		resp, _, err = txn.Range(ctx, s.lg, s.kv, asked, true)
		return err
	})
	if err == nil && byValue {
		err = s.values.sortRange(ctx, r, resp)
	}
	if err == nil {
		err = s.Resolve(ctx, resp.Kvs...)
	}
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// RangeStream reads keys, in ascending order, in chunks of about chunkBytes. All chunks
// show one revision. The last one has the header, the count and whether there is more. Each is sent
// only if the user may still read it.
// It neither sorts nor filters by revision.
func (s *Store) RangeStream(ctx context.Context, r *pb.RangeRequest, chunkBytes int, send func(*pb.RangeResponse) error) error {
	if err := checkRange(r); err != nil {
		return err
	}
	allowed := func(user *auth.AuthInfo) error { return s.auth.IsRangePermitted(user, r.Key, r.RangeEnd) }
	user, err := s.AuthInfo(ctx)
	if err != nil {
		return err
	}
	swaps := s.swaps.Load()
	sendStill := func(chunk *pb.RangeResponse) error { // the right to it may have been revoked since the last one
		if err := s.still(orNobody(user), allowed, swaps); err != nil {
			return err
		}
		return send(chunk)
	}
	return s.permittedAs(user, allowed, func() error {
		if r.CountOnly {
			return s.streamCount(ctx, r, sendStill)
		}
		return s.stream(ctx, proto.Clone(r).(*pb.RangeRequest), chunkBytes, sendStill)
	})
}

func (s *Store) streamCount(ctx context.Context, r *pb.RangeRequest, send func(*pb.RangeResponse) error) error {
	resp, _, err := txn.Range(ctx, s.lg, s.kv, r, true)
	if err != nil {
		return err
	}
	return send(&pb.RangeResponse{Header: resp.Header, Count: resp.Count})
}

// firstChunk is how many keys are read before their size is known.
const firstChunk = 16

func (s *Store) stream(ctx context.Context, r *pb.RangeRequest, chunkBytes int, send func(*pb.RangeResponse) error) error {
	left := r.Limit
	if left <= 0 {
		left = math.MaxInt64
	}
	var sent, newest int64
	for chunk := int64(firstChunk); ; {
		r.Limit = min(chunk, left)
		resp, _, err := txn.Range(ctx, s.lg, s.kv, r, false)
		if err != nil {
			return err
		}
		if newest == 0 { // the first chunk pins the revision for the others
			newest = resp.Header.Revision
			if r.Revision <= 0 { // as for Range, that asks for the newest one
				r.Revision = newest
			}
		}
		n := int64(len(resp.Kvs))
		sent, left = sent+n, left-n
		out := &pb.RangeResponse{Kvs: resp.Kvs}
		if resp.More {
			r.Key = append(bytes.Clone(resp.Kvs[n-1].Key), 0)
		}
		if !resp.More || left == 0 {
			return s.lastChunk(ctx, r, out, resp.More, sent, newest, s.inPieces(ctx, chunkBytes, send))
		}
		size := s.resolvedSize(out)
		if err := s.inPieces(ctx, chunkBytes, send)(out); err != nil {
			return err
		}
		chunk = nextChunk(n, size, chunkBytes)
	}
}

// resolvedSize is the size of a chunk with all its values.
func (s *Store) resolvedSize(chunk *pb.RangeResponse) int {
	size := proto.Size(chunk)
	for _, kv := range chunk.Kvs {
		if IsReference(kv) {
			size += s.ValueSize(kv) - len(kv.Value)
		}
	}
	return size
}

// inPieces returns a send that gives a chunk its large values. A chunk that they make too
// large goes in pieces, each with its values only when it is sent.
func (s *Store) inPieces(ctx context.Context, limit int, send func(*pb.RangeResponse) error) func(*pb.RangeResponse) error {
	limit = int(min(int64(limit), s.opts.ResponseBytes))
	return func(chunk *pb.RangeResponse) error {
		for slices.ContainsFunc(chunk.Kvs, IsReference) {
			n := 0
			for size := 0; n < len(chunk.Kvs); n++ {
				size += s.ValueSize(chunk.Kvs[n])
				if n > 0 && size > limit {
					break
				}
			}
			if err := s.Resolve(ctx, chunk.Kvs[:n]...); err != nil {
				return err
			}
			if n == len(chunk.Kvs) {
				break
			}
			if err := send(&pb.RangeResponse{Kvs: chunk.Kvs[:n]}); err != nil {
				return err
			}
			chunk.Kvs = chunk.Kvs[n:]
		}
		return send(chunk)
	}
}

// lastChunk adds what holds for the whole stream.
func (s *Store) lastChunk(ctx context.Context, r *pb.RangeRequest, out *pb.RangeResponse, more bool, sent, newest int64, send func(*pb.RangeResponse) error) error {
	out.Header = &pb.ResponseHeader{Revision: newest}
	out.More = more
	out.Count = sent
	if more {
		rest, err := txn.Count(ctx, s.lg, s.kv, r.Key, r.RangeEnd, r.Revision)
		if err != nil {
			return err
		}
		out.Count += rest
	}
	return send(out)
}

// nextChunk is how many keys of the size just seen fit the target; it at most quadruples,
// since the next ones may be larger.
func nextChunk(keys int64, size, target int) int64 {
	perKey := max(int64(size)/max(keys, 1), 1)
	return min(max(int64(target)/perKey, 1), 4*max(keys, 1))
}

// IsReadOnly reports whether a transaction writes nothing, so that [Store.Txn] can run it
// without ordering it. One that holds another transaction counts as writing.
func IsReadOnly(r *pb.TxnRequest) bool { return txn.IsTxnReadonly(r) }

// IsSerializable reports whether all reads of a transaction may be out of date.
func IsSerializable(r *pb.TxnRequest) bool { return txn.IsTxnSerializable(r) }

// Txn runs a read-only transaction on this member's state.
func (s *Store) Txn(ctx context.Context, r *pb.TxnRequest) (resp *pb.TxnResponse, err error) {
	if !IsReadOnly(r) {
		return nil, fmt.Errorf("%w: a transaction that writes has to be ordered", ErrBadCommand)
	}
	if err := checkTxn(r); err != nil {
		return nil, err
	}
	for range txnAttempts {
		resp, err = s.readTxn(ctx, r)
		if !errors.Is(err, ErrUnresolved) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// txnAttempts is how often a transaction is tried whose values change while they are compared.
const txnAttempts = 16

func (s *Store) readTxn(ctx context.Context, r *pb.TxnRequest) (resp *pb.TxnResponse, err error) {
	allowed := func(user *auth.AuthInfo) error { return apply.CheckTxnAuth(s.auth, user, s.lessor, r) }
	asked := r
	j := judge{s: s, concerns: comparedBeforehand}
	if slices.ContainsFunc(r.Compare, comparedBeforehand) {
		if err := s.permit(ctx, allowed); err != nil {
			return nil, err
		}
		if asked, err = j.txn(ctx, r); err != nil {
			return nil, err
		}
	}
	if m := (extraction{}); m.concerns(asked) {
		asked = m.txn(asked)
	}
	err = s.permitted(ctx, allowed, func() error {
		resp, _, err = txn.Txn(ctx, s.lg, asked, true, s.kv, s.lessor, false)
		return err
	})
	if err != nil {
		return nil, err
	}
	now := comparer{s.kv, s.database().refs}
	for i := range j.seen {
		if !now.holds(&j.seen[i], resp.Header.Revision) {
			return nil, ErrUnresolved
		}
	}
	if err := s.values.sortTxn(ctx, r, resp); err != nil {
		return nil, err
	}
	return resp, s.Resolve(ctx, keysOf(resp, nil)...)
}
