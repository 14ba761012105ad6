package store

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/auth"
)

// TestNoPutIsAcceptedWhileUsersAreReplaced: while Restore replaces users, etcd's revision is the new one, but
// authentication may still be off. A put without a user that was accepted then took effect, because a put of that
// revision cannot be from the time before authentication was turned on.
func TestNoPutIsAcceptedWhileUsersAreReplaced(t *testing.T) {
	during := func() {}
	n, other := openAt(t, usersChange, func() { during() }), openTemp(t)
	enableAuth(other)
	other.raw(CloseCommand(other.Auth().Revision()))
	require.NoError(t, other.doAs(other.login("root", "r"),
		&pb.InternalRaftRequest{AuthRoleAdd: &pb.AuthRoleAddRequest{Name: "later"}}))
	encoded := make(chan Encoded, 1)
	during = func() {
		runUntilItWaits(func() {
			defer close(encoded)
			if e, err := n.EncodeAccepted(put("key", "value").Put); err == nil {
				encoded <- e
			}
		})
	}
	require.NoError(t, n.Restore(snapshotReader(other)))
	during = func() {}
	n.next = n.Applied() + 1
	for e := range encoded {
		require.ErrorIs(t, n.raw(e.Command)[0].Err, auth.ErrUserEmpty)
	}
}

// TestRestoreEndsTokens: a member that missed a change of users, and got the state after it as a snapshot, does not
// accept the tokens that the change made invalid.
func TestRestoreEndsTokens(t *testing.T) {
	root := func(n *node) context.Context { return n.login("root", "r") }
	for name, change := range map[string]func(*node){
		"password changed": func(n *node) {
			require.NoError(n.t, n.doAs(root(n), &pb.InternalRaftRequest{
				AuthUserChangePassword: &pb.AuthUserChangePasswordRequest{Name: "bob", Password: "new"}}))
		},
		"user replaced": func(n *node) {
			require.NoError(n.t, n.doAs(root(n),
				&pb.InternalRaftRequest{AuthUserDelete: &pb.AuthUserDeleteRequest{Name: "bob"}}))
			require.NoError(n.t, n.doAs(root(n),
				&pb.InternalRaftRequest{AuthUserAdd: &pb.AuthUserAddRequest{Name: "bob", Password: "other"}}))
		},
		"authentication off and on": func(n *node) {
			require.NoError(n.t, n.doAs(root(n), &pb.InternalRaftRequest{AuthDisable: &pb.AuthDisableRequest{}}))
			n.must(&pb.InternalRaftRequest{AuthEnable: &pb.AuthEnableRequest{}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, other := openTemp(t), openTemp(t)
			enableAuth(n)
			bob := n.login("bob", "b")
			require.NoError(t, n.Rights().RequireAuth(bob))
			require.NoError(t, other.Restore(snapshotReader(n)))
			other.next = other.Applied() + 1
			change(other)
			require.NoError(t, n.Restore(snapshotReader(other)))
			n.next = n.Applied() + 1
			require.ErrorIs(t, n.Rights().RequireAuth(bob), auth.ErrInvalidAuthToken)
			require.NoError(t, n.Rights().RequireAuth(root(n)))
		})
	}
}

// TestReadersWaitForReplacedUsers: while Restore has replaced keys but not users, a watch of a user whose right was
// revoked in between got what was written after that.
func TestReadersWaitForReplacedUsers(t *testing.T) {
	for name, change := range map[string]func(*node){
		"right revoked": func(n *node) {
			require.NoError(n.t, n.doAs(n.login("root", "r"), &pb.InternalRaftRequest{
				AuthUserRevokeRole: &pb.AuthUserRevokeRoleRequest{Name: "bob", Role: "as"}}))
		},
		"authentication turned on": func(n *node) {
			n.must(&pb.InternalRaftRequest{AuthEnable: &pb.AuthEnableRequest{}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			during := func() {}
			n, other := openAt(t, keysRestored, func() { during() }), openTemp(t)
			enableAuth(n)
			user := n.login("bob", "b")
			if name == "authentication turned on" {
				require.NoError(t, n.doAs(n.login("root", "r"),
					&pb.InternalRaftRequest{AuthDisable: &pb.AuthDisableRequest{}}))
				user = context.Background()
			}
			reader, err := n.Rights().Reader(user, []byte("a"), nil)
			require.NoError(t, err)
			require.NoError(t, other.Restore(snapshotReader(n)))
			other.next = other.Applied() + 1
			change(other)
			allowed := make(chan error, 1)
			during = func() { runUntilItWaits(func() { allowed <- reader.Still() }) }
			require.NoError(t, n.Restore(snapshotReader(other)))
			require.True(t, IsRefusal(<-allowed))
		})
	}
}

// TestLoginsWhileUsersAreReplaced checks passwords while the database that has them is replaced and closed.
func TestLoginsWhileUsersAreReplaced(t *testing.T) {
	n := openTemp(t)
	enableAuth(n)
	same := n.snapshot()
	var stop atomic.Bool
	var logins sync.WaitGroup
	defer func() { stop.Store(true); logins.Wait() }()
	for range 2 {
		logins.Go(func() {
			for !stop.Load() {
				_, err := n.Rights().Login(context.Background(), &pb.AuthenticateRequest{Name: "bob", Password: "wrong"})
				if !errors.Is(err, auth.ErrAuthFailed) {
					t.Errorf("a wrong password: %v", err)
					return
				}
			}
		})
	}
	for range 8 {
		require.NoError(t, n.Restore(bytes.NewReader(same)))
	}
}
