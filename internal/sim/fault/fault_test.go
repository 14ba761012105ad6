package fault

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryFaultIsOnThePage checks that the page on simulation names every fault.
func TestEveryFaultIsOnThePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/internals/simulation.md")
	require.NoError(t, err)
	names := map[string]bool{}
	for _, f := range Faults {
		require.NotNil(t, f.Strike, f.Name)
		require.False(t, names[f.Name], "two faults are named %s", f.Name)
		names[f.Name] = true
		require.Contains(t, string(page), "`"+f.Name+"`")
	}
}
