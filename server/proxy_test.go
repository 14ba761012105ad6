package server

import (
	"context"
	"fmt"
	"math"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/client/v3/leasing"
	"go.etcd.io/etcd/client/v3/ordering"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy"
)

// proxied is a cluster behind etcd's gRPC proxy.
type proxied struct {
	*realCluster
	addr string
}

// startProxied starts the proxy as `etcd grpc-proxy start` does. change is what its flags do to its client.
func startProxied(t *testing.T, change func(*clientv3.Client)) *proxied {
	c := startReal(t, 3)
	c.leader()
	var endpoints []string
	for _, addr := range c.addrs {
		endpoints = append(endpoints, addr)
	}
	behind, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(), DialTimeout: 5 * time.Second,
		DialOptions: []grpc.DialOption{grpc.WithUnaryInterceptor(grpcproxy.AuthUnaryClientInterceptor),
			grpc.WithStreamInterceptor(grpcproxy.AuthStreamClientInterceptor)}})
	require.NoError(t, err)
	change(behind)
	g := grpc.NewServer(grpc.MaxConcurrentStreams(math.MaxUint32))
	kv, _ := grpcproxy.NewKvProxy(behind)
	watch, watchEnded := grpcproxy.NewWatchProxy(behind.Ctx(), zap.NewNop(), behind)
	cluster, _ := grpcproxy.NewClusterProxy(zap.NewNop(), behind, "", "")
	lease, leaseEnded := grpcproxy.NewLeaseProxy(behind.Ctx(), behind)
	pb.RegisterKVServer(g, kv)
	pb.RegisterWatchServer(g, watch)
	pb.RegisterClusterServer(g, cluster)
	pb.RegisterLeaseServer(g, lease)
	pb.RegisterMaintenanceServer(g, grpcproxy.NewMaintenanceProxy(behind))
	pb.RegisterAuthServer(g, grpcproxy.NewAuthProxy(behind))
	v3electionpb.RegisterElectionServer(g, grpcproxy.NewElectionProxy(behind))
	v3lockpb.RegisterLockServer(g, grpcproxy.NewLockProxy(behind))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = g.Serve(l) }() // ends with Stop
	t.Cleanup(func() {
		g.Stop()
		behind.Close()
		<-watchEnded
		<-leaseEnded
	})
	return &proxied{c, l.Addr().String()}
}

// clientAs returns a client of the proxy; user "": without a password.
func (p *proxied) clientAs(user, password string) *clientv3.Client {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{p.addr}, Logger: zap.NewNop(),
		DialTimeout: 10 * time.Second, Username: user, Password: password})
	require.NoError(p.t, err)
	p.t.Cleanup(func() { client.Close() })
	return client
}

// Keys, watches, leases, locks, users and a change of the leader through etcd's gRPC proxy, also with its ordering of
// serializable reads and with its leases of keys.
func TestRealProxy(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*clientv3.Client){
		"plain": func(*clientv3.Client) {},
		"ordering": func(c *clientv3.Client) {
			c.KV = ordering.NewKV(c.KV, ordering.NewOrderViolationSwitchEndpointClosure(c))
		},
		"leasing": func(c *clientv3.Client) {
			kv, _, err := leasing.NewKV(c, "leasing/")
			require.NoError(t, err)
			c.KV = kv
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startProxied(t, change)
			ctx := testContext(t)
			c := p.clientAs("", "")
			p.keys(ctx, c)
			p.watches(ctx, c)
			p.leases(ctx, c)
		})
	}
	t.Run("users", func(t *testing.T) { // of whom the first that watches is the user of all watches, also with etcd
		t.Parallel()
		p := startProxied(t, func(*clientv3.Client) {})
		p.users(testContext(t), p.clientAs("", ""))
	})
}

func (p *proxied) keys(ctx context.Context, c *clientv3.Client) {
	t := p.t
	for i := range 20 {
		key := fmt.Sprint("k", i%3)
		put, err := c.Put(ctx, key, fmt.Sprint(i))
		require.NoError(t, err)
		stale := []clientv3.OpOption{clientv3.WithSerializable(), clientv3.WithRev(put.Header.Revision)}
		for _, opts := range [][]clientv3.OpOption{nil, stale} {
			eventually(t, "a read", func() bool {
				got, err := c.Get(ctx, key, opts...)
				if err != nil {
					return false // it is behind, or the machine is busy
				}
				require.Equal(t, fmt.Sprint(i), string(got.Kvs[0].Value))
				return true
			})
		}
	}
	swap := func(from, to string) bool {
		resp, err := c.Txn(ctx).If(clientv3.Compare(clientv3.Value("k0"), "=", from)).Then(clientv3.OpPut("k0", to)).Commit()
		require.NoError(t, err)
		return resp.Succeeded
	}
	require.True(t, swap("18", "x"))
	require.False(t, swap("18", "y"))
	deleted, err := c.Delete(ctx, "k1")
	require.NoError(t, err)
	require.EqualValues(t, 1, deleted.Deleted)
	require.NoError(t, second(c.Compact(ctx, deleted.Header.Revision)))
	_, err = c.Get(ctx, "k0", clientv3.WithRev(2))
	require.ErrorIs(t, err, rpctypes.ErrCompacted)
}

