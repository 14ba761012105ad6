package server

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
)

// kvService implements pb.KVServer.
type kvService struct {
	pb.UnsafeKVServer
	s *Server
}

// Put implements pb.KVServer.
func (k *kvService) Put(ctx context.Context, r *pb.PutRequest) (*pb.PutResponse, error) {
	if err := checkPut(r); err != nil {
		return nil, err
	}
	mode, err := k.s.modeOf(ctx, r)
	if err != nil {
		return nil, err
	}
	var resp *pb.PutResponse
	if mode.named() {
		resp, err = k.s.putAs(ctx, r, mode)
	} else {
		resp, err = proposeSpace[*pb.PutResponse](ctx, k.s, &pb.InternalRaftRequest{Put: r})
	}
	if err != nil {
		return nil, err
	}
	resp.Header = k.s.fill(resp.Header)
	return resp, nil
}

// DeleteRange implements pb.KVServer.
func (k *kvService) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	if err := checkDelete(r); err != nil {
		return nil, err
	}
	resp, err := propose[*pb.DeleteRangeResponse](ctx, k.s, &pb.InternalRaftRequest{DeleteRange: r})
	if err != nil {
		return nil, err
	}
	resp.Header = k.s.fill(resp.Header)
	return resp, nil
}

// Txn implements pb.KVServer. One that writes nothing does not go through the log.
func (k *kvService) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if err := k.s.needUser(ctx); err != nil { // the rest needs time by the size of the request
		return nil, err
	}
	if err := checkTxn(r, k.s.cfg.MaxTxnOps); err != nil {
		return nil, err
	}
	resp, err := k.txn(ctx, r)
	if err != nil {
		return nil, err
	}
	resp.Header = k.s.fill(resp.Header)
	return resp, nil
}

func (k *kvService) txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if !store.IsReadOnly(r) {
		return proposeSpace[*pb.TxnResponse](ctx, k.s, &pb.InternalRaftRequest{Txn: r})
	}
	if err := k.s.readable(ctx, store.IsSerializable(r)); err != nil {
		return nil, err
	}
	resp, err := k.s.store.Txn(ctx, r)
	return resp, toStatus(err)
}

// Range implements pb.KVServer.
func (k *kvService) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := checkRange(r); err != nil {
		return nil, err
	}
	if err := k.s.readable(ctx, r.Serializable); err != nil {
		return nil, err
	}
	resp, err := k.s.store.Range(ctx, r)
	if err != nil {
		return nil, toStatus(err)
	}
	resp.Header = k.s.fill(resp.Header)
	return resp, nil
}

// chunkBytes is the size of a message of a stream, if its values are not larger.
const chunkBytes = 3 << 19

// RangeStream implements pb.KVServer: a range in chunks, all of one revision.
func (k *kvService) RangeStream(r *pb.RangeRequest, stream pb.KV_RangeStreamServer) error {
	if err := checkRangeStream(r); err != nil {
		return err
	}
	ctx := stream.Context()
	if err := k.s.readable(ctx, r.Serializable); err != nil {
		return err
	}
	return toStatus(k.s.store.RangeStream(ctx, r, chunkBytes, func(chunk *pb.RangeResponse) error {
		if chunk.Header != nil {
			chunk.Header = k.s.fill(chunk.Header)
		}
		return sendWithin(ctx, sendTimeout, func() error {
			return stream.Send(&pb.RangeStreamResponse{RangeResponse: chunk})
		})
	}))
}

// Compact implements pb.KVServer.
func (k *kvService) Compact(ctx context.Context, r *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	if err := k.s.needAdmin(ctx); err != nil {
		return nil, err
	}
	e, err := k.s.store.Encode(ctx, &pb.InternalRaftRequest{Compaction: r})
	if err != nil {
		return nil, toStatus(err)
	}
	result, err := k.s.order(ctx, &e, braid.ProposeOptions{})
	if err != nil {
		return nil, err
	}
	if result.Err != nil {
		return nil, toStatus(result.Err)
	}
	if r.Physical {
		if err := k.s.store.FinishCompaction(ctx, result); err != nil {
			return nil, toStatus(err)
		}
	}
	return &pb.CompactionResponse{Header: k.s.header(k.s.store.Revision())}, nil
}

// readBarrier returns when everything acknowledged before the call is applied here. It waits no longer than the
// server's request timeout. The log has concurrent callers share barriers.
func (s *Server) readBarrier(ctx context.Context) error {
	err := s.log.Read(ctx, braid.ReadOptions{Timeout: s.timeout, Stages: passageOf(ctx).reads()})
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // the caller's, not the server's timeout
	}
	return err
}

// readable returns when this member may serve a read: at once if the client accepts the state here, after a barrier
// otherwise, and as the call's metadata asks.
func (s *Server) readable(ctx context.Context, serializable bool) error {
	if asks(ctx) {
		return s.readableAs(ctx, serializable)
	}
	if serializable {
		return nil
	}
	if err := s.readBarrier(ctx); err != nil {
		s.metrics.SlowReads.Add(1)
		return toStatus(err)
	}
	return nil
}
