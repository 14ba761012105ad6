package store

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/auth"
)

// However many clients log in at once, few passwords are checked at once, and no client waits forever.
func TestPasswordsAreCheckedInTurn(t *testing.T) {
	n := openTemp(t)
	enableAuth(n)
	n.rights.passwords.turns, n.rights.passwords.wait = newTurns(2, 100, 100), time.Minute
	var at, most atomic.Int32
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			err := n.rights.passwords.run(context.Background(), func() error {
				defer at.Add(-1)
				for now := at.Add(1); ; {
					if last := most.Load(); last >= now || most.CompareAndSwap(last, now) {
						return nil
					}
				}
			})
			require.NoError(t, err)
		})
	}
	all.Wait()
	require.LessOrEqual(t, most.Load(), int32(2))

	login := func(ctx context.Context) error {
		_, err := n.Rights().Login(ctx, &pb.AuthenticateRequest{Name: "root", Password: "r"})
		return err
	}
	n.login("bob", "b")
	for range 2 { // all are busy
		require.NoError(t, n.rights.passwords.turns.begin(context.Background(), ""))
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, login(gone), context.Canceled)
	n.rights.passwords.wait = time.Millisecond
	require.ErrorIs(t, login(context.Background()), ErrTooManyPasswords)
	_, err := n.Encode(context.Background(),
		&pb.InternalRaftRequest{AuthUserAdd: &pb.AuthUserAddRequest{Name: "x", Password: "y"}})
	require.ErrorIs(t, err, ErrTooManyPasswords)
	n.rights.passwords.turns.waiting = 100
	require.ErrorIs(t, login(context.Background()), ErrTooManyPasswords, "at once")
	n.login("bob", "b") // whose password is known, and who does not wait
}

// A password that was right is known until users change, and no other one is.
func TestRightPasswordsAreKnown(t *testing.T) {
	n := openTemp(t)
	enableAuth(n)
	known := func(user, password string) bool {
		return n.rights.passwords.known.has(n.rights.passwords.known.digest(user, password), n.Auth().Revision())
	}
	require.False(t, known("bob", "b"))
	root := n.login("root", "r")
	n.login("bob", "b")
	require.True(t, known("bob", "b"))
	n.login("bob", "b")
	require.False(t, known("bob", "r"))
	require.False(t, known("bo", "bb"))
	_, err := n.Rights().Login(context.Background(), &pb.AuthenticateRequest{Name: "bob", Password: "r"})
	require.ErrorIs(t, err, auth.ErrAuthFailed)
	require.NoError(t,
		n.doAs(root, &pb.InternalRaftRequest{AuthUserChangePassword: &pb.AuthUserChangePasswordRequest{Name: "bob",
			Password: "new"}}))
	require.False(t, known("bob", "b"))
	_, err = n.Rights().Login(context.Background(), &pb.AuthenticateRequest{Name: "bob", Password: "b"})
	require.ErrorIs(t, err, auth.ErrAuthFailed)
	n.login("bob", "new")
	for i := range 2 * mostKnown {
		n.rights.passwords.known.note(n.rights.passwords.known.digest("bob", string(rune(i))), n.Auth().Revision())
	}
	require.LessOrEqual(t, len(n.rights.passwords.known.right), mostKnown)
}
