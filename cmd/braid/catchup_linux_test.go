package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/status"
	"github.com/braidlog/braid/internal/testsize"
)

// TestAFollowerArrivesUnderWrites: sending the missing log to a member takes longer than two truncations of the log.
// The member still catches up, with at most two snapshots.
func TestAFollowerArrivesUnderWrites(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	env := []string{"ETCD_SNAPSHOT_BYTES=1048576", "ETCD_KEEP_LOG_BYTES=67108864"}
	c := upWith(t, env, dataDir(t), "--net=bandwidth=100mbit")
	leader := c.leader()
	var follower string
	for name := range c.alive(leader) {
		follower = name
	}
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", c.pids[follower]))
	require.NoError(t, err)
	kill(t, c.pids[follower])
	c.next(launch.Died)

	client := c.client(strings.TrimPrefix(c.clients[leader], "http://"))
	value := letters(32<<10, 1)
	put := func(key string) {
		eventually(t, "a write", func(ctx context.Context) bool {
			_, err := client.Put(ctx, key, value)
			return err == nil
		})
	}
	for i := range 768 { // 24 MiB
		put(fmt.Sprintf("state%d", i))
	}
	eventually(t, "the leader has cut its log", func(context.Context) bool {
		return slices.ContainsFunc(c.members(), func(m status.Member) bool {
			return m.Name == leader && m.Instances[0].First > 100
		})
	})

	ctx, stop := context.WithCancel(t.Context())
	written := make(chan int)
	go func() { // 3 MiB a second
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		n := 0
		for ; ctx.Err() == nil; n++ {
			_, _ = client.Put(ctx, fmt.Sprintf("more%d", n%32), value)
			<-tick.C
		}
		written <- n
	}()
	sentSnapshots := func() int {
		log, err := os.ReadFile(filepath.Join(c.dir, leader+".log"))
		require.NoError(t, err)
		return bytes.Count(log, []byte(`msg="snapshot sent"`))
	}
	defer func() { t.Logf("%d snapshots sent", sentSnapshots()) }()
	again := strings.Split(strings.TrimSuffix(string(args), "\x00"), "\x00")
	beginWith(t, env, "", again[1:]...)
	there := c.client(strings.TrimPrefix(c.clients[follower], "http://"))
	eventually(t, "the member has what is written now", func(ctx context.Context) bool {
		now, err := client.Get(ctx, "more0", clientv3.WithKeysOnly())
		if err != nil {
			return false
		}
		r, err := there.Get(ctx, "more0", clientv3.WithSerializable(), clientv3.WithKeysOnly())
		return err == nil && len(r.Kvs) == 1 && len(now.Kvs) == 1 && r.Header.Revision+100 > now.Header.Revision
	})
	stop()
	sent := sentSnapshots()
	t.Logf("%d writes meanwhile", <-written)
	require.LessOrEqual(t, sent, 2)
	require.Positive(t, sent, "nothing was tested")
}
