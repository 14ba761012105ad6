package store

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/txn"
)

// A put may be answered when it is certain to take effect, and before it does: package server says
// when. Nobody hears then that it failed. So it is checked before it is proposed, and whatever
// happens until it is applied, applying it asks neither for permissions nor for alarms nor for space.

// NotAcceptedError says why a put cannot be answered before it is applied. Nothing happened. It can be
// put if the answer waits until it is applied, and later perhaps without that.
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
func (s *Store) EncodeAccepted(ctx context.Context, r *pb.PutRequest) (e Encoded, err error) {
	switch {
	case !IsBlind(r):
		return e, &NotAcceptedError{"it has a lease, or depends on the key"}
	case s.auth.IsAuthEnabled():
		return e, &NotAcceptedError{"authentication is on"}
	case len(s.Alarms()) > 0:
		return e, &NotAcceptedError{"an alarm is raised"}
	}
	request := &pb.InternalRaftRequest{Put: r}
	if err := s.CheckQuota(request); err != nil {
		return e, err
	}
	return s.encodeAs(ctx, request, nil, []byte{kindAccepted})
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

// applyAccepted applies a put that somebody may have been told is certain.
func (s *Store) applyAccepted(r *pb.InternalRaftRequest) *Result {
	resp, trace, err := txn.Put(context.Background(), s.lg, s.lessor, s.kv, r.Put)
	if !s.quota.Available(r.Put) && len(s.alarmStore().get(pb.AlarmType_NOSPACE)) == 0 {
		s.wantNoSpaceAlarm() // the next ones are not accepted
	}
	return &Result{Resp: resp, Err: err, replaced: s.replaced, Trace: trace}
}
