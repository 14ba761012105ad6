package intake

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
			groups[i] = &ReadGroup{Barrier: i == 0}
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
				require.Equal(t, ends[g] == 0, s.Ask(g, protocol.Position(rng.IntN(3)*100),
					shapes[rng.IntN(len(shapes))]))
			case 2, 3:
				if _, ready := s.Point(g, protocol.InstanceID(1+rng.IntN(4)), added+protocol.Index(rng.IntN(3)), false,
					protocol.Position(added), shape, all); ready {
					ends[g]++
				}
			case 4:
				now, added = rng.IntN(len(shapes)), added+1
				ready, void := s.Served(protocol.Position(added), shapes[now], each(added, len(shapes[now])))
				for _, g := range ready {
					ends[g]++
				}
				for _, g := range void {
					require.Zero(t, ends[g])
					s.Ask(g, protocol.Position(added), shapes[now])
				}
			case 5:
				if rng.IntN(8) == 0 && s.Fail(g) {
					ends[g]++
				}
			}
			under, seen := [2]int{}, map[*ReadGroup]bool{}
			for _, g := range groups {
				require.LessOrEqual(t, ends[g], 1, "ended twice")
				require.Equal(t, ends[g] == 1, g.ended)
				if g.placed {
					under[kindOf(g.Barrier)]++
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

// Readers who want barriers have groups of their own: plain readers do not wait for these.
func TestBarriersHaveGroupsOfTheirOwn(t *testing.T) {
	var q ReadQueue
	plain, barrier := &ReadGroup{}, &ReadGroup{Barrier: true}
	q.Gather(plain)
	require.True(t, q.Gathering(false))
	require.False(t, q.Gathering(true))
	q.Gather(barrier)
	_, gathered := q.Take([2]int{0, maxReadGroups})
	require.Equal(t, [2]*ReadGroup{plain, nil}, gathered)
	require.True(t, q.Gathering(true))
	_, gathered = q.Take([2]int{maxReadGroups, 0})
	require.Equal(t, [2]*ReadGroup{nil, barrier}, gathered)
	q.Gather(barrier)
	require.Equal(t, []*ReadGroup{barrier}, q.Close())

	var s ReadGroups
	s.Ask(barrier, 0, []protocol.InstanceID{1})
	require.Equal(t, [2]int{0, 1}, s.Under)
	require.True(t, s.Fail(barrier))
	require.Equal(t, [2]int{}, s.Under)
}

// TestABarrierWaitsForItsPlace: what was accepted may be in the first instance's log behind slots of others that are
// not filled.
func TestABarrierWaitsForItsPlace(t *testing.T) {
	s, shape := ReadGroups{Placed: 4}, []protocol.InstanceID{1, 2}
	added := []protocol.Index{5, 1}
	for _, barrier := range []bool{false, true} {
		g := &ReadGroup{Barrier: barrier}
		require.True(t, s.Ask(g, 0, shape))
		s.Point(g, 1, 5, false, 0, shape, added)
		complete, ready := s.Point(g, 2, 1, false, 0, shape, added)
		require.True(t, complete)
		require.Equal(t, !barrier, ready)
	}
	ready, _ := s.Served(0, shape, added)
	require.Empty(t, ready)
	s.Placed = 5
	ready, _ = s.Served(0, shape, added)
	require.Len(t, ready, 1)
}
