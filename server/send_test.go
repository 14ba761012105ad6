package server

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

func TestSendWithin(t *testing.T) {
	broken := errors.New("broken")
	require.NoError(t, sendWithin(t.Context(), time.Minute, func() error { return nil }))
	require.ErrorIs(t, sendWithin(t.Context(), time.Minute, func() error { return broken }), broken)
	never := make(chan struct{})
	defer close(never)
	stuck := func() error { <-never; return nil }
	require.ErrorIs(t, sendWithin(t.Context(), time.Millisecond, stuck), errNotTaken)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	require.ErrorIs(t, sendWithin(ctx, time.Minute, stuck), broken)
}

// TestUnreadKeepAlive: a client reads none of its answers, and one of its renewals fails. Its stream ends all the
// same.
func TestUnreadKeepAlive(t *testing.T) {
	stream := &deafStream{ctx: t.Context(), requests: make(chan *pb.LeaseKeepAliveRequest), taken: make(chan struct{})}
	defer close(stream.taken)
	f := start(t)
	eventually(t, "the primary", f.store.Leases().IsPrimary)
	granted, err := f.client.Grant(testContext(t), 60)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- f.lease.LeaseKeepAlive(stream) }()
	stream.requests <- keepAliveRequest(granted.ID)
	eventually(t, "an answer under way", func() bool { return stream.sending.Load() })
	close(stream.requests) // Recv fails
	select {
	case err := <-ended:
		require.ErrorIs(t, err, errGone)
	case <-time.After(time.Minute):
		require.Fail(t, "it waits for ever")
	}
}

var errGone = errors.New("gone")

// deafStream is a stream of keep-alives whose client reads nothing.
type deafStream struct {
	pb.Lease_LeaseKeepAliveServer
	ctx      context.Context
	requests chan *pb.LeaseKeepAliveRequest
	sending  atomic.Bool
	taken    chan struct{}
}

func (d *deafStream) Context() context.Context { return d.ctx }

func (d *deafStream) Recv() (*pb.LeaseKeepAliveRequest, error) {
	if r, ok := <-d.requests; ok {
		return r, nil
	}
	return nil, errGone
}

func (d *deafStream) Send(*pb.LeaseKeepAliveResponse) error {
	d.sending.Store(true)
	<-d.taken
	return nil
}
