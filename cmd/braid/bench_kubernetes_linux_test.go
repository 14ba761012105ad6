package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/internal/testsize"
)

// Every kind of operation is asked at its rate, and the watches receive their events.
func TestBenchKubernetes(t *testing.T) {
	testsize.Long(t)
	t.Parallel()
	stdout := ok(t, "bench", "kubernetes", "--objects=20", "--pods-per-node=30", "--churn=10", "--rate=5",
		"--list-every=1s", "--duration=2s", "--warmup=500ms", "--json", "--data", diskDir(t))
	var c bench.KubernetesContest
	require.NoError(t, json.Unmarshal([]byte(stdout), &c))
	require.Len(t, c.Results, 1)
	r := c.Results[0]
	require.True(t, r.Verified, "%v", r.Violations)
	require.Equal(t, 3, r.Nodes)
	require.Len(t, r.MemoryMB, 3)
	asked, done := map[string]float64{}, map[string]float64{}
	for _, k := range r.Kinds {
		asked[k.Kind], done[k.Kind] = k.AskedPS, k.DonePS
		require.Equal(t, k.DonePS > 0, k.LatencyMS.P99 > 0, k.Kind)
	}
	// A slow machine falls behind, the less with operations that depend on no others.
	require.Positive(t, done["event"])
	require.Positive(t, done["pod create"])
	require.InDelta(t, 10, asked["lease update"], 1e-9)
	require.InDelta(t, 50, asked["pod create"], 1e-9)
	require.InDelta(t, 100, asked["pod status"], 1e-9)
	require.InDelta(t, 50, asked["pod delete"], 1e-9)
	require.InDelta(t, 200, asked["event"], 1e-9)
	var events float64
	for _, w := range r.Watches {
		events += w.EventsPS
		require.Equal(t, w.EventsPS > 0, w.DelayMS.P99 > 0, w.Resource)
	}
	require.Positive(t, events)
}
