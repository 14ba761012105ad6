package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/testsize"
)

// TestCraftALaggardHoldsNobodyUp: of five members one is down and one has missed tens of megabytes. While it catches
// up over a slow link it answers, but its rows arrive late: the others continue without it.
func TestCraftALaggardHoldsNobodyUp(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	const bound = 700 * time.Millisecond
	var longest time.Duration
	for range 3 { // a busy machine may be late, but not always
		if longest = pauseOfALaggard(t); longest < bound {
			return
		}
	}
	require.Less(t, longest, bound)
}

// pauseOfALaggard returns the longest time without an acknowledgement while a member catches up.
func pauseOfALaggard(t *testing.T) time.Duration {
	c := up(t, dataDir(t), "--nodes=5", "--protocol=craft", "--net=bandwidth=100mbit")
	defer c.stop()
	leader := c.leader()
	var followers []string
	for name := range c.alive(leader) {
		followers = append(followers, name)
	}
	at := strings.TrimPrefix(c.clients[leader], "http://")
	client := c.largeClient(at)
	kill(t, c.pids[followers[0]])
	c.next(launch.Died)
	late := c.pids[followers[1]]
	require.NoError(t, syscall.Kill(late, syscall.SIGSTOP))
	value := letters(256<<10, 1)
	for i := range 120 {
		eventually(t, "a large write", func(ctx context.Context) bool {
			_, err := client.Put(ctx, fmt.Sprintf("large%d", i), value)
			return err == nil
		})
	}

	w := write(t, c, at)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // values that are cut, occasionally
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			_, _ = client.Put(ctx, fmt.Sprintf("body%d", n%10), value[:64<<10])
			<-tick.C
		}
	}()
	eventually(t, "writes", func(context.Context) bool { return w.total() > 100 })
	require.NoError(t, syscall.Kill(late, syscall.SIGCONT))
	there := c.client(strings.TrimPrefix(c.clients[followers[1]], "http://"))
	eventually(t, "the late member has it all", func(ctx context.Context) bool {
		r, err := there.Get(ctx, "large119", clientv3.WithSerializable(), clientv3.WithKeysOnly())
		return err == nil && len(r.Kvs) == 1
	})
	before := w.total()
	eventually(t, "more writes", func(context.Context) bool { return w.total() > before+100 })
	stop()
	<-done
	w.end()
	t.Logf("longest time without an acknowledgement: %s", w.longestPause())
	w.check(t, c.client(at))
	return w.longestPause()
}
