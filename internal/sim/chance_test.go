package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoTwoSourcesOfChanceAreEqual: two that draw the same numbers decide two things as one. The first
// draws are compared too, because a salt or the id of a member may make two alike.
func TestNoTwoSourcesOfChanceAreEqual(t *testing.T) {
	named, drawn := map[source]string{}, map[[2]uint64]string{}
	for name, s := range sources { // any order: all are compared
		require.Empty(t, named[s], "%s", name)
		named[s] = name
		for _, seed := range []uint64{0, 1, 2, 1000, 1 << 40} {
			for _, member := range []uint64{0, 1, 2, 9} {
				d := chanceOf(seed^member<<32, name)
				first := [2]uint64{d.rng.Uint64(), d.rng.Uint64()}
				who := fmt.Sprintf("%s, seed %d, member %d", name, seed, member)
				require.Empty(t, drawn[first], who)
				drawn[first] = who
			}
		}
	}
}

// TestEverySourceOfChanceHasOneUse: a name that two places use is one stream with two purposes.
func TestEverySourceOfChanceHasOneUse(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	uses, call := map[string]int{}, regexp.MustCompile(`chanceOf\([^"\n]*"([^"]+)"\)`)
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		if f != "chance.go" {
			require.NotContains(t, string(text), "rand.New(", "%s: chance comes from chanceOf", f)
		}
		for _, m := range call.FindAllStringSubmatch(string(text), -1) {
			uses[m[1]]++
		}
	}
	for name := range sources { // any order: all are looked at
		require.Equal(t, 1, uses[name], "uses of %s", name)
	}
	require.Len(t, uses, len(sources))
}
