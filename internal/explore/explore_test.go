package explore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// jugs hold 3 and 5 litres.
type jugs [2]uint8

type pour string

func tell(p pour) string { return string(p) }

// measure is the puzzle: fill, empty and pour, until the larger jug has the wanted amount.
func measure(want uint8) Space[jugs, pour] {
	size := jugs{3, 5}
	return Space[jugs, pour]{
		Each: func(s *jugs, yield func(pour, *jugs)) {
			for i := range s {
				full, empty, over := *s, *s, *s
				full[i], empty[i] = size[i], 0
				n := min(s[i], size[1-i]-s[1-i])
				over[i], over[1-i] = s[i]-n, s[1-i]+n
				yield(pour(fmt.Sprintf("fill %d", size[i])), &full)
				yield(pour(fmt.Sprintf("empty %d", size[i])), &empty)
				yield(pour(fmt.Sprintf("pour %d", size[i])), &over)
			}
		},
		Describe: tell,
		Judge: func(s *jugs) string {
			if s[1] == want {
				return "measured"
			}
			return ""
		},
	}
}

func TestTheShortestStoryIsFound(t *testing.T) {
	m := measure(4)
	m.Show = func(s *jugs) string { return fmt.Sprint(*s) }
	r := Search(m, 1000, nil)
	require.Equal(t, "measured", r.Wrong)
	require.Equal(t, []string{"fill 5", "pour 5", "empty 3", "pour 5", "fill 5", "pour 5", "[3 4]"}, r.Trace)
	require.Equal(t, 6, r.Depth)
	require.False(t, r.Whole)
}

func TestAllStatesAreSeen(t *testing.T) {
	steps := 0
	r := Search(measure(9), 1000, func(*jugs, pour) { steps++ })
	require.True(t, r.Whole)
	require.Equal(t, 16, r.States)
	require.Equal(t, 6*16, steps)
	require.False(t, Search(measure(9), 5, nil).Whole, "there are more than five")
}

// TestMirroredStatesAreOne: with two jugs of one size it does not matter which is which.
func TestMirroredStatesAreOne(t *testing.T) {
	count := Space[jugs, pour]{
		Each: func(s *jugs, yield func(pour, *jugs)) {
			for i := range s {
				if n := *s; n[i] < 3 {
					n[i]++
					yield("more", &n)
				}
			}
		},
		Judge: func(*jugs) string { return "" },
	}
	require.Equal(t, 16, Search(count, 1000, nil).States)
	count.Mirror = func(s *jugs) jugs { return jugs{s[1], s[0]} }
	require.Equal(t, 10, Search(count, 1000, nil).States)
	count.Normalize = func(s *jugs) bool { return s[0]+s[1] < 3 }
	require.Equal(t, 6, Search(count, 1000, nil).States, "nothing follows three litres")
}
