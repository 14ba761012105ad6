package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// sealTo returns a seal, and where its verdict was asked for. It counts at these last entries alone.
func sealTo(instances int, merged bool, at ...uint64) (s Slots, asked *[][]uint64) {
	asked = new([][]uint64)
	return Slots{Fills: true, Seal: &Seal{Instances: instances, Merged: merged, Counts: func(_, points []uint64) bool {
		*asked = append(*asked, points)
		return len(points) == len(at) && points[0] == at[0] && points[len(at)-1] == at[len(at)-1]
	}}}, asked
}

func TestASealEndsTheRound(t *testing.T) {
	w := NewMerge(2, false)
	void, asked := sealTo(1, false, 0, 0)
	counts, _ := sealTo(2, true, 3, 4)
	decide(w, 1, batch, void, counts, batch, Slots{Fills: true, Instances: 3})
	decide(w, 2, batch, config, batch)
	require.Empty(t, w.Settle())
	require.Equal(t, [][]uint64{{2, 3}}, *asked)
	require.EqualValues(t, 5, w.Wanted(1))
	decide(w, 2, batch, config)
	began := w.Settle()
	require.Len(t, began, 1)
	require.Equal(t, []uint64{3, 4}, began[0].Instances(), "ids of void instances are used")
	require.EqualValues(t, 3, w.End(1))
	require.EqualValues(t, 4, w.End(2))
	require.Equal(t, 1, w.Part(3))
	require.Zero(t, w.Part(2))
	zero := []uint64{0, 0}
	require.NoError(t, w.Member(1, []uint64{2, 3}, zero, Cut{Round: 3, Instance: 1, Position: 4,
		Instances: []uint64{1, 2}, Points: []uint64{2, 3}}))
	require.NoError(t, w.Member(1, zero, []uint64{1, 1}, Cut{Round: 2, Instance: 3, Position: 6,
		Instances: []uint64{3, 4}, Points: []uint64{0, 0}}), "rounds begin again, positions do not")
	decide(w, 3, batch)
	decide(w, 4, config, skipTo(2))
	require.NoError(t, w.Member(1, []uint64{1, 2}, []uint64{1, 1}, Cut{Round: 3, Instance: 3, Position: 8,
		Instances: []uint64{3, 4}, Points: []uint64{1, 2}}))
}

func TestASealOfOneInstance(t *testing.T) {
	w := NewMerge(1, true)
	epoch, _ := sealTo(1, false, 4)
	epoch.Seal.End = 4
	decide(w, 1, batch, epoch, config)
	require.Empty(t, w.Settle(), "the epoch is not over")
	decide(w, 1, batch, batch)
	require.Len(t, w.Settle(), 1)
	require.EqualValues(t, 4, w.End(1))
	require.NoError(t, w.Member(1, []uint64{0}, []uint64{0}, Cut{Position: 5, Instances: []uint64{2},
		Points: []uint64{0}}))
	merged, _ := sealTo(2, true, 2)
	decide(w, 2, noop, merged, batch)
	require.Len(t, w.Settle(), 1)
	require.EqualValues(t, 2, w.End(2))
	require.NoError(t, w.Member(1, []uint64{0, 0}, []uint64{1, 1}, Cut{Round: 2, Instance: 3, Position: 8,
		Instances: []uint64{3, 4}, Points: []uint64{0, 0}}))
	var starts []int
	for n, start := range w.Shapes() {
		starts = append(starts, n, start.Part, int(start.Round))
	}
	require.Equal(t, []int{1, 0, 1, 1, 1, 1, 2, 2, 2}, starts)
}
