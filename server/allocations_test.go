package server

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/braidlog/braid/internal/testsize"
)

// Bounds of allocations hold what a request costs here, between gRPC and the log: exact, so that the next one is seen.

func TestAllocationsOfAPut(t *testing.T) {
	s, ctx := startCounted(t)
	require.LessOrEqual(t, testsize.Allocations(t, 200, func() { putNext(t, ctx, s) }), 39.0)
}

func TestAllocationsOfALinearizableGet(t *testing.T) {
	s, ctx := startCounted(t)
	putNext(t, ctx, s)
	r := &pb.RangeRequest{Key: []byte("key")}
	require.LessOrEqual(t, testsize.Allocations(t, 200, func() {
		if resp, err := s.services.kv.Range(ctx, r); err != nil || len(resp.Kvs) != 1 {
			t.Fatal(resp, err)
		}
	}), 29.0)
}

// startCounted starts a server over a fake log, whose own allocations are few and always the same.
func startCounted(t *testing.T) (*Server, context.Context) {
	t.Setenv("ETCD_VERIFY", "")
	testsize.Counts(t)
	return start(t).Server, testContext(t)
}

func putNext(t *testing.T, ctx context.Context, s *Server) {
	r := &pb.PutRequest{Key: []byte("key"), Value: []byte("0123456789abcdef")}
	if _, err := s.services.kv.Put(ctx, r); err != nil {
		t.Fatal(err)
	}
}

// watcher is the server's side of a watch stream, without gRPC.
type watcher struct {
	grpc.ServerStream
	ctx  context.Context
	asks chan *pb.WatchRequest
	sent chan *pb.WatchResponse
}

func (w *watcher) Context() context.Context { return w.ctx }

func (w *watcher) Send(r *pb.WatchResponse) error {
	w.sent <- r
	return nil
}

func (w *watcher) Recv() (*pb.WatchRequest, error) {
	select {
	case r := <-w.asks:
		return r, nil
	case <-w.ctx.Done():
		return nil, w.ctx.Err()
	}
}

// An event's delivery is counted with the put that makes it.
func TestAllocationsOfAnEvent(t *testing.T) {
	s, ctx := startCounted(t)
	w := &watcher{ctx: ctx, asks: make(chan *pb.WatchRequest, 1), sent: make(chan *pb.WatchResponse, 1)}
	go func() { _ = s.services.watch.Watch(w) }()
	create := &pb.WatchCreateRequest{Key: []byte("key")}
	w.asks <- &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}
	require.True(t, (<-w.sent).Created)
	require.LessOrEqual(t, testsize.Allocations(t, 200, func() {
		putNext(t, ctx, s)
		if r := <-w.sent; len(r.Events) != 1 {
			t.Fatal(r)
		}
	}), 53.0)
}
