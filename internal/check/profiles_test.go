package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneProfileForEachVersion(t *testing.T) {
	p := NewProfiles(1, "a=1")
	require.NoError(t, p.Decide(1, "a=1"), "a change of members keeps it")
	require.NoError(t, p.Decide(2, "a=2"))
	require.EqualValues(t, 2, p.Last())
	require.NoError(t, p.Has(1, "a=1"), "a member may be behind")
	require.NoError(t, p.Has(2, "a=2"))
	require.ErrorContains(t, p.Has(2, "a=1"), "elsewhere")
	require.ErrorContains(t, p.Has(3, "a=2"), "not decided")
	require.ErrorContains(t, p.Decide(4, "a=4"), "after version 2")
	require.ErrorContains(t, p.Decide(1, "a=1"), "after version 2")
	require.ErrorContains(t, p.Decide(2, "a=3"), "elsewhere")
}
