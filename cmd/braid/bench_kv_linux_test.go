package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/internal/testsize"
)

// The loads of bench kv on a cluster of processes, by the command.
func TestBenchKVLoads(t *testing.T) {
	t.Parallel()
	c := up(t, dataDir(t), "--max-request-bytes=2097152")
	endpoints := strings.Join(c.endpoints, ",")
	load := func(t *testing.T, args ...string) *bench.KVResult {
		t.Helper()
		stdout := ok(t, append([]string{"bench", "kv", "--endpoints", endpoints, "--json"}, args...)...)
		var r bench.KVResult
		require.NoError(t, json.Unmarshal([]byte(stdout), &r))
		return &r
	}

	t.Run("ycsb", func(t *testing.T) {
		kinds := map[string][]string{
			"A": {"read", "update"}, "B": {"read", "update"}, "C": {"read"},
			"D": {"read", "insert"}, "E": {"insert", "scan"}, "F": {"read", "rmw"},
		}
		for name, want := range kinds {
			r := load(t, "--ycsb", name, "--clients=10", "--total=600", "--key-space=200", "--val-size=32", "--key-prefix="+name)
			var got []string
			count := int64(0)
			for _, o := range r.Operations {
				got, count = append(got, o.Kind), count+o.Count
			}
			require.Equal(t, want, got, name)
			require.Equal(t, r.Commands, count, name)
			require.Equal(t, int64(600), r.Commands+r.Errors, name)
			if r.Errors == 0 { // a slow machine may have changed the leader
				require.Zero(t, r.NotFound, "%s: every key was put before the run", name)
			}
		}
	})

	t.Run("grants", func(t *testing.T) {
		r := load(t, "--mix=grant=50%,update=50%", "--clients=10", "--total=600")
		require.Equal(t, int64(600), r.Commands+r.Errors)
		require.Len(t, r.Operations, 2)
		require.Equal(t, "grant", r.Operations[1].Kind)
		require.Positive(t, r.Operations[1].Count)
	})

	t.Run("open loop", func(t *testing.T) {
		const rate, clients = 300, 20
		r := load(t, "--rate=300", "--clients=20", "--duration=2s", "--warmup=0s")
		require.Equal(t, "rate", r.Mode)
		require.InDelta(t, rate, r.RatePS, 0)
		// Requests due by the end were completed, are in progress, or are in the backlog.
		due := rate * r.DurationS
		require.Greater(t, float64(r.Commands+r.Errors+r.Backlog+clients), 0.9*due)
		require.Less(t, float64(r.Commands), 1.1*due)
		require.InDelta(t, r.Commands, r.LatencySamples, clients) // some end between two readings
	})

	t.Run("throttle", func(t *testing.T) {
		r := load(t, "--throttle=200", "--clients=20", "--duration=2s", "--warmup=0s")
		require.Equal(t, "closed", r.Mode)
		require.InDelta(t, 200, r.ThrottlePS, 0)
		require.Positive(t, r.Commands)
		require.Less(t, float64(r.Commands), 1.1*200*r.DurationS+1)
	})

	t.Run("batch", func(t *testing.T) {
		r := load(t, "--batch=50", "--clients=4", "--total=2000", "--key-prefix=batch", "--key-size=12")
		require.Equal(t, 50, r.Batch)
		require.EqualValues(t, 2000, r.Commands+r.Errors)
		require.EqualValues(t, r.Commands/50, r.LatencySamples)
	})

	t.Run("check", func(t *testing.T) {
		client := c.client()
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		defer cancel()
		_, err := client.Put(ctx, "check0", "not of the run, though its key comes next")
		require.NoError(t, err)
		r := load(t, "--check", "--ycsb=F", "--clients=10", "--total=500", "--key-space=50")
		require.True(t, r.Verified, "%v", r.History)
		require.Empty(t, r.KeysLeft)
		requireNoCheckKeys(t, client)
		kept, err := client.Get(ctx, "check0")
		require.NoError(t, err)
		require.Len(t, kept.Kvs, 1)
	})

	t.Run("too large", func(t *testing.T) { tooLarge(t, endpoints, c.client()) })
}

// Values that servers refuse end the run at once, and leave no keys.
func tooLarge(t *testing.T, endpoints string, client *clientv3.Client) {
	began := time.Now()
	stdout, stderr, code := do(t, "", "bench", "kv", "--endpoints", endpoints, "--val-size=8-4MiB", "--clients=4",
		"--duration=5m", "--check")
	require.Equal(t, exitFailed, code, stdout)
	require.Contains(t, stderr, "--max-request-bytes")
	require.NotContains(t, stderr, "not removed")
	require.Less(t, time.Since(began), testTimeout)
	requireNoCheckKeys(t, client)
}

// The limit is as many processes as members, which answer every request.
func TestBenchKVLimit(t *testing.T) {
	testsize.Long(t)
	t.Parallel()
	stdout := ok(t, "bench", "kv", "--protocol=limit", "--write-ratio=0.5", "--val-size=16-2MiB", "--key-space=9",
		"--clients=6", "--total=300", "--load", "--json", "--data", diskDir(t))
	var r bench.KVResult
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.Equal(t, bench.Limit, r.Protocol)
	require.Equal(t, 3, r.Nodes)
	require.Len(t, r.Endpoints, 3)
	require.Equal(t, int64(300), r.Commands)
	require.Zero(t, r.Errors, r.ErrorSample)
	require.Zero(t, r.NotFound, "every get has a value")
	require.Positive(t, r.CPUMicrosOp)
}

// Servers that bench kv starts itself accept its values, of any size.
func TestBenchKVLargeValues(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	dir := diskDir(t)
	stdout := ok(t, "bench", "kv", "--protocol=raft", "--peer=multi-paxos", "--rounds=1", "--val-size=2MiB",
		"--key-space=2", "--clients=1",
		"--write-ratio=0.7", "--total=6", "--json", "--data", dir)
	var c bench.KVContest
	require.NoError(t, json.Unmarshal([]byte(stdout), &c))
	require.Len(t, c.Results, 2)
	for _, r := range c.Results {
		require.Equal(t, int64(6), r.Commands+r.Errors, r.Protocol)
		require.Positive(t, r.Commands, r.ErrorSample)
	}
}
