package order

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

func TestGroupsHaveOrdersOfTheirOwn(t *testing.T) {
	o := New(BeginKeyed(2))
	o.Add(2, []protocol.Entry{batch(1, 3)})
	o.Add(1, []protocol.Entry{batch(1, 1)})
	o.Add(2, []protocol.Entry{batch(1, 3), batch(2, 1)})
	require.NoError(t, o.Check())
	require.EqualValues(t, 2, o.Added(2))

	var got []Placed
	for _, p := range o.Next(nil) {
		got = append(got, Placed{Instance: p.Instance, First: p.First})
	}
	require.Equal(t, []Placed{{Instance: 2, First: 1}, {Instance: 1, First: 1}, {Instance: 2, First: 4}}, got,
		"nobody waits for anybody")
	want := BeginKeyed(2)
	want.Position = 5
	want.Points = []Point{{Instance: 1, Index: 1, Term: 1, Position: 1}, {Instance: 2, Index: 2, Term: 1, Position: 4}}
	require.Equal(t, want, o.Cursor())
	require.NoError(t, o.Check())
	require.Empty(t, o.Next(nil))
	require.Panics(t, func() { o.Add(1, []protocol.Entry{batch(3, 1)}) })
	require.Panics(t, func() { o.Add(3, []protocol.Entry{batch(1, 1)}) })
}

// A snapshot is ahead in some groups and behind in others. Each group moves to the furthest place.
func TestKeyedTakesFromASnapshotWhatIsAhead(t *testing.T) {
	here, there := newKeyed(BeginKeyed(2)), newKeyed(BeginKeyed(2))
	here.Add(1, []protocol.Entry{batch(1, 1), batch(2, 1)})
	there.Add(1, []protocol.Entry{batch(1, 1)})
	there.Add(2, []protocol.Entry{batch(1, 4), batch(2, 1)})
	here.Next(nil)
	there.Next(nil)
	here.Add(2, []protocol.Entry{batch(1, 4)}) // it waits, and the snapshot covers it

	mine, theirs := here.Cursor(), there.Cursor()
	require.True(t, mine.Before(&theirs))
	require.True(t, theirs.Before(&mine))
	here.Install(theirs)
	require.NoError(t, here.Check())
	merged := here.Cursor()
	require.Equal(t, []Point{mine.Points[0], theirs.Points[1]}, merged.Points)
	require.False(t, merged.Before(&theirs))
	require.Empty(t, here.Next(nil))
	here.Add(2, []protocol.Entry{batch(2, 1), batch(3, 2)})
	got := here.Next(nil)
	require.Len(t, got, 1)
	require.EqualValues(t, 6, got[0].First)
	require.NoError(t, here.Check())
}

// In whatever order the groups' entries arrive, each group's commands have the same positions on all members, even if
// a member continues from a cursor, or installs another member's.
func TestKeyedPositionsFollowFromEachGroup(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 7))
	for range 200 {
		groups := 1 + rng.IntN(4)
		logs := make([][]protocol.Entry, groups)
		first := make([][]protocol.Position, groups) // of each entry, by the definition
		for g := range logs {
			at := protocol.Position(1)
			for i := range rng.IntN(20) {
				e := batch(protocol.Index(i+1), uint32(rng.IntN(4)))
				logs[g], first[g] = append(logs[g], e), append(first[g], at)
				at += protocol.Position(e.Width())
			}
		}
		a, b := newKeyed(BeginKeyed(groups)), newKeyed(BeginKeyed(groups))
		for range 60 {
			g := rng.IntN(groups)
			id := protocol.InstanceID(g + 1)
			from := int(a.Added(id))
			if n := len(logs[g]) - from; n > 0 {
				a.Add(id, logs[g][max(0, from-rng.IntN(3)):from+rng.IntN(n+1)])
			}
			for _, p := range a.Next(nil) {
				require.Equal(t, first[p.Instance-1][p.Entry.Index-1], p.First)
			}
			require.NoError(t, a.Check())
			switch rng.IntN(5) {
			case 0:
				a, b = b, a
			case 1:
				a.Install(b.Cursor())
			case 2:
				text, err := json.Marshal(a.Cursor())
				require.NoError(t, err)
				var at Cursor
				require.NoError(t, json.Unmarshal(text, &at))
				a = New(at).(*Keyed)
			}
			require.NoError(t, a.Check())
		}
	}
}

func TestGroupOfKeys(t *testing.T) {
	at, ok := GroupOf([]uint64{7, 10, 1}, 3)
	require.True(t, ok)
	require.Equal(t, 1, at)
	_, ok = GroupOf([]uint64{7, 11}, 3)
	require.False(t, ok, "they have no common order")
	_, ok = GroupOf(nil, 3)
	require.False(t, ok, "the commands may touch any key")
	_, ok = GroupOf([]uint64{7}, 0)
	require.False(t, ok, "all keys have one order")
}
