package setting

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDifferences(t *testing.T) {
	before, err := Parse("a=1", "b=2", "c=3")
	require.NoError(t, err)
	now, err := Parse("a=1", "b=4", "d=5")
	require.NoError(t, err)
	require.Equal(t, "b=4 (was 2), d=5 (was default), c=default (was 3)", Differences(before, now))
	require.Empty(t, Differences(now, now))
}
