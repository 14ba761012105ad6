package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func among(ids ...uint64) func(uint64) bool {
	return func(id uint64) bool {
		for _, m := range ids {
			if m == id {
				return true
			}
		}
		return false
	}
}

func TestQuorums(t *testing.T) {
	require.True(t, Quorums{}.Reads(five, among(1, 2, 3)) && Quorums{}.Writes(five, among(3, 4, 5)))
	require.False(t, Quorums{}.Reads(five, among(1, 2)) || Quorums{}.Writes(five, among(4, 5)))
	sizes := Quorums{Read: 4, Write: 2}
	require.True(t, sizes.Reads(five, among(1, 2, 3, 5)) && sizes.Writes(five, among(4, 5)))
	require.False(t, sizes.Reads(five, among(1, 2, 3)) || sizes.Writes(five, among(4)))
	four := &Voters{Incoming: []uint64{1, 2, 3, 4}}
	require.False(t, Quorums{}.Writes(four, among(1, 2)))
	both := &Voters{Incoming: []uint64{1, 2, 3}, Outgoing: []uint64{3, 4, 5}}
	require.False(t, Quorums{}.Writes(both, among(1, 2)) || Quorums{}.Writes(both, among(3, 4)))
	require.True(t, Quorums{}.Writes(both, among(1, 3, 4)))
	joint := &Voters{Incoming: five.Incoming, Outgoing: []uint64{5, 6}}
	require.True(t, sizes.Writes(joint, among(4, 5, 6)))
	require.False(t, sizes.Writes(joint, among(4, 5)))
	grid := Quorums{Rows: 2} // 1 3 5 and 2 4
	require.True(t, grid.Reads(five, among(1, 4)) && grid.Writes(five, among(2, 4)) && grid.Writes(five, among(1, 3, 5)))
	require.False(t, grid.Reads(five, among(1, 3, 5)) || grid.Writes(five, among(1, 2, 3)))
	zones := Quorums{Zones: 2, Down: 1} // 1 3 5 and 2 4
	require.True(t, zones.Reads(five, among(1, 3, 4)) && zones.Writes(five, among(2, 4)) &&
		zones.Writes(five, among(1, 5)))
	require.False(t, zones.Reads(five, among(1, 3, 5)) || zones.Reads(five, among(1, 2)) ||
		zones.Writes(five, among(1, 2)))
	apart := Quorums{Zones: 3, Lost: 1} // 1 4, 2 5 and 3
	require.True(t, apart.Reads(five, among(1, 4, 3)) && apart.Writes(five, among(4, 5)))
	require.False(t, apart.Reads(five, among(1, 2, 3)) || apart.Writes(five, among(1, 4)))
}

// In a grid bodies are safe if all of one column have them.
func TestBodiesInAGrid(t *testing.T) {
	for _, c := range []struct {
		holders []uint64
		decided bool
	}{
		{[]uint64{2, 4}, true},
		{[]uint64{1, 3, 5}, true},
		{[]uint64{1, 2, 3}, false},
	} {
		b := newBench(t)
		b.Flexible(Quorums{Rows: 2})
		b.spread(1, 1, len(c.holders), c.holders...)
		err := b.Decide(1, 1, five)
		if c.decided {
			require.NoError(t, err)
			require.NoError(t, b.Check())
		} else {
			require.ErrorContains(t, err, "C1")
		}
	}
}

// TestQuorumsOfVotersInZones: zones, and not ids, say which voters are in a column.
func TestQuorumsOfVotersInZones(t *testing.T) {
	v := &Voters{Incoming: []uint64{1, 2, 3, 4, 5}, Zones: map[uint64]string{1: "b", 2: "a", 3: "b", 4: "a", 5: "b"}}
	zones := Quorums{Zones: 2, Down: 1} // 2 4 and 1 3 5
	require.True(t, zones.Writes(v, among(2, 4)) && zones.Writes(v, among(1, 5)) && zones.Reads(v, among(2, 1, 3)))
	require.False(t, zones.Writes(v, among(1, 2)) || zones.Reads(v, among(1, 3, 5)) || zones.Reads(v, among(2, 4, 5)))
	v.Zones = map[uint64]string{1: "b", 2: "a", 3: "b", 4: "a"}
	grid := Quorums{Rows: 2} // in the order of zones 5 2 4 1 3: columns 5 4 3 and 2 1
	require.True(t, grid.Writes(v, among(1, 2)) && grid.Writes(v, among(3, 4, 5)) && grid.Reads(v, among(1, 5)))
	require.False(t, grid.Writes(v, among(2, 4)) || grid.Reads(v, among(1, 2)))
}
