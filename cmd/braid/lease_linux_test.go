package main

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/testsize"
)

// keepAlive sends a keep-alive of a lease every 300 ms until ctx ends, whatever the answers.
func keepAlive(ctx context.Context, client *clientv3.Client, id clientv3.LeaseID) {
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		stream, err := pb.NewLeaseClient(client.ActiveConnection()).LeaseKeepAlive(ctx)
		if err != nil {
			continue
		}
		broken := make(chan struct{})
		go func() {
			defer close(broken)
			for err := error(nil); err == nil; {
				_, err = stream.Recv()
			}
		}()
		for open := true; open; {
			select {
			case <-tick.C:
				open = stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(id)}) == nil
			case <-broken:
				open = false
			}
		}
	}
}

// The leader of an instance that does not keep the leases' time is paused, so that nothing can be read or renewed for
// longer than a lease's TTL. Its client renews all the time: it stays. When the client stops, it expires.
func TestLeaseOutlivesAStalledInstance(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := up(t, dataDir(t), "--protocol=niagara", "--instances=3", "--leaders=spread")
	names := c.leaders("spread leaders", spread)
	client := c.client(c.alive()[names[0]])
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	granted, err := client.Grant(ctx, 1)
	require.NoError(t, err)
	coming, leave := context.WithCancel(ctx)
	defer leave()
	go keepAlive(coming, client, granted.ID)
	put, err := client.Put(ctx, "k", "v", clientv3.WithLease(granted.ID))
	require.NoError(t, err)
	watched := client.Watch(ctx, "k", clientv3.WithRev(put.Header.Revision+1))
	stalled := c.pids[names[1]]
	require.NoError(t, syscall.Kill(stalled, syscall.SIGSTOP))
	t.Cleanup(func() { syscall.Kill(stalled, syscall.SIGCONT) })
	began := time.Now()
	eventually(t, "a read without the member", func(ctx context.Context) bool {
		_, err := client.Get(ctx, "x")
		return err == nil && time.Since(began) > time.Second
	})
	require.NoError(t, syscall.Kill(stalled, syscall.SIGCONT))
	select {
	case r := <-watched:
		require.Fail(t, "the lease ended", "%v", r.Events)
	case <-time.After(2 * time.Second): // in which earlier decisions become active
	}
	leave()
	select {
	case r := <-watched:
		require.Len(t, r.Events, 1)
		require.Equal(t, clientv3.EventTypeDelete, r.Events[0].Type)
	case <-ctx.Done():
		require.Fail(t, "the lease does not end")
	}
}

// The member that keeps the leases' time is paused, another one takes over, and the first comes back and finds all
// leases expired. It must not revoke one that its client renews.
func TestLeaseOutlivesItsPausedPrimary(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := up(t, dataDir(t))
	here := map[bool]string{true: "m2", false: "m1"}[c.leader() == "m1"]
	client := c.client(c.alive()[here])
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	granted, err := client.Grant(ctx, 2)
	require.NoError(t, err)
	go keepAlive(ctx, client, granted.ID)
	put, err := client.Put(ctx, "k", "v", clientv3.WithLease(granted.ID))
	require.NoError(t, err)
	watched := client.Watch(ctx, "k", clientv3.WithRev(put.Header.Revision+1))
	for range 3 {
		leader := c.leader()
		if leader == here { // the client's own member must not be paused
			for _, m := range c.members() {
				if m.Name != here {
					ok(t, "ctl", "--endpoints", c.alive()[here], "move-leader", m.ID)
					break
				}
			}
			continue
		}
		require.NoError(t, syscall.Kill(c.pids[leader], syscall.SIGSTOP))
		t.Cleanup(func() { syscall.Kill(c.pids[leader], syscall.SIGCONT) })
		began := time.Now()
		eventually(t, "a write without the leader", func(ctx context.Context) bool {
			_, err := client.Put(ctx, "x", "y")
			return err == nil && time.Since(began) > 3*time.Second
		})
		require.NoError(t, syscall.Kill(c.pids[leader], syscall.SIGCONT))
		select {
		case r := <-watched:
			require.Fail(t, "the lease ended", "%v", r.Events)
		case <-time.After(time.Second): // in which it could do harm
		}
	}
}

// The member that keeps the leases' time is killed right after it answered a keep-alive, again and again. Each lease
// lives as long as the answer promised, and ends then, because its client does not come back.
func TestLeaseOutlivesItsKilledPrimary(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	for name, args := range map[string][]string{
		"raft": nil, "niagara": {"--protocol=niagara", "--instances=3", "--leaders=spread"}, "iss": {iss},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := up(t, dataDir(t), append(args, "--restart")...)
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			for range 3 {
				c.killPrimaryAfterAnswer(ctx)
			}
		})
	}
}

// killPrimaryAfterAnswer checks one lease. No call of its client goes through the member that is killed.
func (c *cluster) killPrimaryAfterAnswer(ctx context.Context) {
	t, primary := c.t, c.leader()
	var others []string
	for _, endpoint := range c.alive(primary) {
		others = append(others, endpoint)
	}
	client := c.client(others...)
	granted, err := client.Grant(ctx, 4)
	require.NoError(t, err)
	put, err := client.Put(ctx, "k", "v", clientv3.WithLease(granted.ID))
	require.NoError(t, err)
	watched := client.Watch(ctx, "k", clientv3.WithRev(put.Header.Revision+1))
	asked := time.Now()
	renewed, err := client.KeepAliveOnce(ctx, granted.ID)
	require.NoError(t, err)
	kill(t, c.pids[primary])
	require.Equal(t, primary, c.next(launch.Serving).Member)
	select {
	case r := <-watched:
		require.Len(t, r.Events, 1)
		require.Equal(t, clientv3.EventTypeDelete, r.Events[0].Type)
		require.GreaterOrEqual(t, time.Since(asked), time.Duration(renewed.TTL)*time.Second)
	case <-ctx.Done():
		require.Fail(t, "the lease does not end")
	}
}
