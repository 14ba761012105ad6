package member

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

func each(index protocol.Index, n int) (all []protocol.Index) {
	for range n {
		all = append(all, index)
	}
	return all
}

// TestReadGroupsEndOnce asks, answers, changes the instances and gives up in any order. It does
// each of these also twice, and late.
func TestReadGroupsEndOnce(t *testing.T) {
	shapes := [][]protocol.InstanceID{{1, 2, 3}, {1, 2}, {1}, {1, 4}}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var s ReadGroups
		groups := make([]*ReadGroup, 4)
		for i := range groups {
			groups[i] = &ReadGroup{}
		}
		ends := map[*ReadGroup]int{}
		now, added := rng.IntN(len(shapes)), protocol.Index(0)
		state := func() (shape []protocol.InstanceID, all []protocol.Index) {
			return shapes[now], each(added, len(shapes[now]))
		}
		for range 200 {
			g := groups[rng.IntN(len(groups))]
			shape, all := state()
			switch rng.IntN(6) {
			case 0, 1:
				require.Equal(t, ends[g] == 0, s.Ask(g, protocol.Round(rng.IntN(3)*100), shapes[rng.IntN(len(shapes))]))
			case 2, 3:
				if _, ready := s.Point(g, protocol.InstanceID(1+rng.IntN(4)), added+protocol.Index(rng.IntN(3)), protocol.Round(added), shape, all); ready {
					ends[g]++
				}
			case 4:
				now, added = rng.IntN(len(shapes)), added+1
				ready, void := s.Served(protocol.Round(added), shapes[now], each(added, len(shapes[now])))
				for _, g := range ready {
					ends[g]++
				}
				for _, g := range void {
					require.Zero(t, ends[g])
					s.Ask(g, protocol.Round(added), shapes[now])
				}
			case 5:
				if rng.IntN(8) == 0 && s.Fail(g) {
					ends[g]++
				}
			}
			under, seen := 0, map[*ReadGroup]bool{}
			for _, g := range groups {
				require.LessOrEqual(t, ends[g], 1, "ended twice")
				require.Equal(t, ends[g] == 1, g.ended)
				if g.placed {
					under++
				}
			}
			require.Equal(t, under, s.Under)
			for _, g := range s.waiting {
				require.False(t, g.ended || seen[g])
				seen[g] = true
			}
		}
	}
}
