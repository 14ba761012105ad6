package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// TestADamagedStateIsReplaced: the member serves nothing until it has the state of another one. It
// may find the damage while it runs or when it starts.
func TestADamagedStateIsReplaced(t *testing.T) {
	for _, restart := range []bool{false, true} {
		s := newStage(t, 3, "", func(set *Settings) { set.Durable, set.SnapshotBytes = true, 2000 })
		s.settled()
		s.elect(1)
		for range 5 {
			s.mustAck(s.put(1))
		}
		m := s.member(3)
		s.until("3 has applied all", func() bool { return !m.behind() })
		s.spoilState(m)
		if restart {
			s.crash(3)
			s.start(3)
		}
		require.True(t, s.member(3).sick())
		s.mustAck(s.put(1))
		s.until("3 has another state", func() bool { return !s.member(3).sick() })
		require.Equal(t, 1, s.Events.Of(damagedStatesReplaced))
		s.until("3 has applied all", func() bool { return !s.member(3).behind() })
		require.Equal(t, s.member(1).machines.First.Chain(), s.member(3).machines.First.Chain())
		s.passes()
	}
}

// TestAStateThatNobodyHasIsWaitedFor: a member takes no state that is behind what its own state
// had.
func TestAStateThatNobodyHasIsWaitedFor(t *testing.T) {
	s := newStage(t, 3, "", func(set *Settings) { set.Durable = true })
	s.settled()
	s.elect(1)
	s.mustAck(s.put(1))
	s.until("all have applied it", func() bool { return !s.member(1).behind() && !s.member(2).behind() && !s.member(3).behind() })
	for _, id := range []int{2, 3} {
		s.members[id-1].lagging = s.Now() + stageElection*20
	}
	s.mustAck(s.put(1))
	s.spoilState(s.member(1))
	s.member(1).checkState()
	s.wait(1)
	require.True(t, s.member(1).sick(), "the others are behind")
	s.until("1 has another state", func() bool { return !s.member(1).sick() })
	s.passes()
}

// TestTheMemberThatSendsAStateStops: the member that was asked for its state stops before it has
// sent it. Another one is asked soon.
func TestTheMemberThatSendsAStateStops(t *testing.T) {
	s := newStage(t, 3, "", func(set *Settings) { set.Durable = true })
	s.settled()
	s.elect(1)
	s.mustAck(s.put(1))
	m := s.member(3)
	s.until("all have applied it", func() bool { return !s.member(1).behind() && !s.member(2).behind() && !m.behind() })
	for _, id := range []protocol.MemberID{1, 2} { // it takes them long to look at their states
		s.member(id).lagging = s.Now() + 20*stageElection
	}
	s.spoilState(m)
	m.checkState()
	s.wait(0.5)
	s.crash(1, 2)
	s.start(1, 2)
	if !s.RunUntil(s.Now()+10*stageElection, func() bool { return !m.sick() }) {
		require.Fail(t, "3 still waits for a member that does not send its state any more")
	}
	s.passes()
}
