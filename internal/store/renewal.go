package store

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/lease"

	"github.com/braidlog/braid/internal/store/leaseclock"
)

// ErrUnconfirmed is the answer to a renewal whose confirmation took so long that nothing can be
// promised by it. Confirm again.
var ErrUnconfirmed = errors.New("store: the confirmation of a renewal is too old")

// Renewal is a keep-alive of a user who may renew the lease. The lease does not end before the renewal is resolved,
// unless its end was decided before the renewal came.
//
// Authorization comes before timing, twice. Renew asks for the rights in the state of the moment: without
// them nothing happens to the lease. Answer asks again, behind the caller's read barrier, because that state
// may have been an old one. What was refused there does not extend the lease either.
type Renewal struct {
	leases *Leases
	user   *auth.AuthInfo
	id     int64
	lease  *leaseclock.Lease // that is held; nil: none is
	// refused: the user does not have the rights. The clock learns that when the renewal ends.
	refused bool
}

// Renew begins the renewal of a lease for a user whom another member may know; nil: no user. Errors: etcd's if the
// user must not renew it, and then nothing happened to the lease. The caller confirms by a read barrier that this
// member is the primary lessor, calls Answer, and in any case calls End.
func (l *Leases) Renew(user *auth.AuthInfo, id int64) (*Renewal, error) {
	r := &Renewal{leases: l, user: user, id: id}
	err := l.rights.permittedAs(user, r.allowed, func() error {
		r.hold()
		return nil
	})
	if err != nil {
		r.refused = true // users changed meanwhile, or the state is damaged
		r.End()
		return nil, err
	}
	return r, nil
}

// allowed reports whether a user may renew the lease.
func (r *Renewal) allowed(user *auth.AuthInfo) error {
	return r.leases.rights.leaseKeys(user, r.id, func(key []byte) error {
		return r.leases.rights.auth.IsPutPermitted(user, key)
	})
}

// hold keeps the lease from ending.
func (r *Renewal) hold() {
	l := r.leases.lessor
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.lease == nil {
		r.lease = l.clock.Hold(r.id)
	}
}

// End ends the renewal, whatever its outcome. It may be called more than once.
func (r *Renewal) End() {
	l := r.leases.lessor
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.lease != nil {
		l.clock.Release(l.now(), r.lease, !r.refused)
		r.lease = nil
	}
}

// Answer returns for how many seconds the lease is promised to live, given that a read barrier that began
// at began was passed. Errors: etcd's if the user must not renew it; [ErrNotPrimary], ask the primary;
// [ErrUnconfirmed], confirm again; etcd's ErrLeaseNotFound.
//
// If the end of the lease was decided, it waits until the lease has ended or there is another primary. It also waits
// while a checkpoint must be cleared first.
func (r *Renewal) Answer(ctx context.Context, began time.Time) (ttl int64, err error) {
	for {
		var v leaseclock.Verdict
		var changed <-chan struct{}
		err := r.leases.rights.permittedAs(r.user, r.allowed, func() error {
			ttl, v, changed = r.try(began)
			return nil
		})
		if r.refused = IsRefusal(err); err != nil {
			return -1, err
		}
		switch v {
		case leaseclock.Done:
			return ttl, nil
		case leaseclock.Unknown:
			return -1, lease.ErrLeaseNotFound
		case leaseclock.Stale:
			return -1, ErrUnconfirmed
		case leaseclock.Elsewhere:
			return -1, ErrNotPrimary
		}
		select {
		case <-changed:
		case <-time.After(leaseclock.Tick):
		case <-ctx.Done():
			return -1, ctx.Err()
		case <-r.leases.latch.failed:
			return -1, r.leases.latch.get()
		case <-r.leases.stop:
			return -1, ErrClosed
		}
	}
}

// try decides about the renewal now, and has the commands ordered that this needs.
func (r *Renewal) try(began time.Time) (ttl int64, v leaseclock.Verdict, changed <-chan struct{}) {
	l := r.leases.lessor
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.lease == nil {
		r.lease = l.clock.Hold(r.id) // it was granted a moment ago
	}
	ttl, v = l.clock.Answer(l.now(), began, r.id)
	if v == leaseclock.Shortened {
		l.clock.Clear(l.now(), r.id)
		l.orderClears()
	}
	return ttl, v, l.changed
}
