package server

import (
	"context"
	"errors"
	"io"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// renewalsAtOnce bounds the leases of one stream that are being renewed. A client keeps all its
// leases alive on one stream, so none may wait for another one whose end is being decided.
const renewalsAtOnce = 256

// keepAlives is a stream of keep-alives with those that came and are not answered.
type keepAlives struct {
	l      *leaseService
	stream pb.Lease_LeaseKeepAliveServer
	cancel context.CancelCauseFunc
	tokens chan struct{} // holds a token for each lease that is being renewed
	busy   sync.WaitGroup

	sending sync.Mutex // one answer at a time
	mu      sync.Mutex
	// asked counts, for each lease that is being renewed, the requests that came since this
	// renewal began. The next renewal answers them.
	asked map[int64]int
	ended bool // no renewal begins any more
}

// LeaseKeepAlive implements pb.LeaseServer. The stream ends when its context does, even
// while a renewal waits for a primary.
func (l *leaseService) LeaseKeepAlive(stream pb.Lease_LeaseKeepAliveServer) error {
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	k := &keepAlives{l: l, stream: stream, cancel: cancel, tokens: make(chan struct{}, renewalsAtOnce),
		asked: map[int64]int{}}
	go k.receive(ctx)
	<-ctx.Done()
	k.end()
	if err := context.Cause(ctx); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// receive renews each lease that the client names.
func (k *keepAlives) receive(ctx context.Context) {
	for {
		req, err := k.stream.Recv()
		if errors.Is(err, io.EOF) {
			k.drain(ctx)
		}
		if err != nil {
			k.cancel(err)
			return
		}
		if k.joins(req.ID) {
			continue
		}
		select {
		case k.tokens <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if !k.begin(func() { k.renew(ctx, req.ID) }) {
			return
		}
	}
}

// begin runs a renewal, unless the stream has ended.
func (k *keepAlives) begin(renew func()) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ended {
		k.busy.Go(func() {
			defer func() { <-k.tokens }()
			renew()
		})
	}
	return !k.ended
}

// end returns when no renewal is in progress, and none will be.
func (k *keepAlives) end() {
	k.mu.Lock()
	k.ended = true
	k.mu.Unlock()
	k.busy.Wait()
}

// drain waits until everything is answered: the client sends nothing more, but still receives.
func (k *keepAlives) drain(ctx context.Context) {
	for range renewalsAtOnce {
		select {
		case k.tokens <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// joins reports whether a lease is being renewed already. Then it will be renewed again afterwards. If not, the caller
// renews it now.
func (k *keepAlives) joins(id int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, busy := k.asked[id]
	if busy {
		k.asked[id] = n + 1
		return true
	}
	k.asked[id] = 0
	return false
}

// next returns how many requests came for a lease during its last renewal. With none it is not
// being renewed any more.
func (k *keepAlives) next(id int64) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n = k.asked[id]; n == 0 {
		delete(k.asked, id)
		return 0
	}
	k.asked[id] = 0
	return n
}

// renew renews a lease and answers each request for that.
func (k *keepAlives) renew(ctx context.Context, id int64) {
	for n := 1; n > 0; n = k.next(id) {
		// The header is older than the renewal: a client must not see the renewal of a
		// lease at a revision at which it was already revoked.
		resp := &pb.LeaseKeepAliveResponse{Header: k.l.s.header(k.l.s.store.Revision()), ID: id}
		var err error
		if resp.TTL, err = k.l.renew(ctx, id); err == nil {
			err = k.answer(ctx, resp, n)
		}
		if err != nil {
			k.cancel(err)
			return
		}
	}
}

func (k *keepAlives) answer(ctx context.Context, resp *pb.LeaseKeepAliveResponse, n int) error {
	k.sending.Lock()
	defer k.sending.Unlock()
	for ; n > 0; n-- {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := sendWithin(ctx, sendTimeout, func() error { return k.stream.Send(resp) }); err != nil {
			return err
		}
	}
	return nil
}
