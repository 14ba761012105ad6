package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// TestADamagedStateIsReplaced: the member serves nothing until it has the state of another one. It may detect the
// damage while it runs or when it starts.
func TestADamagedStateIsReplaced(t *testing.T) {
	for _, restart := range []bool{false, true} {
		s := newStage(t, 3, "", func(set *fault.Settings) { set.Durable, set.SnapshotBytes = true, 2000 })
		s.settled()
		s.elect(1)
		for range 5 {
			s.mustAck(s.put(1))
		}
		m := s.Member(3)
		s.until("3 has applied all", func() bool { return !m.Behind() })
		fault.SpoilState(s.World, m)
		if restart {
			s.crash(3)
			s.start(3)
		}
		require.True(t, s.Member(3).Sick())
		s.mustAck(s.put(1))
		s.until("3 has another state", func() bool { return !s.Member(3).Sick() })
		require.Equal(t, 1, s.Events.Of(node.DamagedStatesReplaced))
		s.until("3 has applied all", func() bool { return !s.Member(3).Behind() })
		require.Equal(t, s.Member(1).Machines.First.Chain(), s.Member(3).Machines.First.Chain())
		s.passes()
	}
}

// TestAStateThatNobodyHasIsWaitedFor: a member installs no state that is behind its own applied index.
func TestAStateThatNobodyHasIsWaitedFor(t *testing.T) {
	s := newStage(t, 3, "", func(set *fault.Settings) { set.Durable = true })
	s.settled()
	s.elect(1)
	s.mustAck(s.put(1))
	s.until("all have applied it", func() bool { return !s.Member(1).Behind() && !s.Member(2).Behind() && !s.Member(3).Behind() })
	for _, id := range []int{2, 3} {
		s.Members[id-1].Lagging = s.Now() + stageElection*20
	}
	s.mustAck(s.put(1))
	fault.SpoilState(s.World, s.Member(1))
	s.Member(1).CheckState()
	s.wait(1)
	require.True(t, s.Member(1).Sick(), "the others are behind")
	s.until("1 has another state", func() bool { return !s.Member(1).Sick() })
	s.passes()
}

// TestTheMemberThatSendsAStateStops: the member that was asked for its state stops before it has sent it. Another one
// is asked soon.
func TestTheMemberThatSendsAStateStops(t *testing.T) {
	s := newStage(t, 3, "", func(set *fault.Settings) { set.Durable = true })
	s.settled()
	s.elect(1)
	s.mustAck(s.put(1))
	m := s.Member(3)
	s.until("all have applied it", func() bool { return !s.Member(1).Behind() && !s.Member(2).Behind() && !m.Behind() })
	for _, id := range []protocol.MemberID{1, 2} { // they take long to check their states
		s.Member(id).Lagging = s.Now() + 20*stageElection
	}
	fault.SpoilState(s.World, m)
	m.CheckState()
	s.wait(0.5)
	s.crash(1, 2)
	s.start(1, 2)
	if !s.RunUntil(s.Now()+10*stageElection, func() bool { return !m.Sick() }) {
		require.Fail(t, "3 still waits for a member that does not send its state any more")
	}
	s.passes()
}
