package main

import (
	"cmp"
	"context"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/status"
	"github.com/braidlog/braid/internal/testsize"
)

const iss = "--protocol=iss"

// Each of five members is killed in turn and restarted, while clients of all of them put, read, transact and
// transfer. Then all are killed at once.
func TestISSUnderKills(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := up(t, dataDir(t), iss, "--nodes=5", "--restart")
	judge := c.checkedLoad()
	w, a := write(t, c), c.transfer()
	goesOn := func() {
		before := w.total()
		eventually(t, "writes", func(context.Context) bool { return w.total() > before+100 })
		a.more(20)
	}
	goesOn()
	for _, name := range []string{c.leader(), "m1", "m2", "m3", "m4", "m5"} {
		kill(t, c.pids[name])
		require.Equal(t, name, c.next(launch.Serving).Member)
		goesOn()
	}
	for _, pid := range c.pids {
		kill(t, pid)
	}
	for range c.pids {
		c.next(launch.Serving)
	}
	goesOn()
	judge()
	w.end()
	a.end()
	for _, endpoint := range c.endpoints {
		w.check(t, c.client(endpoint))
	}
	a.check(c.client())
}

// The member that keeps the leases' time is paused, the next one takes over, and then is paused too. Each comes back
// and finds all leases expired. A lease whose client renews it does not expire.
func TestISSLeaseOutlivesItsPausedPrimary(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := up(t, dataDir(t), iss)
	here := slices.MaxFunc(c.members(), func(a, b status.Member) int {
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	}).Name
	client := c.client(c.alive()[here])
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	granted, err := client.Grant(ctx, 2)
	require.NoError(t, err)
	coming, leave := context.WithCancel(ctx)
	defer leave()
	go keepAlive(coming, client, granted.ID)
	put, err := client.Put(ctx, "k", "v", clientv3.WithLease(granted.ID))
	require.NoError(t, err)
	watched := client.Watch(ctx, "k", clientv3.WithRev(put.Header.Revision+1))
	for range 2 {
		leader := c.leader()
		// On a busy machine both others may have been suspected. After some epochs one of them leads again.
		eventually(t, "a member with a lower id leads", func(ctx context.Context) bool {
			for range 20 {
				_, _ = client.Put(ctx, "x", "y")
			}
			leader = c.leader()
			return leader != here
		})
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
	leave()
	select {
	case r := <-watched:
		require.Len(t, r.Events, 1)
		require.Equal(t, clientv3.EventTypeDelete, r.Events[0].Type)
	case <-ctx.Done():
		require.Fail(t, "the lease does not end")
	}
}
