package server

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid"
)

// Many clients of all members put keys with a prefix at once: as many succeed as the quota allows, on all members, also
// after restarts.
func TestRealQuotaOfAPrefix(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]func(*Config){
		"raft": func(*Config) {}, "iss": func(c *Config) { c.Node.Protocol = braid.ISS{} }, "niagara": spreadInstances,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startReal(t, 3, kind)
			ctx := testContext(t)
			c.leader()
			conn := c.client(c.members[0].ID).ActiveConnection()
			const most = 50
			set, err := SetPrefixQuota(ctx, conn, PrefixQuota{Prefix: "q/", Keys: most})
			require.NoError(t, err)
			require.Equal(t, []PrefixUsage{{PrefixQuota: PrefixQuota{Prefix: "q/", Keys: most}}}, set)
			var put atomic.Int64
			var clients sync.WaitGroup
			for i, m := range c.members {
				client := c.client(m.ID)
				for j := range 60 {
					clients.Go(func() {
						err := second(client.Put(ctx, fmt.Sprintf("q/%d/%d", i, j), "v"))
						if err == nil {
							put.Add(1)
						} else if status.Code(err) != codes.ResourceExhausted {
							t.Error(err)
						}
					})
				}
			}
			clients.Wait()
			require.EqualValues(t, most, put.Load())
			for _, m := range c.members {
				c.stop(m.ID)
				c.start(m.ID)
				client := c.client(m.ID)
				var got *clientv3.GetResponse
				eventually(t, "a read", func() bool {
					got, err = client.Get(ctx, "q/", clientv3.WithPrefix(), clientv3.WithCountOnly())
					return err == nil
				})
				require.EqualValues(t, most, got.Count)
				usages, err := PrefixQuotas(ctx, client.ActiveConnection())
				require.NoError(t, err)
				require.EqualValues(t, most, usages[0].UsedKeys)
			}
			for i := range 30 { // what one member deleted, another one knows
				require.NoError(t, second(c.client(c.members[i%3].ID).Delete(ctx, "q/", clientv3.WithPrefix())))
				var ops []clientv3.Op
				for j := range most {
					ops = append(ops, clientv3.OpPut(fmt.Sprint("q/", i, "/", j), "v"))
				}
				require.NoError(t, second(c.client(c.members[(i+1)%3].ID).Txn(ctx).Then(ops...).Commit()))
			}
			_, err = SetPrefixQuota(ctx, c.client(c.members[1].ID).ActiveConnection(), PrefixQuota{Prefix: "q/"})
			require.NoError(t, err)
		})
	}
}

func TestQuotaIsRefused(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	conn := f.client.ActiveConnection()
	for _, bad := range []PrefixQuota{{}, {Prefix: "a", Keys: -1}} {
		_, err := SetPrefixQuota(ctx, conn, bad)
		require.Equal(t, codes.InvalidArgument, status.Code(err))
	}
	f.fake.set(func(l *fakeLog) { l.refuse = braid.ErrOverloaded })
	_, err := SetPrefixQuota(ctx, conn, PrefixQuota{Prefix: "a", Keys: 1})
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	f.fake.set(func(l *fakeLog) { l.refuse = nil })
	_, err = SetPrefixQuota(ctx, conn, PrefixQuota{Prefix: "a", Keys: 1})
	require.NoError(t, err)
	require.NoError(t, second(f.client.Put(ctx, "a1", "v")))
	err = second(f.client.Put(ctx, "a2", "v"))
	require.ErrorContains(t, err, `quota of prefix "a" exceeded`)
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	usages, err := PrefixQuotas(ctx, conn)
	require.NoError(t, err)
	require.Equal(t, []PrefixUsage{{PrefixQuota: PrefixQuota{Prefix: "a", Keys: 1}, UsedBytes: 3, UsedKeys: 1}}, usages)
}

// Many keys are counted in several steps, which the primary lessor has ordered, before the quota is acknowledged.
func TestRealQuotaOfManyKeys(t *testing.T) {
	t.Parallel()
	c := startReal(t, 3)
	ctx := testContext(t)
	c.leader()
	client := c.client(c.members[0].ID)
	const keys = 40 * 120
	for i := range keys / 120 {
		var ops []clientv3.Op
		for j := range 120 {
			ops = append(ops, clientv3.OpPut(fmt.Sprintf("q/%d/%d", i, j), "v"))
		}
		require.NoError(t, second(client.Txn(ctx).Then(ops...).Commit()))
	}
	set, err := SetPrefixQuota(ctx, c.client(c.members[1].ID).ActiveConnection(), PrefixQuota{Prefix: "q/", Keys: keys})
	require.NoError(t, err)
	require.False(t, set[0].Counting)
	require.EqualValues(t, keys, set[0].UsedKeys)
	require.ErrorContains(t, second(client.Put(ctx, "q/more", "v")), "exceeded")
	require.NoError(t, second(client.Put(ctx, "q/1/1", "w")))
}
