package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/internal/testsize"
)

// Every phase has figures, and every watch its events or its cancellation.
func TestBenchWatch(t *testing.T) {
	testsize.Long(t)
	t.Parallel()
	stdout := ok(t, "bench", "watch", "--watchers=20", "--streams=3", "--prefixes=5", "--clients=10", "--duration=1s",
		"--warmup=100ms", "--history=2000", "--stalled=3", "--put-total=5000", "--put-rate=4000", "--json",
		"--data", diskDir(t))
	var c bench.WatchContest
	require.NoError(t, json.Unmarshal([]byte(stdout), &c))
	require.Len(t, c.Results, 1)
	r := c.Results[0]
	require.True(t, r.Verified, "%v", r.Violations)
	require.Equal(t, 3, r.Nodes)
	require.Len(t, r.MemoryMB, 3)
	var phases []string
	for _, p := range r.Phases {
		phases = append(phases, p.Phase)
		require.Positive(t, p.ThroughputPS, p.Phase)
		require.LessOrEqual(t, p.ThroughputPS, 4400.0, p.Phase)
		require.Len(t, p.MemoryMB, 3)
		if p.Phase == bench.PhaseAlone {
			require.Zero(t, p.Events)
		} else {
			require.Positive(t, p.Events, p.Phase)
		}
	}
	require.Equal(t, []string{bench.PhaseAlone, bench.PhaseWatched, bench.PhaseStalled, bench.PhaseCatchUp}, phases)
	require.GreaterOrEqual(t, r.Phases[3].Cancelled, 5, "watches that started before the compaction")
}
