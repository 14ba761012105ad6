package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/ports"
	"github.com/braidlog/braid/internal/store"
	"github.com/braidlog/braid/internal/testsize"
)

// realCluster is members of a real cluster in this process, on loopback and real disks.
type realCluster struct {
	t       testing.TB
	members []braid.Member
	configs map[braid.MemberID]*Config
	servers map[braid.MemberID]*Server
	addrs   map[braid.MemberID]string
	change  []func(*Config)
}

const testToken = "test"

// eachKind runs a test for clusters of one instance, of several of which each member leads some, and
// for those whose members spread puts themselves.
func eachKind(t *testing.T, test func(t *testing.T, kind func(*Config))) {
	for name, kind := range map[string]func(*Config){
		braid.OrderSingle: func(*Config) {}, braid.OrderNiagara: spreadInstances, "lcr": byLanes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, kind)
		})
	}
}

// byLanes makes all puts of the tests that may use lanes do so. They are answered when they are applied.
func byLanes(c *Config) {
	onLCR(c)
	c.LanePrefixes = []LanePrefix{{"k", false}, {"b", false}, {"a", false}}
}

func spreadInstances(c *Config) {
	c.Node.Protocol = braid.Niagara{Instances: 3, Leaders: braid.LeadersSpread}
}

// freeAddr is an address that outgoing connections cannot use meanwhile.
func freeAddr(t testing.TB) string {
	free, err := ports.Free("127.0.0.1", 1)
	require.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", free[0])
}

func startReal(t testing.TB, n int, change ...func(*Config)) *realCluster {
	testsize.Long(t)
	c := &realCluster{t: t, change: change, configs: map[braid.MemberID]*Config{}, servers: map[braid.MemberID]*Server{},
		addrs: map[braid.MemberID]string{}}
	for i := range n {
		name := fmt.Sprintf("m%d", i+1)
		c.members = append(c.members, braid.Member{ID: braid.MemberIDOf(name, testToken), Name: name,
			PeerURLs: []string{"http://" + freeAddr(t)}})
	}
	for _, m := range c.members {
		c.configure(m, false)
	}
	for _, m := range c.members {
		c.start(m.ID)
	}
	t.Cleanup(func() {
		for id := range c.servers {
			c.stop(id)
		}
	})
	return c
}

func (c *realCluster) configure(m braid.Member, join bool) {
	dir := c.t.TempDir()
	c.addrs[m.ID] = freeAddr(c.t)
	c.configs[m.ID] = &Config{
		Node: braid.Options{
			Self: m.ID, Cluster: braid.ClusterIDOf(c.members[:min(3, len(c.members))], testToken), Dir: dir + "/log",
			Members: c.members, Join: join, Listen: []string{m.PeerURLs[0][len("http://"):]}, Heartbeat: 50 * time.Millisecond,
			ElectionTimeout: 500 * time.Millisecond,
		},
		Store: store.Options{Dir: dir + "/store", BcryptCost: 4}, Name: m.Name, ClusterToken: testToken,
		RequestTimeout: 5 * time.Second, AdvertiseClientURLs: []string{"http://" + c.addrs[m.ID]},
		Logger: slog.New(slog.DiscardHandler), NoProcessMetrics: true,
	}
	for _, change := range c.change {
		change(c.configs[m.ID])
	}
}

func (c *realCluster) start(id braid.MemberID) {
	cfg := *c.configs[id]
	l, err := net.Listen("tcp", c.addrs[id])
	require.NoError(c.t, err)
	cfg.ListenClient = []net.Listener{l}
	c.servers[id], err = Start(cfg)
	require.NoError(c.t, err)
}

func (c *realCluster) stop(id braid.MemberID) {
	require.NoError(c.t, c.servers[id].Close())
	delete(c.servers, id)
}

// client returns a client of some members, of all if none is given.
func (c *realCluster) client(ids ...braid.MemberID) *clientv3.Client {
	cfg := clientv3.Config{Logger: zap.NewNop(), DialTimeout: 5 * time.Second}
	if len(ids) == 0 {
		for _, m := range c.members {
			ids = append(ids, m.ID)
		}
	}
	for _, id := range ids {
		cfg.Endpoints = append(cfg.Endpoints, c.addrs[id])
	}
	client, err := clientv3.New(cfg)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { client.Close() })
	return client
}

// leader waits until a member that runs leads and keeps the leases.
func (c *realCluster) leader() braid.MemberID {
	c.t.Helper()
	var id braid.MemberID
	eventually(c.t, "a leader", func() bool {
		for i, s := range c.servers {
			if s.self.Load().isLeader() && s.store.Leases().IsPrimary() {
				id = i
				return true
			}
		}
		return false
	})
	return id
}

func (c *realCluster) follower() braid.MemberID {
	leader := c.leader()
	for id := range c.servers {
		if id != leader {
			return id
		}
	}
	return 0
}

