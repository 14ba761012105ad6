package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/bench"
)

const programEnv = "BRAID_RIVALS_TEST_PROGRAM"

// TestMain makes the test's executable act as the program.
func TestMain(m *testing.M) {
	if os.Getenv(programEnv) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestLibrariesAreThoseThatBenchKnows(t *testing.T) {
	require.Equal(t, bench.Protocols(true), slices.Sorted(maps.Keys(libraries)))
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"kv"}, {"log", "more"}, {"etcd-member"}, {"etcd-member", "--colour"}} {
		require.Error(t, run(t.Context(), args), "%q", args)
	}
}

// Every library must keep its promises in every mode, and fill in every figure.
func TestLibraries(t *testing.T) {
	t.Setenv(programEnv, "1")
	for name := range libraries {
		for _, l := range []bench.Load{{Inflight: 2000}, {Proposers: 50}} {
			t.Run(name+"/"+l.Mode(), func(t *testing.T) {
				l.Payload, l.Warmup, l.Duration = 16, 100*time.Millisecond, 500*time.Millisecond
				c := bench.LogConfig{Protocol: name, Nodes: 3, Load: l, Dir: t.TempDir(), Rivals: os.Args[0]}
				r, err := bench.RunLog(t.Context(), c)
				require.NoError(t, err)
				require.True(t, r.Verified, "%v", r.Violations)
				require.Zero(t, r.Errors, r.ErrorSample)
				require.Positive(t, r.ThroughputPS)
				require.Positive(t, r.LatencyMS.P50)
				require.Positive(t, r.CPUMicrosOp)
				require.Positive(t, r.FsyncsPS)
				require.GreaterOrEqual(t, r.LeaderEgress, 2*16.0, "two followers need every command")
				left, err := os.ReadDir(c.Dir)
				require.NoError(t, err)
				require.Empty(t, left)
			})
		}
	}
}

func TestLargeCommands(t *testing.T) {
	for name, open := range libraries {
		t.Run(name, func(t *testing.T) {
			l := bench.Load{Payload: 256 << 10, Inflight: 8, Duration: 500 * time.Millisecond}
			r, err := bench.RunLogOn(t.Context(), bench.LogConfig{Protocol: name, Nodes: 3, Load: l, Dir: t.TempDir()}, open)
			require.NoError(t, err)
			require.True(t, r.Verified, "%v", r.Violations)
			// The slower follower may be behind by what is in flight to it, at most 32 MiB.
			copied := float64(l.Payload) * float64(r.Commands-int64(l.Inflight))
			require.GreaterOrEqual(t, r.LeaderEgress*float64(r.Commands), copied+max(0, copied-32<<20))
		})
	}
}

// Runs of a rival alternate with braid's, and report the same figures.
func TestContest(t *testing.T) {
	t.Setenv(programEnv, "1")
	l := bench.Load{Payload: 16, Proposers: 20, Warmup: 50 * time.Millisecond, Duration: 300 * time.Millisecond}
	dir := t.TempDir()
	c, err := bench.RunLogContest(t.Context(), []bench.LogConfig{
		{Protocol: "raft", Nodes: 3, Load: l, Dir: dir},
		{Protocol: "etcd-raft", Nodes: 3, Load: l, Dir: dir, Rivals: os.Args[0]},
	}, 2)
	require.NoError(t, err)
	require.Len(t, c.Runs, 2)
	require.Len(t, c.Runs[1], 2)
	require.Len(t, c.Ratios, 1)
	require.Equal(t, "etcd-raft", c.Ratios[0].Protocol)
	require.Positive(t, c.Ratios[0].Throughput)
	text, err := json.Marshal(c)
	require.NoError(t, err)
	require.Contains(t, string(text), `"protocol":"etcd-raft"`)
}
