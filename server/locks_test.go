package server

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	clientv3 "go.etcd.io/etcd/client/v3"
	epb "go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	lpb "go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
)

// waiting is a call that waits until its turn comes: for a lock, or to be elected. Each has a lease of
// its own.
type waiting func(ctx context.Context, conn *grpc.ClientConn, lease clientv3.LeaseID) error

func lock(ctx context.Context, conn *grpc.ClientConn, lease clientv3.LeaseID) error {
	_, err := lpb.NewLockClient(conn).Lock(ctx, &lpb.LockRequest{Name: []byte("n"), Lease: int64(lease)})
	return err
}

func campaign(ctx context.Context, conn *grpc.ClientConn, lease clientv3.LeaseID) error {
	_, err := epb.NewElectionClient(conn).Campaign(ctx, &epb.CampaignRequest{Name: []byte("n"), Lease: int64(lease),
		Value: []byte("v")})
	return err
}

func (f *fixture) grant(t testing.TB, ctx context.Context) clientv3.LeaseID {
	granted, err := f.client.Grant(ctx, 600)
	require.NoError(t, err)
	return granted.ID
}

// waiters makes n calls that wait behind others, and returns when all of them do.
func (f *fixture) waiters(t testing.TB, ctx context.Context, conn *grpc.ClientConn, call waiting, others,
	n int) <-chan error {
	ended := make(chan error, n)
	for range n {
		lease := f.grant(t, ctx)
		go func() { ended <- call(ctx, conn, lease) }()
	}
	f.await(t, ctx, others+n)
	return ended
}

// await waits until n calls hold the lock or wait for it.
func (f *fixture) await(t testing.TB, ctx context.Context, n int) {
	eventually(t, fmt.Sprintf("%d to wait", n), func() bool {
		r, err := f.client.Get(ctx, "n/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		require.NoError(t, err)
		return r.Count == int64(n)
	})
}

// Calls that are cancelled all at once must not end the service for later ones.
func TestWaitingCallsAreGivenUp(t *testing.T) {
	for name, call := range map[string]waiting{"lock": lock, "campaign": campaign} {
		for _, n := range []int{12, 60, 200} {
			for _, closing := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/closing=%v", name, n, closing), func(t *testing.T) {
					t.Parallel()
					f := start(t)
					ctx := testContext(t)
					held := f.grant(t, ctx)
					require.NoError(t, call(ctx, f.client.ActiveConnection(), held))
					waiting, giveUp := context.WithCancel(ctx)
					crowd := f.dial(t, clientv3.Config{})
					ended := f.waiters(t, waiting, crowd.ActiveConnection(), call, 1, n)
					if closing {
						crowd.Close()
					}
					giveUp()
					for range n {
						require.Error(t, <-ended)
					}
					f.await(t, ctx, 1)
					next := f.waiters(t, ctx, f.client.ActiveConnection(), call, 1, 1)
					_, err := f.client.Revoke(ctx, held)
					require.NoError(t, err)
					select {
					case err := <-next:
						require.NoError(t, err)
					case <-time.After(10 * time.Second):
						t.Fatal("who waits now never gets it")
					}
				})
			}
		}
	}
}

// addUser makes a user who may use the keys below NAME/.
func (f *fixture) addUser(t testing.TB, ctx context.Context, name string) {
	require.NoError(t, second(f.client.UserAdd(ctx, name, "p")))
	require.NoError(t, second(f.client.RoleAdd(ctx, name)))
	require.NoError(t, second(f.client.RoleGrantPermission(ctx, name, name+"/", clientv3.GetPrefixRangeEnd(name+"/"),
		clientv3.PermissionType(clientv3.PermReadWrite))))
	require.NoError(t, second(f.client.UserGrantRole(ctx, name, name)))
}

// TestLocksOfSeveralUsers: users wait for locks on keys that others have no rights to. A call waits by a watch of the
// lock service, and every watch had the rights of the user who waited first.
func TestLocksOfSeveralUsers(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	users := []string{"one", "two"}
	for _, name := range users {
		f.addUser(t, ctx, name)
	}
	root, _ := f.enableAuth(t, ctx)
	locks := lpb.NewLockClient(f.client.ActiveConnection())
	as := func(name, password string) context.Context {
		resp, err := f.client.Authenticate(ctx, name, password)
		require.NoError(t, err)
		return withLogin(ctx, resp.Token)
	}
	lease := func() int64 {
		granted, err := root.Grant(ctx, 600)
		require.NoError(t, err)
		return int64(granted.ID)
	}
	held, ended := lease(), make(chan error, len(users))
	for i, name := range users {
		require.NoError(t, second(locks.Lock(as("root", "secret"), &lpb.LockRequest{Name: []byte(name), Lease: held})))
		own, user := lease(), as(name, "p")
		go func() {
			ended <- second(locks.Lock(user, &lpb.LockRequest{Name: []byte(name), Lease: own}))
		}()
		eventually(t, "the call to wait", func() bool { return f.metrics.Watches.Load() > int64(i) || len(ended) > 0 })
	}
	require.Empty(t, ended, "no call has ended")
	require.NoError(t, second(root.Revoke(ctx, clientv3.LeaseID(held))))
	for range users {
		require.NoError(t, <-ended)
	}
}
