package server

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid/internal/testsize"
)

type clientAlarm = clientv3.AlarmMember

func withAll() []clientv3.OpOption { return []clientv3.OpOption{clientv3.WithFromKey()} }

// enableAuth makes root and a user "reader" who may read r…, and write nothing.
func (f *fixture) enableAuth(t testing.TB, ctx context.Context) (root, reader *clientv3.Client) {
	c := f.client
	_, err := c.AuthEnable(ctx)
	require.ErrorIs(t, err, rpctypes.ErrRootUserNotExist)
	for _, step := range []func() error{
		func() error { _, err := c.UserAdd(ctx, "root", "secret"); return err },
		func() error { _, err := c.RoleAdd(ctx, "root"); return err },
		func() error { _, err := c.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := c.UserAdd(ctx, "reader", "book"); return err },
		func() error { _, err := c.RoleAdd(ctx, "read"); return err },
		func() error {
			_, err := c.RoleGrantPermission(ctx, "read", "r", "s", clientv3.PermissionType(clientv3.PermRead))
			return err
		},
		func() error { _, err := c.UserGrantRole(ctx, "reader", "read"); return err },
		func() error { _, err := c.AuthEnable(ctx); return err },
	} {
		require.NoError(t, step())
	}
	return f.dial(t, clientv3.Config{Username: "root", Password: "secret"}),
		f.dial(t, clientv3.Config{Username: "reader", Password: "book"})
}

func TestAuth(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	root, reader := f.enableAuth(t, ctx)
	status, err := root.AuthStatus(ctx)
	require.NoError(t, err)
	require.True(t, status.Enabled)

	_, err = f.client.Put(ctx, "r1", "v")
	require.ErrorIs(t, err, rpctypes.ErrUserEmpty)
	_, err = root.Put(ctx, "r1", "v")
	require.NoError(t, err)
	got, err := reader.Get(ctx, "r1")
	require.NoError(t, err)
	require.Equal(t, "v", string(got.Kvs[0].Value))
	for name, call := range map[string]func() error{
		"get outside":   func() error { _, err := reader.Get(ctx, "x"); return err },
		"put":           func() error { _, err := reader.Put(ctx, "r1", "w"); return err },
		"delete":        func() error { _, err := reader.Delete(ctx, "r1"); return err },
		"read-only txn": func() error { _, err := reader.Txn(ctx).Then(clientv3.OpGet("x")).Commit(); return err },
		"compact":       func() error { _, err := reader.Compact(ctx, 2); return err },
		"member add":    func() error { _, err := reader.MemberAdd(ctx, []string{"http://127.0.0.1:3"}); return err },
		"defragment":    func() error { _, err := reader.Defragment(ctx, f.addr); return err },
		"hash":          func() error { _, err := reader.HashKV(ctx, f.addr, 0); return err },
		"user add":      func() error { _, err := reader.UserAdd(ctx, "x", "y"); return err },
		"watch outside": func() error { resp := <-reader.Watch(ctx, "x"); return resp.Err() },
		"snapshot":      func() error { _, err := reader.SnapshotWithVersion(ctx); return err },
		"move leader":   func() error { _, err := reader.MoveLeader(ctx, 1); return err },
		"alarm": func() error {
			_, err := reader.AlarmDisarm(ctx, &clientAlarm{MemberID: 1, Alarm: pb.AlarmType_NOSPACE})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorContains(t, call(), "permission denied") })
	}
	watching, cancel := context.WithCancel(ctx)
	events := reader.Watch(watching, "r1", clientv3.WithRev(1))
	require.Len(t, (<-events).Events, 1)
	cancel()

	_, err = clientv3.New(clientv3.Config{Endpoints: []string{f.addr}, Username: "root", Password: "wrong",
		DialTimeout: 5e9})
	require.ErrorIs(t, err, rpctypes.ErrAuthFailed)
	_, err = root.UserChangePassword(ctx, "reader", "tome")
	require.NoError(t, err)
	f.dial(t, clientv3.Config{Username: "reader", Password: "tome"})
	_, err = root.AuthDisable(ctx)
	require.NoError(t, err)
	_, err = f.client.Put(ctx, "x", "")
	require.NoError(t, err)
}

