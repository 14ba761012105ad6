package store

import (
	"bytes"
	"context"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/etcdserver/txn"
)

// RangeStream reads keys, in ascending order, in chunks of about chunkBytes. All chunks
// show one revision. The last one has the header, the count and whether there is more. Each is sent
// only if the user may still read it.
// It neither sorts nor filters by revision.
func (s *Store) RangeStream(ctx context.Context, r *pb.RangeRequest, chunkBytes int,
	send func(*pb.RangeResponse) error) error {
	if err := checkRange(r); err != nil {
		return err
	}
	allowed := func(user *auth.AuthInfo) error { return s.rights.auth.IsRangePermitted(user, r.Key, r.RangeEnd) }
	user, err := s.rights.AuthInfo(ctx)
	if err != nil {
		return err
	}
	swaps := s.rights.swaps.Load()
	sendStill := func(chunk *pb.RangeResponse) error { // the right to it may have been revoked since the last one
		if err := s.rights.still(orEmpty(user), allowed, swaps); err != nil {
			return err
		}
		return send(chunk)
	}
	return s.rights.permittedAs(user, allowed, func() error {
		out := rangeStream{s: s, ctx: ctx, target: chunkBytes, most: int(min(int64(chunkBytes), s.opts.ResponseBytes)),
			send: sendStill}
		if r.CountOnly {
			return out.count(r)
		}
		return out.run(proto.Clone(r).(*pb.RangeRequest))
	})
}

// rangeStream sends the keys of one request in chunks.
type rangeStream struct {
	s      *Store
	ctx    context.Context
	target int // of a chunk, in bytes
	most   int // of the large values in a message, in bytes
	send   func(*pb.RangeResponse) error

	sent   int64 // keys
	newest int64 // the newest revision when the first chunk was read
}

func (t *rangeStream) count(r *pb.RangeRequest) error {
	resp, _, err := txn.Range(t.ctx, t.s.lg, t.s.kv, r, true)
	if err != nil {
		return err
	}
	return t.send(&pb.RangeResponse{Header: resp.Header, Count: resp.Count})
}

// firstChunk is how many keys are read before their size is known.
const firstChunk = 16

// run sends the keys of a request, which it changes.
func (t *rangeStream) run(r *pb.RangeRequest) error {
	left := r.Limit
	if left <= 0 {
		left = math.MaxInt64
	}
	for chunk := int64(firstChunk); ; {
		r.Limit = min(chunk, left)
		resp, _, err := txn.Range(t.ctx, t.s.lg, t.s.kv, r, false)
		if err != nil {
			return err
		}
		if t.newest == 0 { // the first chunk pins the revision for the others
			t.newest = resp.Header.Revision
			if r.Revision <= 0 { // as for Range, that asks for the newest one
				r.Revision = t.newest
			}
		}
		n := int64(len(resp.Kvs))
		t.sent, left = t.sent+n, left-n
		out := &pb.RangeResponse{Kvs: resp.Kvs}
		if resp.More {
			r.Key = append(bytes.Clone(resp.Kvs[n-1].Key), 0)
		}
		if !resp.More || left == 0 {
			return t.last(r, out, resp.More)
		}
		size := t.resolvedSize(out)
		if err := t.sendChunk(out); err != nil {
			return err
		}
		chunk = nextChunk(n, size, t.target)
	}
}

// resolvedSize is the size of a chunk with all its values.
func (t *rangeStream) resolvedSize(chunk *pb.RangeResponse) int {
	size := proto.Size(chunk)
	for _, kv := range chunk.Kvs {
		if IsReference(kv) {
			size += t.s.ValueSize(kv) - len(kv.Value)
		}
	}
	return size
}

// sendChunk sends a chunk with its large values. A chunk that they make too large is sent in pieces, each of which gets
// its values only when it is sent.
func (t *rangeStream) sendChunk(chunk *pb.RangeResponse) error {
	for slices.ContainsFunc(chunk.Kvs, IsReference) {
		n := 0
		for size := 0; n < len(chunk.Kvs); n++ {
			size += t.s.ValueSize(chunk.Kvs[n])
			if n > 0 && size > t.most {
				break
			}
		}
		if err := t.s.Resolve(t.ctx, chunk.Kvs[:n]...); err != nil {
			return err
		}
		if n == len(chunk.Kvs) {
			break
		}
		piece := &pb.RangeResponse{Kvs: slices.Clone(chunk.Kvs[:n])}
		clear(chunk.Kvs[:n]) // else all values of the chunk would be kept until its end
		if err := t.send(piece); err != nil {
			return err
		}
		chunk.Kvs = chunk.Kvs[n:]
	}
	return t.send(chunk)
}

// last sends the last chunk, with the header and the count of the whole stream.
func (t *rangeStream) last(r *pb.RangeRequest, out *pb.RangeResponse, more bool) error {
	out.Header = &pb.ResponseHeader{Revision: t.newest}
	out.More = more
	out.Count = t.sent
	if more {
		rest, err := txn.Count(t.ctx, t.s.lg, t.s.kv, r.Key, r.RangeEnd, r.Revision)
		if err != nil {
			return err
		}
		out.Count += rest
	}
	return t.sendChunk(out)
}

// nextChunk is how many keys of the size just seen fit the target; it at most quadruples,
// since the next ones may be larger.
func nextChunk(keys int64, size, target int) int64 {
	perKey := max(int64(size)/max(keys, 1), 1)
	return min(max(int64(target)/perKey, 1), 4*max(keys, 1))
}
