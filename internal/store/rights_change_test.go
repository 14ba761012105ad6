package store

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/auth"
)

const (
	// usersChange is logged in the middle of each change of users, and when Restore replaces them: etcd's revision is the
	// new one then, but tokens and users are those before.
	usersChange = "Refreshing rangePermCache"
	// keysRestored is logged when Restore has replaced leases and keys, but not users.
	keysRestored = "kvstore restored"
)

// openAt opens a store that calls a function when it logs a message.
func openAt(t *testing.T, message string, during func()) *node {
	core, _ := observer.New(zapcore.DebugLevel)
	o := testOptions(t.TempDir())
	o.Logger = zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
		if e.Message == message {
			during()
		}
		return nil
	}))
	n := open(t, o)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return n
}

// runUntilItWaits runs a function in a goroutine of its own until it ends, or has to wait.
func runUntilItWaits(f func()) {
	go f()
	for range 10_000 {
		runtime.Gosched()
	}
}

// TestAChangeOfUsersIsJudgedWhole: a user who asks while a change is applied must not count as one who asked after it
// with what was valid before it. A member that lagged behind accepted the token of a user whose password had been
// changed elsewhere, and a watch that began at that moment kept rights that had been revoked.
func TestAChangeOfUsersIsJudgedWhole(t *testing.T) {
	for name, c := range map[string]struct {
		change *pb.InternalRaftRequest
		want   error
	}{
		"user deleted": {&pb.InternalRaftRequest{AuthUserDelete: &pb.AuthUserDeleteRequest{Name: "bob"}},
			auth.ErrInvalidAuthToken},
		"password changed": {&pb.InternalRaftRequest{
			AuthUserChangePassword: &pb.AuthUserChangePasswordRequest{Name: "bob", Password: "new"}},
			auth.ErrInvalidAuthToken},
		"role revoked": {&pb.InternalRaftRequest{
			AuthUserRevokeRole: &pb.AuthUserRevokeRoleRequest{Name: "bob", Role: "root"}}, auth.ErrPermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			during := func() {}
			n := openAt(t, usersChange, func() { during() })
			enableAuth(n)
			root, bob := n.login("root", "r"), n.login("bob", "b")
			require.NoError(t, n.doAs(root, &pb.InternalRaftRequest{
				AuthUserGrantRole: &pb.AuthUserGrantRoleRequest{User: "bob", Role: "root"}}))
			asked := make(chan error, 1)
			var reader *Reader
			during = func() {
				runUntilItWaits(func() {
					var err error
					reader, err = n.Rights().Reader(bob, []byte("x"), nil)
					asked <- err
				})
			}
			require.NoError(t, n.doAs(root, c.change))
			err := <-asked
			if err == nil {
				err = reader.Still()
			}
			require.ErrorIs(t, err, c.want)
		})
	}
}
