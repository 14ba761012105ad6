package store

import (
	"encoding/binary"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// A put may be answered when it is certain to take effect, and before it does: package server decides when. Then no
// one would learn that it failed. So it is checked before it is proposed, and applying it checks neither alarms nor
// space.
//
// Permissions are another matter: what was not answered early when authentication was turned on must not take effect
// forever. So the auth revision in the command's header is that of the users and roles by which its member knew that
// authentication was off. After AuthEnable, package server waits until everything that was answered early is in the
// order, and then orders a command that closes: puts from the time before it are refused from there on, as those are
// that no user may make. Until then they take effect. docs/internals/lcr.md has the whole rule.

// NotAcceptedError explains why a put cannot be answered before it is applied. Nothing happened. A put whose answer
// waits until it is applied is possible, and later perhaps an accepted one.
type NotAcceptedError struct{ Detail string }

func (e *NotAcceptedError) Error() string {
	return "a put cannot be answered before it is applied: " + e.Detail
}

// IsBlind reports whether a put neither depends on the state nor on a lease, and answers nothing of it.
func IsBlind(r *pb.PutRequest) bool {
	return r.Lease == 0 && !r.PrevKv && !r.IgnoreValue && !r.IgnoreLease
}

// EncodeAccepted is Encode of a put whose command cannot fail when it is applied. If it might have to,
// the error is a [NotAcceptedError], or etcd's ErrNoSpace.
func (s *Store) EncodeAccepted(r *pb.PutRequest) (e Encoded, err error) {
	revision, off := s.rights.revisionIfOff()
	switch {
	case !IsBlind(r):
		return e, &NotAcceptedError{"it has a lease, or depends on the key"}
	case !off:
		return e, &NotAcceptedError{"authentication is on"}
	case len(s.Alarms()) > 0:
		return e, &NotAcceptedError{"an alarm is raised"}
	case s.quotas.concerns(r.Key, nil): // whether it is refused is decided when it is applied
		return e, &NotAcceptedError{"its key has a prefix with a quota"}
	}
	request := &pb.InternalRaftRequest{Put: r}
	if err := s.limits.check(request); err != nil {
		return e, err
	}
	// If authentication was turned on right now, the put is refused or takes effect by this revision.
	request.Header = &pb.RequestHeader{AuthRevision: revision}
	return s.encodeReady(request, nil, []byte{kindAccepted})
}

// AcceptsEarly reports whether puts of a key may be answered before they are applied, as far as users and quotas of
// prefixes are concerned.
func (s *Store) AcceptsEarly(key []byte) bool {
	return !s.rights.auth.IsAuthEnabled() && !s.quotas.concerns(key, nil)
}

// Closed reports whether accepted puts encoded at an auth revision or before are refused while authentication is on.
// Revisions of Encoded commands are in AuthRevision.
func (s *Store) Closed(revision uint64) bool {
	closed := s.closed.Load()
	return closed > 0 && revision <= closed
}

// CloseCommand returns the command after which accepted puts encoded at an auth revision or before are refused while
// authentication is on. Propose it when all that may have been answered is in the order.
func CloseCommand(revision uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{kindClose}, revision)
}

// closedKey holds the auth revision up to which accepted puts are refused, in the meta bucket.
var closedKey = []byte("braidAcceptedClosed")

func (s *Store) applyClose(revision uint64) {
	if revision <= s.closed.Load() {
		return
	}
	tx := s.db.be.BatchTx()
	tx.LockInsideApply()
	defer tx.Unlock()
	tx.UnsafePut(schema.Meta, closedKey, binary.BigEndian.AppendUint64(nil, revision))
	s.closed.Store(revision)
}

func readClosed(be backend.Backend) uint64 {
	tx := be.ReadTx()
	tx.RLock()
	defer tx.RUnlock()
	_, values := tx.UnsafeRange(schema.Meta, closedKey, nil, 1)
	if len(values) == 0 || len(values[0]) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(values[0])
}

// decodeAccepted reads the command that is to be applied without checks.
func decodeAccepted(data []byte) (c command, err error) {
	if len(data) == 0 || data[0] != kindRequest && data[0] != kindLarge {
		return c, fmt.Errorf("%w: an accepted put of %d bytes", ErrBadCommand, len(data))
	}
	if c, err = decode(data); err != nil {
		return c, err
	}
	if c.request.Put == nil || !IsBlind(c.request.Put) {
		return c, fmt.Errorf("%w: it is no put that can be accepted", ErrBadCommand)
	}
	c.accepted = true
	return c, nil
}

// applyAccepted applies a put that may have been answered already, unless it is closed.
func (s *Store) applyAccepted(r *pb.InternalRaftRequest) *Result {
	if s.rights.auth.IsAuthEnabled() && s.Closed(r.GetHeader().GetAuthRevision()) {
		return &Result{Err: auth.ErrUserEmpty}
	}
	result := s.putPlain(r.Put.Key, r.Put.Value, lease.NoLease)
	if !s.limits.quota.Available(r.Put) {
		s.limits.noSpaceFound() // the next ones are not accepted
	}
	return result
}