func TestLeasesUnderAuth(t *testing.T) {
	testsize.Long(t)
	f := start(t)
	ctx := testContext(t)
	root, reader := f.enableAuth(t, ctx)
	_, err := f.client.Grant(ctx, 60)
	require.ErrorIs(t, err, rpctypes.ErrUserEmpty)
	granted, err := root.Grant(ctx, 60)
	require.NoError(t, err)
	_, err = root.Put(ctx, "x", "v", clientv3.WithLease(granted.ID))
	require.NoError(t, err)
	_, err = root.KeepAliveOnce(ctx, granted.ID)
	require.NoError(t, err)
	_, err = reader.KeepAliveOnce(ctx, granted.ID)
	require.ErrorIs(t, err, rpctypes.ErrPermissionDenied)
	_, err = reader.TimeToLive(ctx, granted.ID, clientv3.WithAttachedKeys())
	require.ErrorIs(t, err, rpctypes.ErrPermissionDenied)
	_, err = reader.TimeToLive(ctx, granted.ID)
	require.NoError(t, err)
	_, err = reader.Revoke(ctx, granted.ID)
	require.ErrorIs(t, err, rpctypes.ErrPermissionDenied)
	brief, err := root.Grant(ctx, 1)
	require.NoError(t, err)
	eventually(t, "the lease to end although nobody asks for it", func() bool {
		left, err := root.TimeToLive(ctx, brief.ID)
		return err == nil && left.TTL == -1
	})
}

func TestUsersAndRoles(t *testing.T) {
	f := start(t)
	c, ctx := f.client, testContext(t)
	_, err := c.UserAddWithOptions(ctx, "nopass", "", &clientv3.UserAddOptions{NoPassword: true})
	require.NoError(t, err)
	asked := &pb.AuthUserAddRequest{Name: "other", Password: "plain", Options: &authpb.UserAddOptions{NoPassword: true}}
	_, err = f.Server.auth.UserAdd(ctx, asked)
	require.NoError(t, err)
	require.Empty(t, asked.Password, "the log has no password")
	_, err = c.UserDelete(ctx, "other")
	require.NoError(t, err)
	_, err = c.UserAdd(ctx, "nopass", "x")
	require.ErrorIs(t, err, rpctypes.ErrUserAlreadyExist)
	_, err = c.RoleAdd(ctx, "role")
	require.NoError(t, err)
	_, err = c.RoleGrantPermission(ctx, "role", "a", "b", clientv3.PermissionType(clientv3.PermReadWrite))
	require.NoError(t, err)
	_, err = c.UserGrantRole(ctx, "nopass", "role")
	require.NoError(t, err)
	user, err := c.UserGet(ctx, "nopass")
	require.NoError(t, err)
	require.Equal(t, []string{"role"}, user.Roles)
	role, err := c.RoleGet(ctx, "role")
	require.NoError(t, err)
	require.Len(t, role.Perm, 1)
	users, err := c.UserList(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"nopass"}, users.Users)
	_, err = c.RoleRevokePermission(ctx, "role", "a", "b")
	require.NoError(t, err)
	_, err = c.UserRevokeRole(ctx, "nopass", "role")
	require.NoError(t, err)
	_, err = c.RoleDelete(ctx, "role")
	require.NoError(t, err)
	roles, err := c.RoleList(ctx)
	require.NoError(t, err)
	require.Empty(t, roles.Roles)
	_, err = c.UserDelete(ctx, "nopass")
	require.NoError(t, err)
	_, err = c.UserGet(ctx, "nopass")
	require.ErrorIs(t, err, rpctypes.ErrUserNotFound)
}
