package server

import (
	"context"
	"errors"
	"io"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/lease"

	"github.com/braidlog/braid"
)

// leaseService implements pb.LeaseServer. Grants and revocations are ordered. How long a
// lease still lives is known to one lessor only, the primary one, which is chosen through
// the log: renewals and questions go there over the link between members.
type leaseService struct {
	pb.UnsafeLeaseServer
	s *Server
}

// LeaseGrant implements pb.LeaseServer.
func (l *leaseService) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	if err := l.s.store.RequireAuth(ctx); err != nil {
		return nil, toStatus(err)
	}
	resp, err := proposeSpace[*pb.LeaseGrantResponse](ctx, l.s, &pb.InternalRaftRequest{LeaseGrant: r})
	if err != nil {
		return nil, err
	}
	resp.Header = l.s.fill(resp.Header)
	return resp, nil
}

// LeaseRevoke implements pb.LeaseServer.
func (l *leaseService) LeaseRevoke(ctx context.Context, r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	if err := l.s.store.RequireAuth(ctx); err != nil {
		return nil, toStatus(err)
	}
	resp, err := propose[*pb.LeaseRevokeResponse](ctx, l.s, &pb.InternalRaftRequest{LeaseRevoke: r})
	if err != nil {
		return nil, err
	}
	resp.Header = l.s.fill(resp.Header)
	return resp, nil
}

// LeaseKeepAlive implements pb.LeaseServer. The stream ends when its context does, even
// while a renewal waits for a primary.
func (l *leaseService) LeaseKeepAlive(stream pb.Lease_LeaseKeepAliveServer) error {
	ctx := stream.Context()
	ended := make(chan error, 1)
	go func() { ended <- l.keepAlive(ctx, stream) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *leaseService) keepAlive(ctx context.Context, stream pb.Lease_LeaseKeepAliveServer) error {
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		// The header is older than the renewal: a client must not see the renewal of a
		// lease at a revision at which it was already revoked.
		resp := &pb.LeaseKeepAliveResponse{Header: l.s.header(l.s.store.Revision()), ID: req.ID}
		resp.TTL, err = l.renew(ctx, req.ID)
		if err != nil {
			return err
		}
		if err := stream.Send(resp); err != nil {
			return err
		}
	}
}

// renew returns the time to live in seconds, 0 if there is no such lease.
func (l *leaseService) renew(ctx context.Context, id int64) (int64, error) {
	reply, err := ask(ctx, l.s, l.s.primary, askRenew, &pb.LeaseKeepAliveRequest{ID: id}, new(pb.LeaseKeepAliveResponse))
	if isLeaseNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return reply.TTL, nil
}

// renewHere renews on the primary. The barrier makes sure that it still is, and that a
// lease granted a moment ago is known here.
func (l *leaseService) renewHere(ctx context.Context, user *auth.AuthInfo, r *pb.LeaseKeepAliveRequest) (*pb.LeaseKeepAliveResponse, error) {
	if err := l.s.barrier.wait(ctx); err != nil {
		return nil, err
	}
	known := l.s.store.Lessor().Lookup(lease.LeaseID(r.ID))
	if known == nil || known.Remaining() > 0 {
		ttl, err := l.s.store.LeaseRenewAs(user, r.ID)
		return &pb.LeaseKeepAliveResponse{ID: r.ID, TTL: ttl}, err
	}
	// It has expired: the lessor waits until its end is decided.
	type renewal struct {
		ttl int64
		err error
	}
	decided := make(chan renewal, 1)
	go func() {
		ttl, err := l.s.store.LeaseRenewAs(user, r.ID)
		decided <- renewal{ttl, err}
	}()
	select {
	case got := <-decided:
		return &pb.LeaseKeepAliveResponse{ID: r.ID, TTL: got.ttl}, got.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.s.stopping:
		return nil, braid.ErrStopped
	}
}

// LeaseTimeToLive implements pb.LeaseServer. A lease that does not exist has TTL −1.
func (l *leaseService) LeaseTimeToLive(ctx context.Context, r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	if err := l.s.store.RequireAuth(ctx); err != nil {
		return nil, toStatus(err)
	}
	resp, err := ask(ctx, l.s, l.s.primary, askTimeToLive, r, new(pb.LeaseTimeToLiveResponse))
	if isLeaseNotFound(err) {
		resp, err = &pb.LeaseTimeToLiveResponse{ID: r.ID, TTL: -1}, nil
	}
	if err != nil {
		return nil, err
	}
	resp.Header = l.s.header(l.s.store.Revision())
	return resp, nil
}

func (l *leaseService) timeToLiveHere(ctx context.Context, user *auth.AuthInfo, r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	if err := l.s.barrier.wait(ctx); err != nil {
		return nil, err
	}
	return l.s.store.LeaseTimeToLiveAs(user, r)
}

// LeaseLeases implements pb.LeaseServer. etcd lists what the member that was asked happens to
// know; here the list is as linearizable as any read.
func (l *leaseService) LeaseLeases(ctx context.Context, _ *pb.LeaseLeasesRequest) (*pb.LeaseLeasesResponse, error) {
	if err := l.s.readable(ctx, false); err != nil {
		return nil, err
	}
	resp, err := l.s.store.LeaseLeases(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	resp.Header = l.s.fill(resp.Header)
	return resp, nil
}

// isLeaseNotFound knows the error from here and from another member.
func isLeaseNotFound(err error) bool {
	return errors.Is(err, lease.ErrLeaseNotFound) || errors.Is(err, rpctypes.ErrGRPCLeaseNotFound)
}
