package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/testsize"
)

// checkedLoad starts bench kv with --check, and returns once it writes: at its start it requests the status of every
// endpoint, and fails if one does not answer. judge ends it, and requires that the history is linearizable.
func (c *cluster) checkedLoad() (judge func() bench.KVResult) {
	t := c.t
	t.Helper()
	load, lines := begin(t, "", "bench", "kv", "--endpoints", strings.Join(c.endpoints, ","), "--clients=30",
		"--duration=5m", "--warmup=0s",
		"--mix=read=40%,update=35%,rmw=20%,scan=5%", "--distribution=conflict:30%,hot=3", "--key-space=200",
		"--val-size=16-256", "--check", "--json")
	client := c.client()
	eventually(t, "keys of the checked load", func(ctx context.Context) bool {
		r, err := client.Get(ctx, "check-", clientv3.WithPrefix(), clientv3.WithCountOnly())
		return err == nil && r.Count > 0
	})
	return func() (r bench.KVResult) {
		t.Helper()
		err := load.cmd.Process.Signal(os.Interrupt) // it checks the history so far
		code, stderr := load.exit()
		require.NoError(t, err, "bench kv has ended with %d: %s", code, stderr)
		require.Zero(t, code, stderr)
		require.NoError(t, json.Unmarshal([]byte(all(lines)), &r))
		t.Logf("%s", r.History)
		require.Equal(t, bench.Linearizable, r.History.Verdict)
		require.True(t, r.Verified)
		require.Greater(t, r.History.Operations, 2000)
		return r
	}
}

// The history of bench kv's clients is linearizable while the leader is killed.
func TestBenchKVChecksAKillOfTheLeader(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := up(t, dataDir(t))
	leader := c.leader()
	var others []string
	for name, url := range c.clients {
		if name != leader {
			others = append(others, strings.TrimPrefix(url, "http://"))
		}
	}
	client := c.client(others...)
	judge := c.checkedLoad()
	before := awaitRevision(t, client, 1000)
	kill(t, c.pids[leader])
	c.next(launch.Died)
	awaitRevision(t, client, before+1000)
	r := judge()
	require.Positive(t, r.Errors, "requests on their way to the leader have failed")
	require.Positive(t, r.Conflicts)
	require.Empty(t, r.KeysLeft)
	requireNoCheckKeys(t, client)
}

// requireNoCheckKeys requires that checked runs have removed their keys.
func requireNoCheckKeys(t *testing.T, client *clientv3.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	left, err := client.Get(ctx, "check-", clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(t, err)
	require.Zero(t, left.Count)
}

// awaitRevision waits until the store has reached a revision, and returns the current one.
func awaitRevision(t *testing.T, client *clientv3.Client, revision int64) (now int64) {
	t.Helper()
	eventually(t, "writes", func(ctx context.Context) bool {
		if r, err := client.Get(ctx, "nothing"); err == nil {
			now = r.Header.Revision
		}
		return now >= revision
	})
	return now
}

// all joins all lines.
func all(lines <-chan string) string {
	var text strings.Builder
	for line := range lines {
		text.WriteString(line + "\n")
	}
	return text.String()
}

// bench kv measures and stops a program of another kind of server.
func TestBenchKVOnTheMapService(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	dir := diskDir(t)
	for _, c := range []struct{ protocol, size string }{{"raft-map", "100"}, {"craft-map", "100-20000"}} {
		stdout := ok(t, "bench", "kv", "--protocol", c.protocol, "--clients=20", "--total=2000", "--write-ratio=0.5",
			"--val-size", c.size,
			"--distribution=zipf", "--load", "--key-space=100", "--check", "--json", "--data", dir)
		var r bench.KVResult
		require.NoError(t, json.Unmarshal([]byte(stdout), &r))
		require.True(t, r.Verified, "%s: %v", c.protocol, r.History)
		require.Equal(t, 3, r.Nodes)
		require.Equal(t, int64(2000), r.Commands)
		require.Zero(t, r.NotFound, "every key was put before the run")
		require.Positive(t, r.FsyncsPS)
		require.Positive(t, r.LeaderEgress)
	}
}
