package relay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

func TestGroupsOfOneNeedNoRelay(t *testing.T) {
	var r Relays
	r.Split(&protocol.Config{}, []protocol.MemberID{2, 3, 4, 5, 6}, 2)
	require.Equal(t, []protocol.MemberID{2, 3}, r.Group(2))
	require.Equal(t, []protocol.MemberID{4, 5, 6}, r.Group(6))
	r.Split(&protocol.Config{}, []protocol.MemberID{2, 3, 4}, 2)
	require.Nil(t, r.Group(2), "it is alone in its group")
	require.Equal(t, []protocol.MemberID{3, 4}, r.Group(3))
}

// Members of a zone are in one group. A zone is divided only if there are fewer zones than groups.
func TestGroupsByZones(t *testing.T) {
	c := &protocol.Config{Members: []protocol.Member{{ID: 1, Zone: "b"}, {ID: 2, Zone: "a"}, {ID: 3, Zone: "b"},
		{ID: 4, Zone: "c"}, {ID: 5, Zone: "a"}, {ID: 6, Zone: "c"}, {ID: 7, Zone: "a"}, {ID: 8}}}
	groups := func(n int, ids ...protocol.MemberID) [][]protocol.MemberID {
		var r Relays
		r.Split(c, ids, n)
		return r.Groups
	}
	all := []protocol.MemberID{2, 3, 4, 5, 6, 7} // of member 1
	require.Equal(t, [][]protocol.MemberID{{2, 5, 7}, {4, 6}}, groups(3, all...))
	require.Equal(t, [][]protocol.MemberID{{2, 5, 7}, {3, 4, 6}}, groups(2, all...))
	require.Equal(t, [][]protocol.MemberID{all}, groups(1, all...))
	require.Equal(t, [][]protocol.MemberID{{5, 7}, {4, 6}}, groups(4, all...))
	require.Equal(t, [][]protocol.MemberID{{2, 5, 7}, {4, 6}}, groups(4, append(all, 8)...))
	require.Empty(t, groups(2))
	require.Empty(t, groups(0, all...))
}

// A relay reports once all members of its group have answered. A member that was slow is not waited for the next
// time, until it answers in time again.
func TestARelayWaitsForItsGroup(t *testing.T) {
	const patience = 10 * time.Millisecond
	var g Gathering
	g.Begin(1, 257)
	forward := func(last protocol.Index, now time.Duration) {
		g.RecordForward(Forwarded{Last: last, Due: now + patience, Members: []protocol.MemberID{2, 3}}, now)
	}
	answer := func(id protocol.MemberID, upto protocol.Index, now time.Duration) {
		require.True(t, g.RecordAnswer(Held{ID: id, Upto: upto}, upto, now, patience))
		require.NoError(t, g.Check(4))
	}
	report := func() []Held { return g.Report(4, false) }

	forward(5, 0)
	answer(2, 5, time.Millisecond)
	require.False(t, g.Due(2*time.Millisecond), "member 3 has not answered")
	answer(3, 5, 3*time.Millisecond)
	require.True(t, g.Due(3*time.Millisecond))
	require.Equal(t, []Held{{ID: 2, Upto: 5}, {ID: 3, Upto: 5}}, report())
	require.Empty(t, report(), "it was reported")

	forward(6, 20*time.Millisecond)
	answer(2, 6, 21*time.Millisecond)
	require.True(t, g.Due(30*time.Millisecond), "member 3 had the time")
	require.Equal(t, []Held{{ID: 2, Upto: 6}}, report())

	forward(7, 40*time.Millisecond)
	answer(2, 7, 41*time.Millisecond)
	require.True(t, g.Due(41*time.Millisecond), "member 3 is slow")
	require.False(t, g.RecordAnswer(Held{ID: 9, Upto: 7}, 7, 41*time.Millisecond, patience), "it was sent nothing")
	require.True(t, g.Awaits(3))
}