// watches has two watches of a key, which the proxy makes one, while the leader changes.
func (p *proxied) watches(ctx context.Context, c *clientv3.Client) {
	t := p.t
	first, err := c.Put(ctx, "w", "0")
	require.NoError(t, err)
	streams := []clientv3.WatchChan{
		c.Watch(ctx, "w", clientv3.WithRev(first.Header.Revision)),
		p.clientAs("", "").Watch(ctx, "w", clientv3.WithRev(first.Header.Revision)),
	}
	const puts = 30
	for i := 1; i < puts; i++ {
		putUntil(t, ctx, c, "w", fmt.Sprint(i))
		if i == puts/2 {
			leader := p.leader()
			p.stop(leader)
			putUntil(t, ctx, c, "w", "while it is down")
			p.start(leader)
		}
	}
	for _, events := range streams {
		last := ""
		for revision := int64(0); last != fmt.Sprint(puts-1); {
			resp, open := <-events
			require.True(t, open)
			require.NoError(t, resp.Err())
			for _, e := range resp.Events {
				require.Greater(t, e.Kv.ModRevision, revision, "in order, each once")
				revision, last = e.Kv.ModRevision, string(e.Kv.Value)
			}
		}
	}
}

func (p *proxied) leases(ctx context.Context, c *clientv3.Client) {
	t := p.t
	granted, err := c.Grant(ctx, 60)
	require.NoError(t, err)
	require.NoError(t, second(c.Put(ctx, "l", "v", clientv3.WithLease(granted.ID))))
	alive, err := c.KeepAlive(ctx, granted.ID)
	require.NoError(t, err)
	require.Greater(t, (<-alive).TTL, int64(30), "less by the time that it took to confirm it")
	left, err := c.TimeToLive(ctx, granted.ID, clientv3.WithAttachedKeys())
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("l")}, left.Keys)
	require.NoError(t, second(c.Revoke(ctx, granted.ID)))
	got, err := c.Get(ctx, "l")
	require.NoError(t, err)
	require.Empty(t, got.Kvs)
	session, err := concurrency.NewSession(c)
	require.NoError(t, err)
	mutex := concurrency.NewMutex(session, "lock")
	require.NoError(t, mutex.Lock(ctx))
	require.NoError(t, mutex.Unlock(ctx))
	require.NoError(t, session.Close())
}

func (p *proxied) users(ctx context.Context, c *clientv3.Client) {
	t := p.t
	for _, step := range []error{
		second(c.UserAdd(ctx, "root", "secret")), second(c.RoleAdd(ctx, "root")),
		second(c.UserGrantRole(ctx, "root", "root")), second(c.RoleAdd(ctx, "bs")),
		second(c.RoleGrantPermission(ctx, "bs", "b", "c", clientv3.PermissionType(clientv3.PermReadWrite))),
		second(c.UserAdd(ctx, "bob", "b")), second(c.UserGrantRole(ctx, "bob", "bs")), second(c.AuthEnable(ctx)),
	} {
		require.NoError(t, step)
	}
	bob, root := p.clientAs("bob", "b"), p.clientAs("root", "secret")
	require.ErrorIs(t, second(c.Put(ctx, "b", "v")), rpctypes.ErrUserEmpty)
	require.ErrorIs(t, second(bob.Put(ctx, "c", "v")), rpctypes.ErrPermissionDenied)
	events := bob.Watch(ctx, "b", clientv3.WithCreatedNotify())
	require.True(t, (<-events).Created)
	require.NoError(t, second(bob.Put(ctx, "b", "v")))
	require.Len(t, (<-events).Events, 1)
	require.NoError(t, second(root.UserChangePassword(ctx, "bob", "new")))
	require.ErrorIs(t, second(bob.Put(ctx, "b", "v")), rpctypes.ErrAuthFailed)
	require.NoError(t, second(p.clientAs("bob", "new").Put(ctx, "b", "v")))
	require.NoError(t, second(root.AuthDisable(ctx)))
}
