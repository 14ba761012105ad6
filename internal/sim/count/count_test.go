package count

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	storms = New("storms", "heavy storms", Staged)
	drops  = New("drops", "drops of rain")
)

func TestCounts(t *testing.T) {
	var a, b Counts
	require.Zero(t, a.Of(storms))
	a.Add(drops, 3)
	b.Add(storms, 1)
	b.Add(drops, 2)
	a.Merge(&b)
	require.Equal(t, 5, a.Of(drops))
	require.Equal(t, 1, a.Of(storms))
	require.Equal(t, "         5  drops of rain\n         1  heavy storms\n", a.String())
	require.Equal(t, "     none:  drops of rain, heavy storms\n", Counts{}.String())
	var list strings.Builder
	writeList(&list, "none:", []string{strings.Repeat("x", 93), "y"})
	require.Equal(t, "none: "+strings.Repeat("x", 93)+",\n      y\n", list.String())
	text, err := json.Marshal(struct{ Events Counts }{a})
	require.NoError(t, err)
	require.JSONEq(t, `{"Events":{"drops":5,"storms":1}}`, string(text))
	require.Equal(t, []*Counter{drops, storms}, All())
}

func TestACounterIsDeclaredOnce(t *testing.T) {
	require.Panics(t, func() { New("drops", "other drops") })
	require.Panics(t, func() { New("other_drops", "drops of rain") })
	require.Len(t, counters, 2)
}

// TestCountingAllocatesOnce: counters are counted in every step of a run.
func TestCountingAllocatesOnce(t *testing.T) {
	var s Counts
	s.Add(storms, 1)
	require.Zero(t, testing.AllocsPerRun(100, func() { s.Add(drops, 1) }))
}