// put retries what a client may retry: a put has the same effect however often it is repeated.
func putUntil(t testing.TB, ctx context.Context, c *clientv3.Client, key, value string) {
	t.Helper()
	eventually(t, "a put to succeed", func() bool {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_, err := c.Put(attempt, key, value)
		return err == nil
	})
}

func TestRealCluster(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, kind func(*Config)) {
		c := startReal(t, 3, kind)
		ctx := testContext(t)
		c.leader()
		all := c.client()
		events := all.Watch(ctx, "k", clientv3.WithPrefix(), clientv3.WithRev(1))
		for i, m := range c.members {
			one := c.client(m.ID)
			_, err := one.Put(ctx, fmt.Sprintf("k%d", i), m.Name)
			require.NoError(t, err)
			for _, other := range c.members {
				got, err := c.client(other.ID).Get(ctx, fmt.Sprintf("k%d", i))
				require.NoError(t, err)
				require.Len(t, got.Kvs, 1, "a linearizable read on %s", other.Name)
			}
		}
		seen := 0
		for seen < len(c.members) {
			seen += len((<-events).Events)
		}
		var hashes []uint32
		for _, m := range c.members {
			h, err := all.HashKV(ctx, c.addrs[m.ID], 4)
			require.NoError(t, err)
			hashes = append(hashes, h.Hash)
		}
		require.Equal(t, hashes[0], hashes[1])
		require.Equal(t, hashes[0], hashes[2])
		eventually(t, "everybody's client URLs", func() bool {
			list, err := all.MemberList(ctx)
			for _, m := range list.Members {
				if len(m.ClientURLs) != 1 {
					return false
				}
			}
			return err == nil && len(list.Members) == 3
		})
	})
}

// The leader goes, the others continue; it comes back and has everything.
func TestRealFailover(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, kind func(*Config)) {
		c := startReal(t, 3, kind)
		ctx := testContext(t)
		old := c.leader()
		all := c.client()
		granted, err := all.Grant(ctx, 30)
		require.NoError(t, err)
		putUntil(t, ctx, all, "before", "1")
		c.stop(old)
		survivor := c.client(c.follower())
		putUntil(t, ctx, survivor, "after", "2")
		alive, err := survivor.KeepAliveOnce(ctx, granted.ID)
		require.NoError(t, err, "a follower passes renewals on to the new primary")
		require.InDelta(t, 30, alive.TTL, 5, "the time of a barrier is subtracted")

		session, err := concurrency.NewSession(survivor, concurrency.WithLease(granted.ID))
		require.NoError(t, err)
		require.NoError(t, concurrency.NewMutex(session, "/lock").Lock(ctx))
		c.start(old)
		back := c.client(old)
		eventually(t, "the old leader to serve again", func() bool {
			got, err := back.Get(ctx, "after")
			return err == nil && len(got.Kvs) == 1
		})
		left, err := back.TimeToLive(ctx, granted.ID, clientv3.WithAttachedKeys())
		require.NoError(t, err)
		require.Len(t, left.Keys, 1)
	})
}

func TestRealMembership(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, kind func(*Config)) {
		c := startReal(t, 3, kind)
		ctx := testContext(t)
		c.leader()
		all := c.client()
		putUntil(t, ctx, all, "k", "v")
		peer := "http://" + freeAddr(t)
		var added *clientv3.MemberAddResponse
		eventually(t, "the learner to be added", func() bool {
			var err error
			added, err = all.MemberAddAsLearner(ctx, []string{peer})
			return err == nil
		})
		m := braid.Member{ID: braid.MemberID(added.Member.ID), Name: "m4", PeerURLs: []string{peer}, Learner: true}
		require.Equal(t, JoinedMemberID([]string{peer}, testToken), m.ID)
		c.members = append(c.members, m)
		c.configure(m, true)
		c.start(m.ID)
		eventually(t, "the learner to be promoted", func() bool {
			_, err := all.MemberPromote(ctx, added.Member.ID)
			return err == nil
		})
		fourth := c.client(m.ID)
		eventually(t, "the new voter to serve", func() bool {
			got, err := fourth.Get(ctx, "k")
			return err == nil && len(got.Kvs) == 1
		})
		target := c.follower()
		for leader := c.leader(); leader != target; leader = c.leader() {
			// On a busy machine another may be elected meanwhile.
			_, err := c.client(leader).MoveLeader(ctx, uint64(target))
			require.NoError(t, ctx.Err(), "leadership did not come to the member that was asked for: %v", err)
		}
		eventually(t, "the removal", func() bool {
			_, err := all.MemberRemove(ctx, uint64(m.ID))
			return err == nil || errors.Is(err, rpctypes.ErrMemberNotFound)
		})
		list, err := all.MemberList(ctx)
		require.NoError(t, err)
		require.Len(t, list.Members, 3)
		eventually(t, "the removed member to stop by itself", func() bool {
			return errors.As(c.servers[m.ID].Err(), new(*braid.ExpelledError))
		})
		delete(c.servers, m.ID)
	})
}

