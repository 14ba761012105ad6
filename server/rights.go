package server

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/braidlog/braid/internal/store"
)

// Rights are checked before anything else is done for a call: before more of its request is read than its first level,
// before anything is extended, proposed or allocated by its size. By which state they are checked depends on the call:
//
//	ordered        the state here. A refusal counts only after a barrier, because
//	               this member may lag behind a change of users. Applying checks again (mayPropose).
//	cluster        an administrator, by the state behind a barrier (needAdmin)
//	member alone   the same. Without a leader, by the state here, because a member that is left alone must be
//	               able to export its data (needAdminHere).
//	read           the state that is read (store.Range, store.Txn, …)

// mayPropose refuses a request whose user has no rights to it. Passing is not final: users may change until the
// request is applied, where the rights are checked again.
func (s *Server) mayPropose(ctx context.Context, r *pb.InternalRaftRequest) error {
	return s.unlessRefused(ctx, func() error { return s.store.Rights().MayApply(ctx, r) })
}

// needUser refuses a call without a user while auth is on.
func (s *Server) needUser(ctx context.Context) error {
	return s.unlessRefused(ctx, func() error { return s.store.Rights().RequireAuth(ctx) })
}

// unlessRefused runs a check of rights. If it refuses, the state here may be an old one, so it is run again behind a
// barrier. Without one the first refusal is final.
func (s *Server) unlessRefused(ctx context.Context, check func() error) error {
	err := check()
	if err != nil && store.IsRefusal(err) && s.readBarrier(ctx) == nil {
		err = check()
	}
	return toStatus(err)
}

// needAdmin refuses a call that is about the whole cluster, unless it is an administrator's. This
// member may lag behind a change of users, so the barrier comes first.
func (s *Server) needAdmin(ctx context.Context) error {
	if err := s.readable(ctx, false); err != nil {
		return err
	}
	return toStatus(s.store.Rights().RequireAdmin(ctx))
}

// needAdminHere is needAdmin for a call about this member alone. Such calls are served without a quorum, too: the last
// member's snapshot may be all that is left. If no leader is known after half of the time for a request, the rights
// are those in the state of this member.
func (s *Server) needAdminHere(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, s.timeout/2)
	defer cancel()
	if err := s.readBarrier(within); err != nil && (ctx.Err() != nil || s.self.Load().led) {
		return toStatus(err)
	}
	return toStatus(s.store.Rights().RequireAdmin(ctx))
}
