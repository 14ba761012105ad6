package server

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid"
)

// TestAPutThatNobodyWaitsForIsWithdrawn: clients cancel, and the server's own timeout ends, while there is no leader.
// None of these puts takes effect when there is one; a client that waits gets its answer.
func TestAPutThatNobodyWaitsForIsWithdrawn(t *testing.T) {
	t.Parallel()
	c := startReal(t, 3, func(c *Config) { c.RequestTimeout = 600 * time.Millisecond })
	first := c.members[0].ID
	kv := c.client(first)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// A busy machine may need longer than the server gives a request.
	succeeds := func(key string) {
		require.Eventually(t, func() bool {
			_, err := kv.Put(ctx, key, "x")
			return err == nil
		}, time.Minute, time.Millisecond, key)
	}
	succeeds("before")
	c.stop(c.members[1].ID)
	c.stop(c.members[2].ID)
	log := c.servers[first].log
	changes := log.Changes(ctx)
	for log.Status().Leader() != 0 {
		<-changes
	}
	put := func(within time.Duration, key string) error {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		_, err := kv.Put(ctx, key, "x")
		return err
	}
	for i := range 5 {
		require.Error(t, put(20*time.Millisecond, fmt.Sprint("short ", i)))
	}
	require.Error(t, put(time.Minute, "the server's time"))
	require.Eventually(t, func() bool {
		return c.servers[first].metrics.Pending.Load() == 0
	}, time.Minute, time.Millisecond, "calls have ended")
	c.start(c.members[1].ID)
	require.NoError(t, log.Read(ctx, braid.ReadOptions{}))
	succeeds("after")
	got, err := kv.Get(ctx, "", clientv3.WithPrefix())
	require.NoError(t, err)
	var keys []string
	for _, kv := range got.Kvs {
		keys = append(keys, string(kv.Key))
	}
	require.Equal(t, []string{"after", "before"}, keys)
}
