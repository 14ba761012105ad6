package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/protocol"
)

// operate requests an operation at a member. The result is nil until there is a response.
func (s *script) operate(id protocol.MemberID, op cluster.Operation) func() (answered bool, err error) {
	ended, result := false, error(nil)
	s.World.Ask(s.Member(id), op, time.Minute, func(err error) { ended, result = true, err })
	return func() (bool, error) { return ended, result }
}

// TestWhoIsBehindSaysOfNothingThatItIsDone: the asked member, a former leader, believes that an operator's change is
// already active. Others have decided otherwise since.
func TestWhoIsBehindSaysOfNothingThatItIsDone(t *testing.T) {
	s := newStage(t, 3, "", nil)
	s.elect(1)
	s.mustAck(s.put(2))
	s.split(1)
	s.until("another one leads", func() bool { l := s.Leader(); return l != nil && l.ID != 1 })
	added := fault.AddMember(s.World)
	join := s.operate(s.Leader().ID, cluster.Operation{Kind: cluster.ChangeMembers, Changes: []protocol.Change{{Kind: protocol.AddLearner, Member: added}}})
	s.until("there is a learner", func() bool { done, err := join(); return done && err == nil })

	refused := error(nil)
	leave := []protocol.Change{{Kind: protocol.RemoveMember, Member: protocol.Member{ID: added.ID}}}
	config := s.Member(1).Applier.Config()
	require.Nil(t, config.Find(added.ID))
	changeAt(s.Member(1), leave, func(err error) { refused = err })
	s.wait(0.1)
	require.Error(t, refused)

	fault.HealLinks(s.World)
	remove := s.operate(1, cluster.Operation{Kind: cluster.ChangeMembers, Changes: leave})
	s.until("it is removed", func() bool { done, err := remove(); return done && err == nil })
	s.Member(added.ID).Crash()
	s.Member(added.ID).Gone = true
	s.passes()
}

// TestAnOperationFindsTheLeader: any member can be asked, and the leader executes the operation. An operation that is
// already in effect is done.
func TestAnOperationFindsTheLeader(t *testing.T) {
	s := weaveStage(t, 3)
	s.lead(1, 2, 3)
	for _, id := range []protocol.MemberID{1, 2, 3} {
		for range 2 {
			n := 1 + int(id)
			op := s.operate(id, cluster.Operation{Kind: cluster.Reshape, Instances: n})
			s.until("it is reshaped", func() bool { done, err := op(); return done && err == nil })
			require.Len(t, s.Member(id).InForce, n)
		}
		to := 1 + id%3
		op := s.operate(id, cluster.Operation{Kind: cluster.TransferLeader, To: to})
		s.until("another one leads", func() bool { done, err := op(); return done && err == nil })
		require.Equal(t, to, s.Leader().ID)
	}
	bad := s.operate(2, cluster.Operation{Kind: cluster.Reshape, Instances: 1000})
	s.until("it is refused", func() bool { done, err := bad(); return done && err != nil })
	s.passes()
}

// TestAChangeOfAnEarlierLeaderEnds: the leader proposes a change and is cut off. Another one leads and does not know
// the change. The requester gets an error that the result is unknown.
func TestAChangeOfAnEarlierLeaderEnds(t *testing.T) {
	s := newStage(t, 3, "", func(set *fault.Settings) { set.GiveUp = 3 * time.Second })
	s.elect(1)
	s.mustAck(s.put(1))
	s.split(1)
	op := s.operate(1, cluster.Operation{Kind: cluster.ChangeMembers, Changes: []protocol.Change{{Kind: protocol.UpdateMember, Member: protocol.Member{ID: 2, Name: "renamed"}}}})
	s.until("another one leads", func() bool { l := s.Leader(); return l != nil && l.ID != 1 })
	s.mustAck(s.put(2))
	fault.HealLinks(s.World)
	s.until("it ends", func() bool { done, _ := op(); return done })
	_, err := op()
	var stalled *member.StalledError
	require.ErrorAs(t, err, &stalled)
	require.ErrorIs(t, err, member.ErrMaybeCommitted)
	s.passes()
}
