package store

import (
	"cmp"
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/lease"
)

// LeaseRenew starts a lease anew and returns its time to live in seconds. Only the primary lessor
// can: elsewhere the error is [ErrNotPrimary], and the primary is to be asked. etcd's
// ErrLeaseNotFound: there is no such lease in the state of this moment. It is not confirmed that
// this member still is the primary. A caller that confirms it uses [Store.Renew].
func (s *Store) LeaseRenew(ctx context.Context, id int64) (ttl int64, err error) {
	user, err := s.AuthInfo(ctx)
	if err != nil {
		return -1, err
	}
	renewal, err := s.Renew(user, id)
	if err != nil {
		return -1, err
	}
	defer renewal.Settle()
	return renewal.Answer(ctx, s.lessor.now())
}

// LeaseTimeToLive tells what is left of a lease, and its keys if asked. Only the primary
// lessor knows: elsewhere the error is [ErrNotPrimary].
func (s *Store) LeaseTimeToLive(ctx context.Context, r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	user, err := s.AuthInfo(ctx)
	if err != nil {
		return nil, err
	}
	return s.LeaseTimeToLiveAs(user, r)
}

// LeaseTimeToLiveAs is LeaseTimeToLive for a user whom another member knows.
func (s *Store) LeaseTimeToLiveAs(user *auth.AuthInfo, r *pb.LeaseTimeToLiveRequest) (resp *pb.LeaseTimeToLiveResponse, err error) {
	allowed := func(user *auth.AuthInfo) error {
		if !r.Keys {
			return s.isUser(user)
		}
		return s.leaseKeys(user, r.ID, func(key []byte) error { return s.auth.IsRangePermitted(user, key, nil) })
	}
	err = s.permittedAs(user, allowed, func() error {
		resp, err = s.timeToLive(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

func (s *Store) timeToLive(r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	left, err := s.lessor.left(r.ID)
	if err != nil {
		return nil, err
	}
	l := s.lessor.Lookup(lease.LeaseID(r.ID))
	if l == nil {
		return nil, lease.ErrLeaseNotFound
	}
	resp := &pb.LeaseTimeToLiveResponse{
		Header:     &pb.ResponseHeader{Revision: s.kv.Rev()},
		ID:         r.ID,
		TTL:        int64(max(left, 0).Seconds()),
		GrantedTTL: l.TTL(),
	}
	if r.Keys {
		for _, key := range l.Keys() {
			resp.Keys = append(resp.Keys, []byte(key))
		}
	}
	return resp, nil
}

// LeaseLeases lists the leases. Read linearizably before.
func (s *Store) LeaseLeases(ctx context.Context) (*pb.LeaseLeasesResponse, error) {
	leases := s.lessor.Leases()
	slices.SortFunc(leases, func(a, b *lease.Lease) int { return cmp.Compare(a.ID, b.ID) })
	allowed := func(user *auth.AuthInfo) error {
		if err := s.isUser(user); err != nil {
			return err
		}
		for _, l := range leases {
			err := s.leaseKeys(user, int64(l.ID), func(key []byte) error { return s.auth.IsRangePermitted(user, key, nil) })
			if err != nil {
				return err
			}
		}
		return nil
	}
	resp := &pb.LeaseLeasesResponse{Header: &pb.ResponseHeader{Revision: s.kv.Rev()}}
	err := s.permitted(ctx, allowed, func() error {
		for _, l := range leases {
			resp.Leases = append(resp.Leases, &pb.LeaseStatus{ID: int64(l.ID)})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}
