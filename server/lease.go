package server

import (
	"context"
	"errors"
	"math"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/lease"

	"github.com/braidlog/braid/internal/store"
)

// leaseService implements pb.LeaseServer. Grants and revocations are ordered. Only the primary lessor, which is chosen
// through the log, has the time of each lease. Renewals and questions go there over the link between members.
type leaseService struct {
	pb.UnsafeLeaseServer
	s *Server
}

// LeaseGrant implements pb.LeaseServer.
func (l *leaseService) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	r.TTL = max(r.TTL, shortestLease(l.s.electionTimeout()))
	resp, err := proposeSpace[*pb.LeaseGrantResponse](ctx, l.s, &pb.InternalRaftRequest{LeaseGrant: r})
	if err != nil {
		return nil, err
	}
	resp.Header = l.s.fill(resp.Header)
	return resp, nil
}

// shortestLease is that of etcd, in seconds: a lease outlives an election.
func shortestLease(election time.Duration) int64 { return int64(math.Ceil(1.5 * election.Seconds())) }

// LeaseRevoke implements pb.LeaseServer.
func (l *leaseService) LeaseRevoke(ctx context.Context, r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	resp, err := propose[*pb.LeaseRevokeResponse](ctx, l.s, &pb.InternalRaftRequest{LeaseRevoke: r})
	if err != nil {
		return nil, err
	}
	resp.Header = l.s.fill(resp.Header)
	return resp, nil
}

// renew returns the time to live in seconds, 0 if there is no such lease.
func (l *leaseService) renew(ctx context.Context, id int64) (int64, error) {
	if err := l.s.needUser(ctx); err != nil {
		return 0, err
	}
	reply, err := ask(ctx, l.s, l.s.primary, askRenew, &pb.LeaseKeepAliveRequest{ID: id}, new(pb.LeaseKeepAliveResponse))
	if isLeaseNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return reply.TTL, nil
}

// renewHere renews on the primary. The renewal counts from when it came, however long the answer takes, if the user
// may renew the lease: nothing happens before that is known. The barrier makes sure that this member still is the
// primary, and that a lease granted a moment ago is known here.
func (l *leaseService) renewHere(ctx context.Context, user *auth.AuthInfo,
	r *pb.LeaseKeepAliveRequest) (*pb.LeaseKeepAliveResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, l.s.timeout)
	defer cancel()
	var renewal *store.Renewal
	err := l.s.unlessRefused(ctx, func() (err error) {
		renewal, err = l.s.store.Leases().Renew(user, r.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer renewal.End()
	for {
		began := time.Now()
		if err := l.s.readBarrier(ctx); err != nil {
			return nil, err
		}
		ttl, err := renewal.Answer(ctx, began)
		if !errors.Is(err, store.ErrUnconfirmed) {
			if err == nil {
				l.s.metrics.Renewed.Add(1)
			}
			return &pb.LeaseKeepAliveResponse{ID: r.ID, TTL: ttl}, err
		}
	}
}

// LeaseTimeToLive implements pb.LeaseServer. A lease that does not exist has TTL −1.
func (l *leaseService) LeaseTimeToLive(ctx context.Context,
	r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	if err := l.s.needUser(ctx); err != nil {
		return nil, err
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

func (l *leaseService) timeToLiveHere(ctx context.Context, user *auth.AuthInfo,
	r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	if err := l.s.readBarrier(ctx); err != nil {
		return nil, err
	}
	return l.s.store.Leases().TimeToLive(user, r)
}

// LeaseLeases implements pb.LeaseServer. etcd lists the leases in the state of the member that was asked; here the
// list is as linearizable as any read.
func (l *leaseService) LeaseLeases(ctx context.Context, _ *pb.LeaseLeasesRequest) (*pb.LeaseLeasesResponse, error) {
	if err := l.s.readable(ctx, false); err != nil {
		return nil, err
	}
	resp, err := l.s.store.Leases().List(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	resp.Header = l.s.fill(resp.Header)
	return resp, nil
}

// isLeaseNotFound recognises the error from this member and from another one.
func isLeaseNotFound(err error) bool {
	return errors.Is(err, lease.ErrLeaseNotFound) || errors.Is(err, rpctypes.ErrGRPCLeaseNotFound)
}
