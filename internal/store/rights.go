package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/etcdserver/apply"
	"go.etcd.io/etcd/server/v3/lease"
)

// Rights are users and roles, and what they may do. It is safe for concurrent use.
type Rights struct {
	opts      *Options
	auth      auth.AuthStore
	lessor    *lessor
	damage    *Damage
	positions *positions
	passwords *passwords
	leaseIDs  leaseIDs
	// tokens counts the calls that wait for the position of a token.
	tokens atomic.Int32
	// swaps is odd while Restore puts another state in place, which holds swap then: keys come before users. A check
	// of a password holds swap shared.
	swaps atomic.Uint64
	swap  sync.RWMutex
	// changing is held while a change of users or roles is applied. Until it is complete, etcd's revision is the new
	// one, and tokens, users and permissions may be those before. A check then would count as one after the change.
	changing sync.RWMutex
}

// Rights returns what users may do.
func (s *Store) Rights() *Rights { return s.rights }

// AuthInfo returns the user whose token or certificate ctx carries: nil if there is none,
// or if users do not matter because auth is off.
func (r *Rights) AuthInfo(ctx context.Context) (*auth.AuthInfo, error) {
	if err := r.awaitToken(ctx); err != nil {
		return nil, err
	}
	r.changing.RLock()
	defer r.changing.RUnlock()
	user, err := r.auth.AuthInfoFromCtx(ctx)
	if user != nil || err != nil || !r.opts.ClientCertAuth || !r.auth.IsAuthEnabled() || !hasTLS(ctx) {
		return user, err
	}
	return r.auth.AuthInfoFromTLS(ctx), nil
}

// hasTLS reports whether a call came over TLS; etcd's code assumes it.
func hasTLS(ctx context.Context) bool {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return false
	}
	_, ok = p.AuthInfo.(credentials.TLSInfo)
	return ok
}

// RequireAuth refuses a call without a user while auth is on.
func (r *Rights) RequireAuth(ctx context.Context) error {
	if !r.auth.IsAuthEnabled() {
		return nil
	}
	user, err := r.AuthInfo(ctx)
	if err != nil {
		return err
	}
	return r.isUser(orEmpty(user))
}

// isUser refuses a call without a user while auth is on.
func (r *Rights) isUser(user *auth.AuthInfo) error {
	if user.Username == "" && r.auth.IsAuthEnabled() {
		return auth.ErrUserEmpty
	}
	return nil
}

// refusals are etcd's errors for users without rights, in this state.
var refusals = []error{
	auth.ErrUserEmpty, auth.ErrUserNotFound, auth.ErrPermissionDenied, auth.ErrAuthOldRevision, auth.ErrInvalidAuthToken,
}

// IsRefusal reports whether an error means that a user has no rights in this member's state. In a newer state the user
// may have them.
func IsRefusal(err error) bool {
	return slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) })
}

// MayApply refuses a request that applying would refuse in the present state, for the rights of the user whose token
// or certificate ctx carries. A read-only check: applying decides.
func (r *Rights) MayApply(ctx context.Context, request *pb.InternalRaftRequest) error {
	if !r.auth.IsAuthEnabled() {
		return nil
	}
	return r.permit(ctx, func(user *auth.AuthInfo) error {
		if err := r.isUser(user); err != nil {
			return err
		}
		return r.mayApply(user, request)
	})
}

func (r *Rights) mayApply(user *auth.AuthInfo, request *pb.InternalRaftRequest) error {
	keys := func(op *pb.RequestOp) error {
		return apply.CheckTxnAuth(r.auth, user, r.lessor, &pb.TxnRequest{Success: []*pb.RequestOp{op}})
	}
	switch {
	case request.Put != nil:
		return keys(&pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: request.Put}})
	case request.DeleteRange != nil:
		return keys(&pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: request.DeleteRange}})
	case request.Txn != nil:
		return apply.CheckTxnAuth(r.auth, user, r.lessor, request.Txn)
	case request.LeaseRevoke != nil:
		return r.leaseKeys(user, request.LeaseRevoke.ID, func(key []byte) error { return r.auth.IsPutPermitted(user, key) })
	case request.LeaseGrant != nil, request.Alarm != nil && request.Alarm.Action == pb.AlarmRequest_GET:
		return nil
	case request.AuthUserGet != nil && request.AuthUserGet.Name == user.Username:
		return nil
	case request.AuthRoleGet != nil && r.auth.HasRole(user.Username, request.AuthRoleGet.Role):
		return nil
	}
	return r.auth.IsAdminPermitted(user)
}

