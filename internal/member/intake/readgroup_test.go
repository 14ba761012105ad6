package intake

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// stateAt is a state with so much of each instance, which stands at the first one's next slot.
func stateAt(at protocol.Position, added protocol.Index, shape []protocol.InstanceID) *ReadState {
	c := &order.Cursor{Position: at, Next: order.Slot{Round: 2, Instance: shape[0]}}
	for _, id := range shape {
		c.Points = append(c.Points, order.Point{Instance: id, Index: added, Round: 1})
	}
	return &ReadState{At: c, Shape: shape, Added: each(added, len(shape))}
}

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
		state := func() *ReadState { return stateAt(protocol.Position(added), added, shapes[now]) }
		for range 200 {
			g := groups[rng.IntN(len(groups))]
			switch rng.IntN(6) {
			case 0, 1:
				require.Equal(t, ends[g] == 0, s.Ask(g, protocol.Position(rng.IntN(3)*100),
					shapes[rng.IntN(len(shapes))], protocol.InstanceID(rng.IntN(2))))
			case 2, 3:
				if _, ready := s.Point(g, protocol.InstanceID(1+rng.IntN(4)), added+protocol.Index(rng.IntN(3)), false,
					state()); ready {
					ends[g]++
				}
			case 4:
				now, added = rng.IntN(len(shapes)), added+1
				ready, again := s.Served(state())
				for _, g := range ready {
					ends[g]++
				}
				for _, g := range again {
					require.Zero(t, ends[g])
					s.Ask(g, protocol.Position(added), shapes[now], 1)
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
	s.Ask(barrier, 0, []protocol.InstanceID{1}, 0)
	require.Equal(t, [2]int{0, 1}, s.Under)
	require.True(t, s.Fail(barrier))
	require.Equal(t, [2]int{}, s.Under)
}

// TestABarrierWaitsForItsPlace: what was accepted may be in the first instance's log behind slots of others that are
// not filled.
func TestABarrierWaitsForItsPlace(t *testing.T) {
	s, shape := ReadGroups{Placed: 4}, []protocol.InstanceID{1, 2}
	state := stateAt(0, 0, shape)
	state.Added = []protocol.Index{5, 1}
	for _, barrier := range []bool{false, true} {
		g := &ReadGroup{Barrier: barrier}
		require.True(t, s.Ask(g, 0, shape, 0))
		s.Point(g, 1, 5, false, state)
		complete, ready := s.Point(g, 2, 1, false, state)
		require.True(t, complete)
		require.Equal(t, !barrier, ready)
	}
	ready, _ := s.Served(state)
	require.Empty(t, ready)
	s.Placed = 5
	ready, _ = s.Served(state)
	require.Len(t, ready, 1)
}

// TestAReadThatOneInstanceDoesNotServeAsksAll: the order has all that the only instance had that was asked, and waits
// for slots of others. All are asked then, and for some groups more, as the same may happen to these.
func TestAReadThatOneInstanceDoesNotServeAsksAll(t *testing.T) {
	var s ReadGroups
	shape := []protocol.InstanceID{1, 2, 3}
	state := stateAt(7, 5, shape)
	state.At.Next = order.Slot{Round: 1, Instance: 3}
	g := &ReadGroup{}
	require.True(t, s.Ask(g, 0, shape, 2))
	require.Equal(t, protocol.InstanceID(2), g.One())
	complete, ready := s.Point(g, 2, 5, false, state)
	require.True(t, complete)
	require.False(t, ready, "slot 1 of instance 3 may have been executed")
	require.True(t, g.Again(state))
	ready1, again := s.Served(state)
	require.Empty(t, ready1)
	require.Equal(t, []*ReadGroup{g}, again)
	require.True(t, s.Ask(g, 0, shape, 2))
	require.Zero(t, g.One())
	for i, id := range shape {
		complete, ready = s.Point(g, id, 5, false, state)
		require.Equal(t, i == 2, complete)
	}
	require.True(t, ready, "nothing behind this is committed")

	all := 0
	for {
		next := &ReadGroup{}
		require.True(t, s.Ask(next, 0, shape, 2))
		if next.One() != 0 {
			break
		}
		all++
	}
	require.Equal(t, wholeGroups, all+1)
	barrier := &ReadGroup{Barrier: true}
	require.True(t, s.Ask(barrier, 0, shape, 2))
	require.Zero(t, barrier.One(), "what was accepted is in the first instance")
}

// TestAReadThatAskedOneInstanceWaitsForWhatOthersHadBefore: the state serves it at the instance's next slot.
func TestAReadThatAskedOneInstanceWaitsForWhatOthersHadBefore(t *testing.T) {
	var s ReadGroups
	shape := []protocol.InstanceID{1, 2, 3}
	state := stateAt(7, 4, shape)
	state.At.Next = order.Slot{Round: 2, Instance: 2}
	g := &ReadGroup{}
	require.True(t, s.Ask(g, 0, shape, 2))
	_, ready := s.Point(g, 2, 5, false, state)
	require.False(t, ready)
	require.False(t, g.Again(state), "the instance's log is behind here")
	state = stateAt(8, 5, shape)
	state.At.Next = order.Slot{Round: 2, Instance: 2}
	served, again := s.Served(state)
	require.Equal(t, []*ReadGroup{g}, served)
	require.Empty(t, again)

	gone := &ReadGroup{}
	require.True(t, s.Ask(gone, 0, shape, 3))
	_, ready = s.Point(gone, 3, 5, false, stateAt(9, 5, shape[:2]))
	require.False(t, ready)
	require.True(t, gone.Again(stateAt(9, 5, shape[:2])), "the instance is retired")
}
