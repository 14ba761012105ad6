package server

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
)

// authService implements pb.AuthServer. Every request but AuthStatus is ordered, also reads, because their answers
// must be as new as the last change. Permissions are checked before it is ordered and when it is applied. Passwords
// are hashed in between.
type authService struct {
	pb.UnsafeAuthServer
	s *Server
}

// loginAttempts bounds how often a login starts again because users or roles changed
// while it was ordered.
const loginAttempts = 16

// Authenticate implements pb.AuthServer. The password is checked here, so it is neither ordered
// nor stored. The token is made when the login is applied.
func (a *authService) Authenticate(ctx context.Context, r *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	if err := a.s.readable(ctx, false); err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		login, err := a.s.store.Rights().Login(ctx, r)
		if err != nil {
			return nil, toStatus(err)
		}
		result, err := a.s.order(ctx, &store.Encoded{Command: login.Command}, braid.ProposeOptions{})
		if err != nil {
			return nil, err
		}
		if result.Err != nil {
			return nil, toStatus(result.Err)
		}
		if resp, ok := result.Resp.(*pb.AuthenticateResponse); ok && a.s.store.Auth().Revision() == login.Revision {
			resp.Header = a.s.fill(resp.Header)
			return resp, nil
		}
		if attempt == loginAttempts {
			return nil, rpctypes.ErrGRPCAuthOldRevision
		}
	}
}

// AuthEnable implements pb.AuthServer. Where puts are answered before they are applied, it is acknowledged when all of
// them that are no longer permitted are refused or applied; see early.go. If that fails, authentication is on
// nevertheless.
func (a *authService) AuthEnable(ctx context.Context, r *pb.AuthEnableRequest) (*pb.AuthEnableResponse, error) {
	request := &pb.InternalRaftRequest{AuthEnable: r}
	if err := a.s.mayPropose(ctx, request); err != nil {
		return nil, err
	}
	e, err := a.s.store.Encode(ctx, request)
	if err != nil {
		return nil, toStatus(err)
	}
	result, err := a.s.order(ctx, &e, braid.ProposeOptions{})
	if err == nil {
		err = result.Err
	}
	if err == nil && a.s.log.MayAnswerEarly() {
		err = a.close(ctx, result.AuthRevision)
	}
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.AuthEnableResponse{Header: a.s.header(a.s.store.Revision())}, nil
}

// close completes AuthEnable, also if its client no longer waits.
func (a *authService) close(ctx context.Context, revision uint64) error {
	return a.s.detached(ctx, a.s.early.fresh.limit+2*a.s.timeout, func(ctx context.Context) error {
		return a.s.early.close(ctx, a.s.store.Applied(), revision)
	})
}

// AuthDisable implements pb.AuthServer.
func (a *authService) AuthDisable(ctx context.Context, r *pb.AuthDisableRequest) (*pb.AuthDisableResponse, error) {
	resp, err := propose[*pb.AuthDisableResponse](ctx, a.s, &pb.InternalRaftRequest{AuthDisable: r})
	if err != nil {
		return nil, err
	}
	resp.Header = a.s.fill(resp.Header)
	return resp, nil
}

// AuthStatus implements pb.AuthServer. Any client may call it, so it is a read and not ordered.
func (a *authService) AuthStatus(ctx context.Context, _ *pb.AuthStatusRequest) (*pb.AuthStatusResponse, error) {
	if err := a.s.readable(ctx, false); err != nil {
		return nil, err
	}
	users := a.s.store.Auth()
	return &pb.AuthStatusResponse{
		Header: a.s.header(a.s.store.Revision()), Enabled: users.IsAuthEnabled(), AuthRevision: users.Revision(),
	}, nil
}

// UserAdd implements pb.AuthServer.
func (a *authService) UserAdd(ctx context.Context, r *pb.AuthUserAddRequest) (*pb.AuthUserAddResponse, error) {
	if r.GetOptions().GetNoPassword() {
		r.Password, r.HashedPassword = "", "" // etcd takes no notice of them; the log should not have them
	}
	resp, err := propose[*pb.AuthUserAddResponse](ctx, a.s, &pb.InternalRaftRequest{AuthUserAdd: r})
	if err != nil {
		return nil, err
	}
	resp.Header = a.s.fill(resp.Header)
	return resp, nil
}

// UserGet implements pb.AuthServer.
func (a *authService) UserGet(ctx context.Context, r *pb.AuthUserGetRequest) (*pb.AuthUserGetResponse, error) {
	resp, err := propose[*pb.AuthUserGetResponse](ctx, a.s, &pb.InternalRaftRequest{AuthUserGet: r})
	if err != nil {
		return nil, err
	}
	resp.Header = a.s.fill(resp.Header)
	return resp, nil
}

// UserList implements pb.AuthServer.
func (a *authService) UserList(ctx context.Context, r *pb.AuthUserListRequest) (*pb.AuthUserListResponse, error) {
	resp, err := propose[*pb.AuthUserListResponse](ctx, a.s, &pb.InternalRaftRequest{AuthUserList: r})
	if err != nil {
		return nil, err
	}
	resp.Header = a.s.fill(resp.Header)
	return resp, nil
}