// RequireAdmin refuses a call of a user who is not root while auth is on.
func (r *Rights) RequireAdmin(ctx context.Context) error {
	return r.permit(ctx, func(user *auth.AuthInfo) error { return r.auth.IsAdminPermitted(user) })
}

// Reader is a user who may read a range, which is checked again and again. It is not safe for concurrent use.
type Reader struct {
	rights   *Rights
	key, end []byte
	user     string // "": none
	// revision of the users and roles of the last check; 0: authentication is off.
	revision uint64
}

// Reader refuses a call of a user who must not read [key, end) while auth is on. Otherwise it returns the reader, for a
// call that continues, for example a watch.
func (r *Rights) Reader(ctx context.Context, key, end []byte) (*Reader, error) {
	reader := &Reader{rights: r, key: key, end: end, revision: r.revision()}
	err := r.permit(ctx, func(user *auth.AuthInfo) error {
		reader.user = user.Username
		return r.auth.IsRangePermitted(user, key, end)
	})
	if err != nil {
		return nil, err
	}
	return reader, nil
}

// Still refuses a reader who may not read the range in the present state. What is read after a change of users was
// applied needs the rights after it, so it waits while Restore has replaced keys but not users. It costs nothing while
// users and roles stay the same. The token with which the reader came does not matter any more.
func (r *Reader) Still() error {
	r.rights.awaitSwap()
	for {
		now := r.rights.revision()
		if now == r.revision {
			return nil
		}
		err := error(nil)
		switch {
		case now == 0:
		case r.user == "":
			return auth.ErrUserEmpty
		default:
			err = r.rights.judge(&auth.AuthInfo{Username: r.user, Revision: now}, func(user *auth.AuthInfo) error {
				return r.rights.auth.IsRangePermitted(user, r.key, r.end)
			})
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

// revision is the revision of users and roles; 0 while authentication is off.
func (r *Rights) revision() uint64 {
	if !r.auth.IsAuthEnabled() {
		return 0
	}
	return r.auth.Revision()
}

// revisionIfOff returns the revision of users and roles by which authentication is off; off is false if it is on.
func (r *Rights) revisionIfOff() (revision uint64, off bool) {
	r.changing.RLock()
	defer r.changing.RUnlock()
	return r.auth.Revision(), !r.auth.IsAuthEnabled()
}

func (r *Rights) permit(ctx context.Context, allowed func(*auth.AuthInfo) error) error {
	if err := r.damage.usable(); err != nil {
		return err
	}
	user, err := r.AuthInfo(ctx)
	if err != nil {
		return err
	}
	return r.judge(orEmpty(user), allowed)
}

// judge runs a check of a user's rights while users and roles do not change.
func (r *Rights) judge(user *auth.AuthInfo, allowed func(*auth.AuthInfo) error) error {
	r.changing.RLock()
	defer r.changing.RUnlock()
	return allowed(user)
}

// change applies a change of users or roles.
func (r *Rights) change(apply func()) {
	r.changing.Lock()
	defer r.changing.Unlock()
	apply()
}

// replace replaces users and roles by those of another database. If they changed, no token is valid any more: which of
// them the changes made invalid is not in the database.
func (r *Rights) replace(by auth.AuthBackend) {
	tx := by.ReadTx()
	tx.RLock()
	revision := tx.UnsafeReadAuthRevision()
	tx.RUnlock()
	r.change(func() {
		if revision != r.auth.Revision() {
			_ = r.auth.Close() // it only forgets tokens, and cannot fail
		}
		r.auth.Recover(by)
	})
}

// changesUsers reports whether a request changes users or roles, or turns authentication on or off.
func changesUsers(r *pb.InternalRaftRequest) bool {
	return r.AuthEnable != nil || r.AuthDisable != nil ||
		r.AuthUserAdd != nil || r.AuthUserDelete != nil || r.AuthUserChangePassword != nil ||
		r.AuthUserGrantRole != nil || r.AuthUserRevokeRole != nil ||
		r.AuthRoleAdd != nil || r.AuthRoleDelete != nil ||
		r.AuthRoleGrantPermission != nil || r.AuthRoleRevokePermission != nil
}

// orEmpty replaces a missing user by an empty one, because etcd's checks need a user.
func orEmpty(user *auth.AuthInfo) *auth.AuthInfo {
	if user == nil {
		return &auth.AuthInfo{}
	}
	return user
}

// permitted runs get for a user who passes the check. If users changed meanwhile, the error is etcd's
// ErrAuthOldRevision, so that everything that get read was permitted at one moment.
func (r *Rights) permitted(ctx context.Context, allowed func(*auth.AuthInfo) error, get func() error) error {
	user, err := r.AuthInfo(ctx)
	if err != nil {
		return err
	}
	return r.permittedAs(user, allowed, get)
}

func (r *Rights) permittedAs(user *auth.AuthInfo, allowed func(*auth.AuthInfo) error, get func() error) error {
	if err := r.damage.usable(); err != nil {
		return err
	}
	user = orEmpty(user)
	if err := r.judge(user, allowed); err != nil {
		return err
	}
	if r.outdated(user) {
		return auth.ErrAuthOldRevision
	}
	swaps := r.swaps.Load()
	err := get()
	if unusable := r.damage.usable(); unusable != nil {
		return unusable // the result may come from damaged data
	}
	if err != nil {
		return err
	}
	return r.still(user, allowed, swaps)
}

// still returns an error if a user may no longer read what was read for it. swaps is Store.swaps of before. While
// Restore puts another state in place, keys and users are not of the same one: it waits until they are.
func (r *Rights) still(user *auth.AuthInfo, allowed func(*auth.AuthInfo) error, swaps uint64) error {
	again := user.Revision == 0 && r.auth.IsAuthEnabled() // perhaps only since then
	if now := r.awaitSwap(); now != swaps {
		again = true
		if now-swaps&^1 > 2 { // the result may be of a state whose users are gone, too
			return auth.ErrAuthOldRevision
		}
	}
	if err := r.damage.usable(); err != nil {
		return err
	}
	if again {
		if err := r.judge(user, allowed); err != nil {
			return err
		}
	}
	if r.outdated(user) {
		return auth.ErrAuthOldRevision
	}
	return nil
}

// awaitSwap returns swaps when Restore is not putting another state in place.
func (r *Rights) awaitSwap() uint64 {
	now := r.swaps.Load()
	if now%2 == 1 {
		r.swap.RLock()
		defer r.swap.RUnlock()
		now = r.swaps.Load()
	}
	return now
}

// outdated reports whether users and roles changed since a user was authenticated.
func (r *Rights) outdated(user *auth.AuthInfo) bool {
	return user.Revision != 0 && user.Revision != r.auth.Revision()
}

// leaseKeys reports whether a user may do something with every key of a lease; root may.
func (r *Rights) leaseKeys(user *auth.AuthInfo, id int64, allowed func(key []byte) error) error {
	if err := r.isUser(user); err != nil {
		return err
	}
	if r.auth.IsAdminPermitted(user) == nil {
		return nil // or auth is off
	}
	l := r.lessor.Lookup(lease.LeaseID(id))
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

// rootHeader is the header of the store's own requests, with the permissions of root.
func (r *Rights) rootHeader() *pb.RequestHeader {
	if !r.auth.IsAuthEnabled() {
		return nil
	}
	return &pb.RequestHeader{Username: "root", AuthRevision: r.auth.Revision()}
}
