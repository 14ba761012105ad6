package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/internal/testsize"
)

// The restored data has all keys, and an increment is smaller than a whole backup.
func TestBenchBackup(t *testing.T) {
	testsize.Long(t)
	t.Parallel()
	stdout := ok(t, "bench", "backup", "--nodes=1", "--mib=5", "--val-size=16-64KiB", "--json", "--data", diskDir(t))
	var c bench.BackupContest
	require.NoError(t, json.Unmarshal([]byte(stdout), &c))
	require.Len(t, c.Results, 1)
	r := c.Results[0]
	require.Empty(t, r.Violations)
	require.Positive(t, r.Keys)
	for _, f := range []bench.BackupFigures{r.First, r.Again} {
		require.Positive(t, f.BackupS)
		require.Positive(t, f.FileMiB)
		require.Positive(t, f.RestoreS)
	}
	require.Greater(t, r.First.FileMiB, 5.0)
	require.Less(t, r.Again.FileMiB, r.First.FileMiB/10)
}
