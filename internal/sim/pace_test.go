package sim

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/fault"
)

// Limits of latency follow what operators have tuned so far, not the flags of members alone.
func TestLimitsFollowTunes(t *testing.T) {
	t.Parallel()
	s := newStage(t, 3, "", func(set *fault.Settings) {
		set.Protocol, set.Quickest = registry.Find("iss"), stageElection
		c := &set.Core
		c.MaxFrameEntries, c.MaxFrameBytes, c.MaxInflightBytes, c.MaxUncommittedBytes = 0, 1<<20, 1<<20, 1<<20
	})
	of := slices.IndexFunc(fault.Faults, func(f *fault.Fault) bool { return f.Name == "tune" })
	before := s.Set.PieceTime()
	require.Zero(t, s.Set.MostSkipWait())
	require.True(t, s.Set.Roomy(s.Members[0].Own))
	s.until("a tune of what idle leaders do", func() bool {
		if s.Leader() != nil {
			fault.Faults[of].Strike(s.World, nil)
		}
		return s.Set.MostSkipWait() > 0
	})
	require.Equal(t, before+2*s.Set.Heartbeat, s.Set.PieceTime())
	for _, m := range s.Members {
		require.False(t, s.Set.Roomy(m.Own), "a tuned detour takes longer")
	}
}
