package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/testsize"
)

// TestLargePutsOutliveTheLeader: the puts that a member collects while there is no leader exceed one frame. All of
// them succeed once there is one.
func TestLargePutsOutliveTheLeader(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	const puts, size = 100, 1 << 20
	c := up(t, dataDir(t))
	leader := c.leader()
	var clients []*clientv3.Client // of either survivor: one of them leads next
	for _, url := range c.alive(leader) {
		clients = append(clients, c.largeClient(url))
	}
	for _, client := range clients {
		_, err := client.Put(t.Context(), "before", "")
		require.NoError(t, err)
	}
	kill(t, c.pids[leader])
	c.next(launch.Died)

	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	value := letters(size, 1)
	errs := make([]error, puts*len(clients))
	var all sync.WaitGroup
	began := time.Now()
	for i := range errs {
		all.Go(func() {
			// On a busy machine this number of bytes takes longer than a request may. The put may be written or not.
			for errs[i] = rpctypes.ErrTimeout; errors.Is(errs[i], rpctypes.ErrTimeout); {
				_, errs[i] = clients[i%len(clients)].Put(ctx, fmt.Sprintf("large%03d", i), value)
			}
		})
	}
	all.Wait()
	t.Logf("%d puts of %d bytes took %s", len(errs), size, time.Since(began))
	failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	require.Empty(t, failed, "puts that failed")
	r, err := clients[0].Get(ctx, "large099")
	require.NoError(t, err)
	require.Equal(t, value, string(r.Kvs[0].Value))
}
