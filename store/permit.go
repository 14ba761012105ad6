package store

import (
	"context"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/lease"
)

// AuthInfo returns the user whose token or certificate ctx carries: nil if there is none,
// or if users do not matter because auth is off.
func (s *Store) AuthInfo(ctx context.Context) (*auth.AuthInfo, error) {
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
	if user == nil {
		return auth.ErrUserEmpty
	}
	return nil
}

// RequireAdmin refuses a call of someone who is not root while auth is on.
func (s *Store) RequireAdmin(ctx context.Context) error {
	return s.permit(ctx, func(user *auth.AuthInfo) error { return s.auth.IsAdminPermitted(user) })
}

// CheckRange refuses a call of someone who must not read [key, end) while auth is on.
func (s *Store) CheckRange(ctx context.Context, key, end []byte) error {
	return s.permit(ctx, func(user *auth.AuthInfo) error { return s.auth.IsRangePermitted(user, key, end) })
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
	err := get()
	if damaged := s.Damaged(); damaged != nil {
		return damaged // it may be in what was got
	}
	if err != nil {
		return err
	}
	if user.Revision != 0 && user.Revision != s.auth.Revision() {
		return auth.ErrAuthOldRevision
	}
	return nil
}

// leaseKeys reports whether a user may do something with every key of a lease; root may.
func (s *Store) leaseKeys(user *auth.AuthInfo, id int64, allowed func(key []byte) error) error {
	if !s.auth.IsAuthEnabled() {
		return nil
	}
	if user.Username == "" {
		return auth.ErrUserEmpty
	}
	if s.auth.IsAdminPermitted(user) == nil {
		return nil
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
