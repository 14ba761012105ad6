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
