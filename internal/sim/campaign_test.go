package sim

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/world"
	"github.com/braidlog/braid/internal/testsize"
)

// A run that does not matter any more is abandoned, and its result is ignored.
func TestAbandonedRuns(t *testing.T) {
	o := fault.Options{Seed: 1, Nodes: 3}
	whole := Run(o)
	require.False(t, whole.abandoned)
	asked := 0
	o.Pointless = func() bool { asked++; return asked == 3 }
	res := Run(o)
	require.True(t, res.abandoned)
	require.Nil(t, res.Violation)
	require.Equal(t, 3*world.StepsAsked, res.Steps)
	require.Greater(t, whole.Steps, res.Steps)

	o.Pointless = func() bool { return false }
	require.Equal(t, whole.Hash, Run(o).Hash, "to be asked changes a run")
}

// With any number of workers, a campaign finds the first seed that fails.
func TestCampaignFindsTheFirstFailure(t *testing.T) {
	testsize.Long(t)
	failed := func(first, last uint64, workers int) (seeds []uint64) {
		c := Campaign{Protocol: fault.DefaultProtocol, Nodes: 3, First: first, Last: last, Mutant: "no-prev-check",
			Workers: workers}
		sum, err := c.Run(nil)
		require.NoError(t, err)
		for _, f := range sum.Failed {
			seeds = append(seeds, f.Seed)
		}
		return seeds
	}
	const last = 80
	first := uint64(20)
	for len(failed(first, first, 1)) == 0 {
		first++
		require.LessOrEqual(t, first, uint64(last), "the mutant is found")
	}
	require.Greater(t, first, uint64(20), "seeds that do not fail come before it")
	for workers := 1; workers <= 4; workers++ {
		require.Equal(t, first, slices.Min(failed(20, last, workers)), "%d workers", workers)
	}
}