// All members stop and start: everything acknowledged is there, at the same revision.
func TestRealRestart(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, kind func(*Config)) {
		c := startReal(t, 3, kind)
		ctx := testContext(t)
		c.leader()
		all := c.client()
		const keys = 50
		for i := range keys {
			putUntil(t, ctx, all, fmt.Sprintf("k%02d", i), "v")
		}
		last, err := all.Get(ctx, "k", clientv3.WithPrefix())
		require.NoError(t, err)
		for _, m := range c.members {
			c.stop(m.ID)
		}
		for _, m := range c.members {
			c.start(m.ID)
		}
		for _, m := range c.members {
			one := c.client(m.ID)
			eventually(t, m.Name, func() bool {
				got, err := one.Get(ctx, "k", clientv3.WithPrefix())
				return err == nil && len(got.Kvs) == keys && got.Header.Revision == last.Header.Revision
			})
		}
		metrics := &fixture{addr: c.addrs[c.members[0].ID]}
		_, body := metrics.fetch(t, "/metrics")
		require.Regexp(t, `etcd_disk_wal_fsync_duration_seconds_count [1-9]`, body)
		require.Regexp(t, `etcd_network_peer_sent_bytes_total{To="[0-9a-f]+"} [1-9]`, body)
		require.Regexp(t, `etcd_network_known_peers{Local="[0-9a-f]+",Remote="[0-9a-f]+"} 1`, body)
		require.Regexp(t, `etcd_network_active_peers{Local="[0-9a-f]+",Remote="[0-9a-f]+"} 1`, body)
		require.Regexp(t, `etcd_network_peer_sent_failures_total{To="[0-9a-f]+"} \d`, body)
		require.Regexp(t, `etcd_network_client_grpc_received_bytes_total [1-9]`, body)
		require.Regexp(t, `etcd_network_client_grpc_sent_bytes_total [1-9]`, body)
	})
}

// Each member alone has no quorum: it refuses in time, with the reason.
func TestRealWithoutQuorum(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, kind func(*Config)) {
		c := startReal(t, 3, kind, func(c *Config) { c.RequestTimeout = time.Second })
		ctx := testContext(t)
		leader := c.leader()
		putUntil(t, ctx, c.client(), "k", "v")
		for _, m := range c.members {
			if m.ID != leader {
				c.stop(m.ID)
			}
		}
		f := &fixture{Server: c.servers[leader], addr: c.addrs[leader]}
		f.client = c.client(leader)
		eventually(t, "the leader to step down", func() bool { return f.self.Load().leader == 0 })
		code, body := f.fetch(t, "/health")
		require.Equal(t, 503, code)
		require.Contains(t, body, "NO LEADER")
		_, err := f.kvClient().Put(clientv3.WithRequireLeader(ctx), &pb.PutRequest{Key: []byte("k")})
		requireStatus(t, rpctypes.ErrGRPCNoLeader, err)
		_, err = f.kvClient().Range(ctx, &pb.RangeRequest{Key: []byte("k"), Serializable: true})
		require.NoError(t, err)
		start := time.Now()
		_, err = f.kvClient().Put(ctx, &pb.PutRequest{Key: []byte("k")})
		require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
		_, err = f.kvClient().Range(ctx, &pb.RangeRequest{Key: []byte("k")})
		require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
		require.Less(t, time.Since(start), 15*time.Second)
	})
}

// TestConcurrentUpdates has all members change the peer URLs of one at the same time, while it
// gets another name: every change is made, and none undoes what another one changed.
func TestConcurrentUpdates(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, kind func(*Config)) {
		// Changes go one after another through all instances, so on a busy machine the last one waits long.
		c := startReal(t, 3, kind, func(c *Config) { c.RequestTimeout = time.Minute })
		ctx := testContext(t)
		c.leader()
		moved := c.follower()
		named := func(name string) func() bool {
			return func() bool {
				for _, s := range c.servers {
					if m := s.cluster.find(uint64(moved)); m == nil || m.Name != name || len(m.ClientURLs) != 1 {
						return false
					}
				}
				return true
			}
		}
		eventually(t, "the first name", named(c.configs[moved].Name))
		c.stop(moved)
		c.configs[moved].Name = "another"
		c.start(moved)
		url := c.configs[moved].Node.Listen[0]
		failed := make(chan error)
		for n, m := range c.members {
			client := c.client(m.ID)
			go func() {
				var err error
				for i := 0; i < 5 && err == nil; i++ {
					_, err = client.MemberUpdate(ctx, uint64(moved),
						[]string{"http://" + url, fmt.Sprintf("http://127.0.0.1:%d", 10*n+i+1)})
				}
				failed <- err
			}()
		}
		for range c.servers {
			require.NoError(t, <-failed)
		}
		eventually(t, "the new name", named("another"))
	})
}
