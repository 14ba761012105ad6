package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/fault"
)

// TestNoTwoSourcesOfChanceAreEqual: with two equal sources, two choices would not be independent. The first draws are
// compared too, because a salt or the id of a member may make two sources equal.
func TestNoTwoSourcesOfChanceAreEqual(t *testing.T) {
	drawn, known := map[[2]uint64]string{}, map[string]bool{}
	for _, s := range draw.All() {
		known[s.Name()] = true
		for _, seed := range []uint64{0, 1, 2, 1000, 1 << 40} {
			for _, member := range []uint64{0, 1, 2, 9} {
				d := s.Of(seed ^ member<<32)
				first := [2]uint64{d.Rand.Uint64(), d.Rand.Uint64()}
				who := fmt.Sprintf("%s, seed %d, member %d", s.Name(), seed, member)
				require.Empty(t, drawn[first], who)
				drawn[first] = who
			}
		}
	}
	for _, name := range draw.Old() {
		require.True(t, known[name], "%s: a source that saved seeds know is declared no more", name)
	}
}

// TestAllChanceHasASource: a separate generator may draw the same numbers as a source.
func TestAllChanceHasASource(t *testing.T) {
	var files []string
	for _, folder := range []string{".", "fault", "client", "node"} {
		some, err := filepath.Glob(filepath.Join(folder, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, some, folder)
		files = append(files, some...)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(f, "_test.go") || !strings.Contains(string(text), "rand.New("), f)
	}
}

// TestOneFaultMoreLeavesAllOtherDrawsAlone: saved seeds give the same runs when a fault is added.
func TestOneFaultMoreLeavesAllOtherDrawsAlone(t *testing.T) {
	settings := func(seed uint64, protocol string) fault.Settings {
		o := fault.Options{Seed: seed, Nodes: 5, Protocol: protocol}
		return fault.DrawSettings(&o, fault.RunChance.Of(seed).Rand)
	}
	more := &fault.Fault{Name: "frost", Source: draw.New("frost")}
	more.Draw = func(s *fault.Settings, d draw.Chance) {
		if d.Yes(0.5) {
			s.Faults[more] = time.Second
		}
	}
	before := fault.Faults
	defer func() { fault.Faults = before }()
	found := 0
	for seed := uint64(1); seed <= 100; seed++ {
		for _, protocol := range []string{"raft", "craft", "niagara"} {
			fault.Faults = before
			want := settings(seed, protocol)
			fault.Faults = append(fault.Faults[:len(fault.Faults):len(fault.Faults)], more)
			got := settings(seed, protocol)
			if got.Faults[more] > 0 {
				found++
			}
			delete(got.Faults, more)
			require.Equal(t, &want, &got, "%s, seed %d", protocol, seed)
		}
	}
	require.Greater(t, found, 100, "the fault is drawn")
	require.Less(t, found, 200)
}
