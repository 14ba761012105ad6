package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/internal/testsize"
)

func benchSwitch(t *testing.T, args ...string) (r bench.SwitchResult) {
	t.Helper()
	dir := diskDir(t)
	stdout := ok(t, append([]string{"bench", "switch", "--quick", "--json", "--data", dir}, args...)...)
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.True(t, r.Verified)
	require.Zero(t, r.FailedSwitches)
	for _, p := range r.Pairs {
		require.Positive(t, p.PauseMS)
		require.Positive(t, p.AfterPS)
		require.Zero(t, p.Errors, p.ErrorSample)
	}
	return r
}

// One cluster goes through the switches, and its history is checked.
func TestBenchSwitch(t *testing.T) {
	testsize.Long(t)
	t.Parallel()
	r := benchSwitch(t, "--from=raft,iss", "--to=raft,iss", "--duration=300ms", "--settle=200ms")
	require.Len(t, r.Pairs, 2)
	require.Equal(t, 1, r.Clusters)
	require.Equal(t, bench.Linearizable, r.Histories[0].Verdict)
}

// Each protocol becomes each other one, also with large values and transactions, and is compared with a cluster that
// began with it.
func TestBenchSwitchAll(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	all := bench.Switchable()
	r := benchSwitch(t, "--large-share=0.05", "--transactions=0.3", "--nodes=5", "--duration=300ms", "--settle=200ms")
	require.Len(t, r.Pairs, len(all)*(len(all)-1))
	r = benchSwitch(t, "--from=raft", "--to=iss", "--born", "--net=latency=5ms")
	require.Positive(t, r.Pairs[0].BornPS)
	require.InDelta(t, r.Pairs[0].AfterPS/r.Pairs[0].BornPS, r.Pairs[0].AfterOfBorn, 1e-9)
	require.InDelta(t, 10, r.RoundTripMS, 0)
}

func TestBenchSwitchFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--from=etcd":             `protocol "etcd": there are raft`,
		"--from=raft --to=raft":   "nothing to switch",
		"--val-size=1-2":          "--val-size 1-2: must be one size",
		"--large-size=x":          "--large-size",
		"--net=nonsense":          "--net",
		"--clients=1":             "1 clients for 3 members",
		"--timeout=0s":            "times must be positive",
		"--reads=1 --keep --born": "no puts left",
	} {
		_, stderr, code := call(append([]string{"bench", "switch"}, strings.Fields(args)...)...)
		require.Equal(t, exitUsage, code, args)
		require.Contains(t, stderr, want, args)
	}
}
