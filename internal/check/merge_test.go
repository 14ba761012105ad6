package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	batch  = Slots{Fills: true, Covers: 1}
	noop   = Slots{}
	config = Slots{Covers: 1}
)

func skipTo(round uint64) Slots { return Slots{SkipsTo: round} }

// decide reports the entries of instances' logs to a judge.
func decide(w *Merge, instance uint64, entries ...Slots) {
	for _, e := range entries {
		w.Decide(instance, e)
	}
}

func TestMergeKnowsWhereAMemberMustBe(t *testing.T) {
	w := NewMerge(3, false)
	decide(w, 1, noop, batch, batch, config)
	decide(w, 2, noop, skipTo(5), batch)
	decide(w, 3, noop, skipTo(1), batch)
	zero := []uint64{0, 0, 0}
	for _, c := range []struct {
		added, after []uint64
		at           Cut
	}{
		{zero, zero, Cut{Round: 1, Instance: 1, Points: []uint64{0, 0, 0}}},
		{[]uint64{2, 0, 3}, zero, Cut{Round: 1, Instance: 2, Position: 1, Points: []uint64{2, 0, 0}}},
		{[]uint64{2, 1, 3}, zero, Cut{Round: 1, Instance: 2, Position: 1, Points: []uint64{2, 1, 0}}},
		{[]uint64{4, 2, 1}, zero, Cut{Round: 1, Instance: 3, Position: 1, Points: []uint64{2, 1, 1}}},
		{[]uint64{4, 3, 3}, zero, Cut{Round: 3, Instance: 1, Position: 4, Points: []uint64{4, 1, 3}}},
		// A snapshot in the middle of instance 2's skip, which is not decided yet.
		{[]uint64{4, 1, 3}, []uint64{2, 2, 2}, Cut{Round: 3, Instance: 1, Position: 4, Points: []uint64{4, 1, 3}}},
	} {
		c.at.Instances = []uint64{1, 2, 3}
		require.NoError(t, w.Member(1, c.added, c.after, c.at))
		c.at.Position++
		require.ErrorContains(t, w.Member(1, c.added, c.after, c.at), "N2")
	}
	require.EqualValues(t, 4, w.Wanted(1))
	require.EqualValues(t, 3, w.Wanted(2))
	_, err := w.At(1, []uint64{5, 0, 0}, zero)
	require.ErrorContains(t, err, "decided are 4")
}

func TestSkipsNeverGoBack(t *testing.T) {
	w := NewMerge(2, false)
	decide(w, 1, batch, batch, batch, skipTo(2), skipTo(3), batch)
	decide(w, 2, skipTo(9), skipTo(4))
	at, err := w.At(1, []uint64{6, 2}, []uint64{0, 0})
	require.NoError(t, err)
	require.Equal(t, Cut{Round: 5, Instance: 1, Position: 4, Instances: []uint64{1, 2}, Points: []uint64{6, 0}}, at)
}

func TestMergeOfOtherInstances(t *testing.T) {
	w := NewMerge(2, false)
	decide(w, 1, batch, Slots{Fills: true, Instances: 3})
	decide(w, 2, batch)
	_, err := w.At(3, []uint64{2, 1, 0}, []uint64{0, 0, 0})
	require.ErrorContains(t, err, "round 2 is over")
	decide(w, 2, batch)
	at, err := w.At(3, []uint64{2, 2, 0}, []uint64{0, 0, 0})
	require.NoError(t, err)
	require.Equal(t, Cut{Round: 3, Instance: 1, Position: 4, Instances: []uint64{1, 2, 3}, Points: []uint64{2, 2, 0}}, at,
		"the change has a position")
	decide(w, 1, Slots{Fills: true, Instances: 1}, batch)
	decide(w, 2, skipTo(3), batch)
	decide(w, 3, batch, batch)
	at, err = w.At(4, []uint64{4}, []uint64{0})
	require.NoError(t, err)
	require.Equal(t, Cut{Round: 5, Instance: 1, Position: 7, Instances: []uint64{1}, Points: []uint64{4}}, at,
		"what 2 and 3 decided later is void")
	var shapes []int
	for n, start := range w.Shapes() {
		shapes = append(shapes, n, int(start.Round))
	}
	require.Equal(t, []int{2, 1, 3, 3, 1, 4}, shapes)
	require.EqualValues(t, 4, w.Wanted(1))
}
