package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid/internal/launch"
)

// TestALeaderThatIsStoppedHandsOver: within half a second another member leads, in every
// instance, as etcd's own tests demand.
func TestALeaderThatIsStoppedHandsOver(t *testing.T) {
	for name, flags := range map[string][]string{"raft": nil, "iss": {iss},
		"spread": {"--protocol=niagara", "--instances=3", "--leaders=spread"}} {
		t.Run(name, func(t *testing.T) {
			c := up(t, dataDir(t), append(flags, "--restart")...)
			leader := c.leader()
			var others []string
			for member, url := range c.clients {
				if member != leader {
					others = append(others, url)
				}
			}
			longest := longestPut(c.client(others...))
			require.NoError(t, syscall.Kill(c.pids[leader], syscall.SIGTERM))
			// Until it is back every write takes less than half a second, with all elections.
			require.Equal(t, leader, c.next(launch.Died).Member)
			require.Equal(t, leader, c.next(launch.Serving).Member)
			if name == "spread" {
				c.leaders("the member leads its instance again", spread)
			}
			worst, err := longest()
			require.NoError(t, err)
			t.Logf("the longest wait for a write was %s", worst)
			require.Less(t, worst, 500*time.Millisecond)
		})
	}
}

// longestPut puts repeatedly. longest ends that, and returns the longest latency.
func longestPut(client *clientv3.Client) (longest func() (time.Duration, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	var worst time.Duration
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil && failed == nil {
			began := time.Now()
			_, failed = client.Put(context.Background(), "a", "x")
			worst = max(worst, time.Since(began))
		}
	}()
	return func() (time.Duration, error) {
		cancel()
		<-done
		return worst, failed
	}
}

// TestARollingRestartFailsNothing: one member after the other is stopped and restarted, while clients write and read.
// None of their requests fails, also if the protocol changes all the time.
func TestARollingRestartFailsNothing(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"raft": nil, "iss": {iss}, "spread": {"--protocol=niagara", "--instances=3", "--leaders=spread"},
		"switches": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := up(t, dataDir(t), append(flags, "--restart")...)
			var done atomic.Int64
			var failed sync.Map
			ctx, cancel := context.WithCancel(t.Context())
			var workers sync.WaitGroup
			for i := range 8 {
				client := c.client()
				workers.Go(func() { load(ctx, client, i, &done, &failed) })
			}
			if name == "switches" {
				workers.Go(func() { c.switchOften(ctx) })
			}
			for _, name := range []string{"m1", "m2", "m3"} {
				pid := c.pids[name]
				require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
				require.Equal(t, name, c.next(launch.Died).Member)
				require.Equal(t, name, c.next(launch.Serving).Member)
				before := done.Load()
				eventually(t, "requests go on", func(context.Context) bool { return done.Load() > before+200 })
			}
			cancel()
			workers.Wait()
			failed.Range(func(what, err any) bool {
				t.Errorf("%v: %v", what, err)
				return true
			})
			t.Logf("%d requests", done.Load())
		})
	}
}

// switchOften changes the protocol until ctx ends. A switch may be refused while a member is away.
func (c *cluster) switchOften(ctx context.Context) {
	made := 0
	defer func() { c.t.Logf("%d switches", made) }()
	for ctx.Err() == nil {
		protocol := []string{"multi-paxos", "iss", "niagara", "lcr", "craft", "raft"}[made%6]
		_, stderr, code := do(c.t, "", "switch", protocol, "--json", "--endpoints", strings.Join(c.endpoints, ","))
		if code == 0 {
			made++
		} else {
			c.t.Logf("no switch to %s: %s", protocol, stderr)
		}
	}
}

// load writes and reads until ctx ends, and records the requests that etcd's client gave up: it retries those that
// are safe to retry.
func load(ctx context.Context, client *clientv3.Client, number int, done *atomic.Int64, failed *sync.Map) {
	for i := 0; ctx.Err() == nil; i++ {
		key := fmt.Sprintf("k%d", number)
		one, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		var err error
		if i%2 == 0 {
			_, err = client.Put(one, key, fmt.Sprint(i))
		} else {
			_, err = client.Get(one, key)
		}
		cancel()
		if err != nil {
			failed.Store(fmt.Sprintf("%s, request %d", key, i), err)
		}
		done.Add(1)
	}
}
