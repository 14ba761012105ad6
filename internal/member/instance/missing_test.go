package instance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

func TestSearchAsksTheFirstInstancesLeader(t *testing.T) {
	const election = time.Second
	first := protocol.Status{Self: 1, Leader: 2,
		Config: protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}}}
	var s SnapshotSearch
	require.Zero(t, s.Next(time.Second, election, true, &first), "the instance has a leader")
	require.Zero(t, s.Next(5*time.Second, election, false, &first), "not for long enough")
	require.EqualValues(t, 2, s.Next(6*time.Second, election, false, &first))
	require.Zero(t, s.Next(7*time.Second, election, false, &first), "asked lately")
	first.Leader = 0
	require.Zero(t, s.Next(12*time.Second, election, false, &first), "nobody to ask")
	first.Leader = 2
	require.Zero(t, s.Next(16*time.Second, election, false, &first), "it waits anew")

	first.Leader = 1
	asked := map[protocol.MemberID]bool{}
	for now := 20 * time.Second; now < 80*time.Second; now += time.Second {
		asked[s.Next(now, election, false, &first)] = true
	}
	require.Equal(t, map[protocol.MemberID]bool{0: true, 2: true, 3: true}, asked,
		"who leads the first instance asks all others in turn")
	first.Config.Members = first.Config.Members[:1]
	require.Zero(t, s.Next(90*time.Second, election, false, &first), "alone")
}

// TestSearchAsksEachMember: as many members as the election timeouts between two questions. The
// others are asked one after the other all the same.
func TestSearchAsksEachMember(t *testing.T) {
	const election, tick = 400 * time.Millisecond, 20 * time.Millisecond
	first := protocol.Status{Self: 4, Leader: 4}
	for id := range protocol.MemberID(searchAfter) {
		first.Config.Members = append(first.Config.Members, protocol.Member{ID: id + 1})
	}
	var s SnapshotSearch
	asked := map[protocol.MemberID]bool{}
	for now := tick; now < 2*searchAfter*searchAfter*election; now += tick {
		if to := s.Next(now, election, false, &first); to != 0 {
			asked[to] = true
		}
	}
	require.Len(t, asked, searchAfter-1)
}