// UserDelete implements pb.AuthServer.
func (a *authService) UserDelete(ctx context.Context, r *pb.AuthUserDeleteRequest) (*pb.AuthUserDeleteResponse, error) {
	resp, err := propose[*pb.AuthUserDeleteResponse](ctx, a.s, &pb.InternalRaftRequest{AuthUserDelete: r})
	if err != nil {
		return nil, err
	}
	resp.Header = a.s.fill(resp.Header)
	return resp, nil
}

// UserChangePassword implements pb.AuthServer.
func (a *authService) UserChangePassword(ctx context.Context,
	r *pb.AuthUserChangePasswordRequest) (*pb.AuthUserChangePasswordResponse, error) {
	resp, err := propose[*pb.AuthUserChangePasswordResponse](ctx, a.s, &pb.InternalRaftRequest{AuthUserChangePassword: r})
	if err != nil {
		return nil, err
	}
	resp.Header = a.s.fill(resp.Header)
	return resp, nil
}

// UserGrantRole implements pb.AuthServer.
func (a *authService) UserGrantRole(ctx context.Context,
	r *pb.AuthUserGrantRoleRequest) (*pb.AuthUserGrantRoleResponse, error) {
	resp, err := propose[*pb.AuthUserGrantRoleResponse](ctx, a.s, &pb.InternalRaftRequest{AuthUserGrantRole: r})
	if err != nil {
		return nil, err
	}
	resp.Header = a.s.fill(resp.Header)
	return resp, nil
}

// UserRevokeRole implements pb.AuthServer.
func (a *authService) UserRevokeRole(ctx context.Context,
	r *pb.AuthUserRevokeRoleRequest) (*pb.AuthUserRevokeRoleResponse, error) {
	resp, err := propose[*pb.AuthUserRevokeRoleResponse](ctx, a.s, &pb.InternalRaftRequest{AuthUserRevokeRole: r})
	if err != nil {
		return nil, err
	}
	resp.Header = a.s.fill(resp.Header)
	return resp, nil
}

// RoleAdd implements pb.AuthServer.
func (a *authService) RoleAdd(ctx context.Context, r *pb.AuthRoleAddRequest) (*pb.AuthRoleAddResponse, error) {
	resp, err := propose[*pb.AuthRoleAddResponse](ctx, a.s, &pb.InternalRaftRequest{AuthRoleAdd: r})
	if err != nil {
		return nil, err
	}
	resp.Header = a.s.fill(resp.Header)
	return resp, nil
}

// RoleGet implements pb.AuthServer.
func (a *authService) RoleGet(ctx context.Context, r *pb.AuthRoleGetRequest) (*pb.AuthRoleGetResponse, error) {
	resp, err := propose[*pb.AuthRoleGetResponse](ctx, a.s, &pb.InternalRaftRequest{AuthRoleGet: r})
	if err != nil {
		return nil, err
	}
	resp.Header = a.s.fill(resp.Header)
	return resp, nil
}

// RoleList implements pb.AuthServer.
func (a *authService) RoleList(ctx context.Context, r *pb.AuthRoleListRequest) (*pb.AuthRoleListResponse, error) {
	resp, err := propose[*pb.AuthRoleListResponse](ctx, a.s, &pb.InternalRaftRequest{AuthRoleList: r})
	if err != nil {
		return nil, err
	}
	resp.Header = a.s.fill(resp.Header)
	return resp, nil
}

// RoleDelete implements pb.AuthServer.
func (a *authService) RoleDelete(ctx context.Context, r *pb.AuthRoleDeleteRequest) (*pb.AuthRoleDeleteResponse, error) {
	resp, err := propose[*pb.AuthRoleDeleteResponse](ctx, a.s, &pb.InternalRaftRequest{AuthRoleDelete: r})
	if err != nil {
		return nil, err
	}
	resp.Header = a.s.fill(resp.Header)
	return resp, nil
}

// RoleGrantPermission implements pb.AuthServer.
func (a *authService) RoleGrantPermission(ctx context.Context,
	r *pb.AuthRoleGrantPermissionRequest) (*pb.AuthRoleGrantPermissionResponse, error) {
	resp, err := propose[*pb.AuthRoleGrantPermissionResponse](ctx, a.s,
		&pb.InternalRaftRequest{AuthRoleGrantPermission: r})
	if err != nil {
		return nil, err
	}
	resp.Header = a.s.fill(resp.Header)
	return resp, nil
}

// RoleRevokePermission implements pb.AuthServer.
func (a *authService) RoleRevokePermission(ctx context.Context,
	r *pb.AuthRoleRevokePermissionRequest) (*pb.AuthRoleRevokePermissionResponse, error) {
	resp, err := propose[*pb.AuthRoleRevokePermissionResponse](ctx, a.s,
		&pb.InternalRaftRequest{AuthRoleRevokePermission: r})
	if err != nil {
		return nil, err
	}
	resp.Header = a.s.fill(resp.Header)
	return resp, nil
}
