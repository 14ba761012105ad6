package same

import (
	"fmt"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

const (
	root     = "root"
	password = "p"
)

// stranger stands for a user in requests with a token that is not valid.
const stranger = "a token that nobody has"

func (g *generator) user() string {
	if g.yes(0.03) {
		return oneOf(g, "", root, "nobody")
	}
	return fmt.Sprintf("u%d", g.IntN(4))
}

func (g *generator) role() string {
	if g.yes(0.03) {
		return oneOf(g, "", root, "none")
	}
	return fmt.Sprintf("r%d", g.IntN(3))
}

func (g *generator) pass() string { return oneOf(g, password, password, password, "other", "") }

// account draws a request of the service of users and roles. It leaves root alone, so that it can turn authentication
// off in the end.
func (g *generator) account() *request {
	user, role := g.user(), g.role()
	if user == root && !g.yes(0.2) {
		user = "u0"
	}
	switch g.IntN(14) {
	case 0:
		return unary[pb.AuthUserAddResponse](pb.Auth_UserAdd_FullMethodName, &pb.AuthUserAddRequest{Name: user,
			Password: g.pass(), Options: &authpb.UserAddOptions{NoPassword: g.yes(0.2)}})
	case 1:
		return unary[pb.AuthUserGetResponse](pb.Auth_UserGet_FullMethodName, &pb.AuthUserGetRequest{Name: user})
	case 2:
		return unary[pb.AuthUserListResponse](pb.Auth_UserList_FullMethodName, &pb.AuthUserListRequest{})
	case 3:
		if user == root {
			user = "u1"
		}
		return unary[pb.AuthUserDeleteResponse](pb.Auth_UserDelete_FullMethodName, &pb.AuthUserDeleteRequest{Name: user})
	case 4:
		if user == root {
			user = "u2"
		}
		return unary[pb.AuthUserChangePasswordResponse](pb.Auth_UserChangePassword_FullMethodName,
			&pb.AuthUserChangePasswordRequest{Name: user, Password: g.pass()})
	case 5, 6:
		return unary[pb.AuthUserGrantRoleResponse](pb.Auth_UserGrantRole_FullMethodName,
			&pb.AuthUserGrantRoleRequest{User: user, Role: role})
	case 7:
		if user == root {
			user = "u3"
		}
		return unary[pb.AuthUserRevokeRoleResponse](pb.Auth_UserRevokeRole_FullMethodName,
			&pb.AuthUserRevokeRoleRequest{Name: user, Role: role})
	case 8:
		return unary[pb.AuthRoleAddResponse](pb.Auth_RoleAdd_FullMethodName, &pb.AuthRoleAddRequest{Name: role})
	case 9:
		return unary[pb.AuthRoleGetResponse](pb.Auth_RoleGet_FullMethodName, &pb.AuthRoleGetRequest{Role: role})
	case 10:
		return unary[pb.AuthRoleListResponse](pb.Auth_RoleList_FullMethodName, &pb.AuthRoleListRequest{})
	case 11:
		if role == root {
			role = "r0"
		}
		return unary[pb.AuthRoleDeleteResponse](pb.Auth_RoleDelete_FullMethodName, &pb.AuthRoleDeleteRequest{Role: role})
	case 12:
		return unary[pb.AuthRoleRevokePermissionResponse](pb.Auth_RoleRevokePermission_FullMethodName,
			&pb.AuthRoleRevokePermissionRequest{Role: role, Key: g.key(), RangeEnd: g.end()})
	}
	return unary[pb.AuthRoleGrantPermissionResponse](pb.Auth_RoleGrantPermission_FullMethodName,
		&pb.AuthRoleGrantPermissionRequest{Name: role, Perm: &authpb.Permission{
			PermType: authpb.Permission_Type(g.IntN(3)), Key: g.key(), RangeEnd: g.end()}})
}

// login is a request for a user's token.
func (g *generator) login(user, pass string) *request {
	return unary[pb.AuthenticateResponse](pb.Auth_Authenticate_FullMethodName,
		&pb.AuthenticateRequest{Name: user, Password: pass})
}

func authStatus() *request {
	return unary[pb.AuthStatusResponse](pb.Auth_AuthStatus_FullMethodName, &pb.AuthStatusRequest{})
}

func authEnable() *request {
	return unary[pb.AuthEnableResponse](pb.Auth_AuthEnable_FullMethodName, &pb.AuthEnableRequest{})
}

func authDisable() *request {
	return unary[pb.AuthDisableResponse](pb.Auth_AuthDisable_FullMethodName, &pb.AuthDisableRequest{})
}

// enable are the requests after which authentication is on and root has a token.
func (g *generator) enable() []*request {
	return []*request{
		authStatus(), authEnable(), // there is no root yet, the first time
		unary[pb.AuthUserAddResponse](pb.Auth_UserAdd_FullMethodName, &pb.AuthUserAddRequest{Name: root, Password: password,
			Options: &authpb.UserAddOptions{}}),
		authEnable(),
		unary[pb.AuthRoleAddResponse](pb.Auth_RoleAdd_FullMethodName, &pb.AuthRoleAddRequest{Name: root}),
		unary[pb.AuthUserGrantRoleResponse](pb.Auth_UserGrantRole_FullMethodName,
			&pb.AuthUserGrantRoleRequest{User: root, Role: root}),
		g.login(root, password), // refused: authentication is off
		authEnable(), g.login(root, "wrong"), g.login(root, password),
	}
}

// disable are those after which it is off.
func (g *generator) disable() []*request {
	off, state := authDisable(), authStatus()
	off.as, state.as = root, root
	return []*request{authDisable(), g.login(root, password), state, off, authStatus()}
}
