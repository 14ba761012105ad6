package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/internal/testsize"
)

// Every kind of operation is made, and every watch receives its events.
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
	asked := map[string]float64{}
	for _, k := range r.Kinds {
		asked[k.Kind] = k.AskedPS
		if k.AskedPS >= 5 || k.Kind == "list page" {
			require.Positive(t, k.DonePS, k.Kind)
			require.Positive(t, k.LatencyMS.P99, k.Kind)
		}
	}
	require.InDelta(t, 10, asked["lease update"], 1e-9)
	require.InDelta(t, 50, asked["pod create"], 1e-9)
	require.InDelta(t, 100, asked["pod status"], 1e-9)
	require.InDelta(t, 50, asked["pod delete"], 1e-9)
	require.InDelta(t, 200, asked["event"], 1e-9)
	for _, w := range r.Watches {
		if w.Resource != "/registry/minions/" { // updated every minute
			require.Positive(t, w.DelayMS.P99, w.Resource)
		}
	}
}
