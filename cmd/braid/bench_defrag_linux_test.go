package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/internal/testsize"
)

// The database becomes smaller, and puts continue meanwhile on every member.
func TestBenchDefrag(t *testing.T) {
	testsize.Long(t)
	t.Parallel()
	stdout := ok(t, "bench", "defrag", "--mib=20", "--alone=200ms", "--json", "--data", diskDir(t))
	var c bench.DefragContest
	require.NoError(t, json.Unmarshal([]byte(stdout), &c))
	require.Len(t, c.Results, 1)
	r := c.Results[0]
	require.Empty(t, r.Violations)
	require.Greater(t, r.InUseMiB, 20.0)
	require.Less(t, r.AfterMiB, 0.8*r.BeforeMiB)
	require.Positive(t, r.Alone.Puts)
	require.Positive(t, r.During.Puts)
	require.Zero(t, r.During.Errors)
	require.Positive(t, r.During.LongestMS)
}
