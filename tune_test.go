package braid_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// TestWhatCannotBeTuned: a refusal names the setting, and nothing happened.
func TestWhatCannotBeTuned(t *testing.T) {
	t.Parallel()
	n := sole(t, []braid.Member{{ID: 1}})
	before := n.Status().Profile
	require.Equal(t, "100ms", before.Settings["election-timeout"])
	_, err := n.Tune(t.Context(), braid.Tuning{Set: map[string]string{"lease-reads": "true"}})
	require.ErrorAs(t, err, new(*braid.TuneError))
	require.Equal(t, before, n.Status().Profile)
	for _, s := range n.Tunables() {
		require.Equal(t, s.Fixed, s.Name == "order", s.Name)
		require.NotEmpty(t, s.Waits, s.Name)
	}
}
