package store

import (
	"cmp"
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/lease"
)

// TimeToLive returns how much time a lease has, and its keys if asked, for a user whom another member may know. Only
// the primary lessor can: elsewhere the error is [ErrNotPrimary], and the primary is to be asked.
func (l *Leases) TimeToLive(user *auth.AuthInfo,
	r *pb.LeaseTimeToLiveRequest) (resp *pb.LeaseTimeToLiveResponse, err error) {
	allowed := func(user *auth.AuthInfo) error {
		if !r.Keys {
			return l.rights.isUser(user)
		}
		return l.rights.leaseKeys(user, r.ID, func(key []byte) error {
			return l.rights.auth.IsRangePermitted(user, key, nil)
		})
	}
	err = l.rights.permittedAs(user, allowed, func() error {
		resp, err = l.timeToLive(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

func (l *Leases) timeToLive(r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	left, err := l.lessor.left(r.ID)
	if err != nil {
		return nil, err
	}
	known := l.lessor.Lookup(lease.LeaseID(r.ID))
	if known == nil {
		return nil, lease.ErrLeaseNotFound
	}
	resp := &pb.LeaseTimeToLiveResponse{
		Header:     &pb.ResponseHeader{Revision: l.keys.Rev()},
		ID:         r.ID,
		TTL:        int64(max(left, 0).Seconds()),
		GrantedTTL: known.TTL(),
	}
	if r.Keys {
		for _, key := range known.Keys() {
			resp.Keys = append(resp.Keys, []byte(key))
		}
	}
	return resp, nil
}

// List lists the leases. Read linearizably before.
func (l *Leases) List(ctx context.Context) (*pb.LeaseLeasesResponse, error) {
	leases := l.lessor.Leases()
	slices.SortFunc(leases, func(a, b *lease.Lease) int { return cmp.Compare(a.ID, b.ID) })
	allowed := func(user *auth.AuthInfo) error {
		if err := l.rights.isUser(user); err != nil {
			return err
		}
		for _, one := range leases {
			err := l.rights.leaseKeys(user, int64(one.ID), func(key []byte) error {
				return l.rights.auth.IsRangePermitted(user, key, nil)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	resp := &pb.LeaseLeasesResponse{Header: &pb.ResponseHeader{Revision: l.keys.Rev()}}
	err := l.rights.permitted(ctx, allowed, func() error {
		for _, one := range leases {
			resp.Leases = append(resp.Leases, &pb.LeaseStatus{ID: int64(one.ID)})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}
