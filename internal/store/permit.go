package store

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/etcdserver/apply"
	"go.etcd.io/etcd/server/v3/lease"
)

// AuthInfo returns the user whose token or certificate ctx carries: nil if there is none,
// or if users do not matter because auth is off.
func (s *Store) AuthInfo(ctx context.Context) (*auth.AuthInfo, error) {
	if err := s.awaitToken(ctx); err != nil {
		return nil, err
	}
	user, err := s.auth.AuthInfoFromCtx(ctx)
	if user != nil || err != nil || !s.opts.ClientCertAuth || !s.auth.IsAuthEnabled() || !hasTLS(ctx) {
		return user, err
	}
	return s.auth.AuthInfoFromTLS(ctx), nil
}

// hasTLS reports whether a call came over TLS; etcd's code takes that for granted.
func hasTLS(ctx context.Context) bool {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return false
	}
	_, ok = p.AuthInfo.(credentials.TLSInfo)
	return ok
}

// RequireAuth refuses a call without a user while auth is on.
func (s *Store) RequireAuth(ctx context.Context) error {
	if !s.auth.IsAuthEnabled() {
		return nil
	}
	user, err := s.AuthInfo(ctx)
	if err != nil {
		return err
	}
	return s.isUser(orNobody(user))
}

// isUser refuses nobody while auth is on.
func (s *Store) isUser(user *auth.AuthInfo) error {
	if user.Username == "" && s.auth.IsAuthEnabled() {
		return auth.ErrUserEmpty
	}
	return nil
}

// refusals are etcd's errors that say that somebody may not do something, as far as this state knows.
var refusals = []error{
	auth.ErrUserEmpty, auth.ErrUserNotFound, auth.ErrPermissionDenied, auth.ErrAuthOldRevision, auth.ErrInvalidAuthToken,
}

// IsRefusal reports whether an error says that a user lacks rights in this member's state. A newer state
// may give them.
func IsRefusal(err error) bool {
	return slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) })
}

// MayApply refuses a request that applying would refuse in the state of now, for the rights of the user whose
// token or certificate ctx carries. A read-only check: applying decides.
func (s *Store) MayApply(ctx context.Context, r *pb.InternalRaftRequest) error {
	if !s.auth.IsAuthEnabled() {
		return nil
	}
	return s.permit(ctx, func(user *auth.AuthInfo) error {
		if err := s.isUser(user); err != nil {
			return err
		}
		return s.mayApply(user, r)
	})
}

func (s *Store) mayApply(user *auth.AuthInfo, r *pb.InternalRaftRequest) error {
	keys := func(op *pb.RequestOp) error {
		return apply.CheckTxnAuth(s.auth, user, s.lessor, &pb.TxnRequest{Success: []*pb.RequestOp{op}})
	}
	switch {
	case r.Put != nil:
		return keys(&pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: r.Put}})
	case r.DeleteRange != nil:
		return keys(&pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: r.DeleteRange}})
	case r.Txn != nil:
		return apply.CheckTxnAuth(s.auth, user, s.lessor, r.Txn)
	case r.LeaseRevoke != nil:
		return s.leaseKeys(user, r.LeaseRevoke.ID, func(key []byte) error { return s.auth.IsPutPermitted(user, key) })
	case r.LeaseGrant != nil, r.Alarm != nil && r.Alarm.Action == pb.AlarmRequest_GET:
		return nil
	case r.AuthUserGet != nil && r.AuthUserGet.Name == user.Username:
		return nil
	case r.AuthRoleGet != nil && s.auth.HasRole(user.Username, r.AuthRoleGet.Role):
		return nil
	}
	return s.auth.IsAdminPermitted(user)
}

// RequireAdmin refuses a call of someone who is not root while auth is on.
func (s *Store) RequireAdmin(ctx context.Context) error {
	return s.permit(ctx, func(user *auth.AuthInfo) error { return s.auth.IsAdminPermitted(user) })
}

// CheckRange refuses a call of someone who must not read [key, end) while auth is on.
func (s *Store) CheckRange(ctx context.Context, key, end []byte) error {
	return s.permit(ctx, func(user *auth.AuthInfo) error { return s.auth.IsRangePermitted(user, key, end) })
}

// Reader is somebody who may read a range: for how long is asked again and again. It is not safe for
// concurrent use.
type Reader struct {
	s        *Store
	key, end []byte
	user     string // "": nobody
	// revision of the users and roles by which it is so; 0: authentication is off.
	revision uint64
}

