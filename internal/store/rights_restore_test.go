package store

import (
	"bytes"
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
	require.NoError(t, n.Restore(bytes.NewReader(other.snapshot())))
	during = func() {}
	n.next = n.Applied() + 1
	for e := range encoded {
		require.ErrorIs(t, n.raw(e.Command)[0].Err, auth.ErrUserEmpty)
	}
}