// Reader is CheckRange of a call that goes on, for example of a watch.
func (s *Store) Reader(ctx context.Context, key, end []byte) (*Reader, error) {
	r := &Reader{s: s, key: key, end: end, revision: s.authRevision()}
	err := s.permit(ctx, func(user *auth.AuthInfo) error {
		r.user = user.Username
		return s.auth.IsRangePermitted(user, key, end)
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Still refuses a reader who may not read the range in the state of now. What is read after a change of users was
// applied needs the rights after it. It costs nothing while users and roles stay the same. The token with which the
// reader came does not matter any more.
func (r *Reader) Still() error {
	for {
		now := r.s.authRevision()
		if now == r.revision {
			return nil
		}
		err := error(nil)
		switch {
		case now == 0:
		case r.user == "":
			return auth.ErrUserEmpty
		default:
			err = r.s.auth.IsRangePermitted(&auth.AuthInfo{Username: r.user, Revision: now}, r.key, r.end)
		}
		if err == nil {
			r.revision = now
			return nil
		}
		if !errors.Is(err, auth.ErrAuthOldRevision) {
			return err
		}
	}
}

// authRevision is the revision of users and roles; 0 while authentication is off.
func (s *Store) authRevision() uint64 {
	if !s.auth.IsAuthEnabled() {
		return 0
	}
	return s.auth.Revision()
}

func (s *Store) permit(ctx context.Context, allowed func(*auth.AuthInfo) error) error {
	if err := s.usable(); err != nil {
		return err
	}
	user, err := s.AuthInfo(ctx)
	if err != nil {
		return err
	}
	return allowed(orNobody(user))
}

// orNobody replaces a missing user by an empty one, because etcd's checks want a user.
func orNobody(user *auth.AuthInfo) *auth.AuthInfo {
	if user == nil {
		return &auth.AuthInfo{}
	}
	return user
}

// permitted runs get for a user who passes the check. If users changed meanwhile, the answer is
// etcd's ErrAuthOldRevision, so that what get saw was allowed at one moment.
func (s *Store) permitted(ctx context.Context, allowed func(*auth.AuthInfo) error, get func() error) error {
	user, err := s.AuthInfo(ctx)
	if err != nil {
		return err
	}
	return s.permittedAs(user, allowed, get)
}

func (s *Store) permittedAs(user *auth.AuthInfo, allowed func(*auth.AuthInfo) error, get func() error) error {
	if err := s.usable(); err != nil {
		return err
	}
	user = orNobody(user)
	if err := allowed(user); err != nil {
		return err
	}
	if s.outdated(user) {
		return auth.ErrAuthOldRevision
	}
	swaps := s.swaps.Load()
	err := get()
	if unusable := s.usable(); unusable != nil {
		return unusable // damage may be in what was got
	}
	if err != nil {
		return err
	}
	return s.still(user, allowed, swaps)
}

// still refuses what a user got if the user may not have it now. swaps is Store.swaps of before. While Restore
// puts another state in place, keys and users are not of the same one: it waits until they are.
func (s *Store) still(user *auth.AuthInfo, allowed func(*auth.AuthInfo) error, swaps uint64) error {
	again := user.Revision == 0 && s.auth.IsAuthEnabled() // perhaps only since then
	now := s.swaps.Load()
	if now != swaps || now%2 == 1 {
		s.swap.RLock()
		again, now = true, s.swaps.Load()
		s.swap.RUnlock()
		if now-swaps&^1 > 2 { // what was got may be of a state whose users are gone, too
			return auth.ErrAuthOldRevision
		}
	}
	if err := s.usable(); err != nil {
		return err
	}
	if again {
		if err := allowed(user); err != nil {
			return err
		}
	}
	if s.outdated(user) {
		return auth.ErrAuthOldRevision
	}
	return nil
}

// outdated reports whether a user is known by other users and roles than there are.
func (s *Store) outdated(user *auth.AuthInfo) bool {
	return user.Revision != 0 && user.Revision != s.auth.Revision()
}

// leaseKeys reports whether a user may do something with every key of a lease; root may.
func (s *Store) leaseKeys(user *auth.AuthInfo, id int64, allowed func(key []byte) error) error {
	if err := s.isUser(user); err != nil {
		return err
	}
	if s.auth.IsAdminPermitted(user) == nil {
		return nil // or auth is off
	}
	l := s.lessor.Lookup(lease.LeaseID(id))
	if l == nil {
		return nil
	}
	for _, key := range l.Keys() {
		if err := allowed([]byte(key)); err != nil {
			return err
		}
	}
	return nil
}
