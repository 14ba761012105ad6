package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Bodies that would be lost if a member counted for more than it has (docs/internals/craft.md, 2.4 and 2.7). The
// first four scenarios also run without the rule, and must then fail: see staged.

// wovenBodies sets three merged instances with coded bodies.
func wovenBodies(k int) func(*fault.Settings) {
	return func(s *fault.Settings) {
		woven(s)
		coded(k)(s)
	}
}

// retired retires instances 2 and 3 while a body of theirs is missing on a member. It returns the write with that
// body.
func (s *script) retired(behind protocol.MemberID) *history.Operation {
	s.t.Helper()
	s.mustAck(s.put(1))
	s.wait(1)
	s.onlyIn(2, func(m *protocol.Message) bool { return m.To != behind })
	s.wait(1)
	s.Route = 2
	op := s.putBody(2)
	s.Route = 0
	s.mustAck(op)
	s.Member(1).Step(protocol.Propose{Entries: []protocol.Entry{protocol.NewReshape(1)}})
	s.until("the others have retired 2 and 3", func() bool {
		for _, m := range s.Members {
			if m.ID != behind && (len(m.InForce) != 1 || m.InstancesApplied() != 1) {
				return false
			}
		}
		return true
	})
	s.wait(0.2)
	require.Len(s.t, s.Member(behind).InForce, 3)
	return op
}

// tryToRemove requests a removal of the leader repeatedly, for a while, and reports whether it is made.
func (s *script) tryToRemove(id protocol.MemberID, timeouts float64) bool {
	left := func() bool { return len(s.known(1, 1)) < len(s.Members) || s.Broken != nil }
	for until := s.Now() + time.Duration(timeouts*float64(stageElection)); s.Now() < until && !left(); s.wait(0.05) {
		changeAt(s.Member(1), []protocol.Change{{Kind: protocol.RemoveMember, Member: protocol.Member{ID: id}}}, func(err error) { s.Tracef("refused: %v", err) })
	}
	return left()
}

// behindInRetired: member 3 is behind in a retired instance, and does not know the missing entries. Then member 4 is
// to be removed.
func behindInRetired(s *script) {
	s.lead(1, 2, 1)
	s.retired(3)
	if s.tryToRemove(4, 10) {
		s.wait(0.2)
		s.Pass = nil
		return
	}
	require.Len(s.t, s.Member(3).InForce, 3)
	s.Pass = nil
	s.remove(4)
	s.crash(1) // with a whole copy
	s.until("another leader", func() bool { m := s.Leader(); return m != nil && m.Up })
	s.readable(2, 3)
	s.start(1)
}

func TestAMemberThatIsBehindInARetiredInstanceIsNoHolder(t *testing.T) {
	s := weaveStage(t, 4, coded(2))
	behindInRetired(s)
	s.passes()
}

// leaderBehindInRetired: the leader of the first instance is behind in another one that is retired.
func leaderBehindInRetired(s *script) {
	s.lead(1, 2, 2)
	s.retired(1)
	if s.tryToRemove(4, 10) {
		s.wait(0.2)
		s.Pass = nil
		return
	}
	require.True(s.t, s.leads(1, 1))
	s.Pass = nil
	s.remove(4)
	s.crash(2)
	s.readable(1, 3)
	s.start(2)
}

func TestALeaderThatIsBehindInARetiredInstanceChangesNoVoters(t *testing.T) {
	s := weaveStage(t, 4, coded(2))
	leaderBehindInRetired(s)
	s.passes()
}

// repeatedReshape: a change of the number of instances is refused, because of a transfer, and will be proposed again.
// Meanwhile member 4 is removed. The second instance cannot follow, because no member gets whole copies of its body.
func repeatedReshape(s *script) {
	s.lead(1, 2, 2)
	s.mustAck(s.put(1))
	s.wait(2)
	s.Route = 2
	s.mustAck(s.putBody(2))
	s.Route = 0
	s.wait(2)
	s.without(protocol.MsgFetch, message.TimeoutNow)
	s.Member(1).Step(protocol.Transfer{To: 3})
	s.wait(0.5)
	asked := s.operate(1, cluster.Operation{Kind: cluster.Reshape, Instances: 1})
	require.True(s.t, s.tryToRemove(4, 20))
	s.wait(3)
	if s.Set.Mutant == "" {
		require.Len(s.t, s.Member(1).InForce, 3, "the second instance has four members")
	}
	s.Pass = nil
	if s.Broken != nil {
		return
	}
	s.until("reshaped", func() bool { return len(s.Member(1).InForce) == 1 })
	s.until("answered", func() bool { done, _ := asked(); return done })
	_, err := asked()
	require.NoError(s.t, err)
}

func TestAReshapeThatIsRepeatedIsCheckedAgain(t *testing.T) {
	s := weaveStage(t, 4, coded(3))
	repeatedReshape(s)
	s.passes()
}

// trimmed sets members that trim whole copies.
func trimmed(k int) func(*fault.Settings) {
	return func(s *fault.Settings) {
		coded(k)(s)
		s.SnapshotBytes, s.Bodies.Scrub = 5000, time.Second
	}
}

// forgetsWhole: members restart from a snapshot before the membership that requires whole copies, with that
// membership in their logs. They look for copies to trim before they have applied it.
func forgetsWhole(s *script) {
	s.settled()
	s.mustAck(s.putBody(1))
	ref := s.machineBodies(1)[0]
	require.Equal(s.t, uint8(3), ref.K)
	s.until("member 2 has a snapshot after it", func() bool {
		s.mustAck(s.put(1))
		return s.Member(2).Inst.Core().Status().First > ref.Index+1
	})
	s.wait(2)
	require.True(s.t, s.tryToRemove(4, 20))
	require.Equal(s.t, check.WholeBody, s.form(3, ref.Index))
	s.crash(2, 3)
	s.start(2, 3)
	s.stopStates(2, 3)
	require.Len(s.t, s.Member(3).Witness.Latest.Config.Voters(), 3)
	require.Len(s.t, s.known(3, 1), 4)
	for _, id := range []protocol.MemberID{2, 3} {
		s.Member(id).ScrubLater(s.Set.Election / 10)
	}
	s.wait(1)
}

func TestAMemberThatRestartsStillHoldsBodiesWhole(t *testing.T) {
	s := newStage(t, 4, "", trimmed(3))
	forgetsWhole(s)
	s.passes()
}

// trimmedLater sets members that trim whole copies when a scenario allows it.
func trimmedLater(s *fault.Settings) {
	trimmed(3)(s)
	s.Bodies.Scrub = time.Hour
}

// TestAMemberThatCannotWriteDoesNotObey: members 1 and 2 have a whole copy of a body. The disk of 2 is stalled. It
// has applied the membership that requires whole copies, and a power failure would undo that. Then it would trim its
// copy before it learns the membership again. So it must not count.
func TestAMemberThatCannotWriteDoesNotObey(t *testing.T) {
	s := newStage(t, 4, "", trimmedLater)
	s.settled()
	s.only(2, 3) // 4 misses the body, and others get a whole copy
	op := s.putBody(1)
	s.mustAck(op)
	s.Pass = nil
	ref := s.machineBodies(1)[0]
	require.Equal(s.t, uint8(3), ref.K)
	s.until("all have snapshots after it", func() bool {
		s.mustAck(s.put(1))
		return !slices.ContainsFunc(s.Members, func(m *node.Member) bool { return m.Inst.Core().Status().First <= ref.Index+1 })
	})
	s.wait(2)
	holds, slow := protocol.MemberID(2), protocol.MemberID(3)
	if s.form(holds, ref.Index) != check.WholeBody {
		holds, slow = slow, holds
	}
	require.Equal(s.t, check.WholeBody, s.form(holds, ref.Index))
	require.NotEqual(s.t, check.WholeBody, s.form(slow, ref.Index))
	s.Pass = func(m *protocol.Message) bool { return m.Type != protocol.MsgFetch || m.From != slow }
	s.Member(holds).Stalled = s.Now() + time.Hour
	if s.tryToRemove(4, 10) {
		s.crash(holds)
		s.Member(holds).Stalled = 0
		s.Pass = func(m *protocol.Message) bool {
			return (m.To != holds || m.Type == protocol.MsgFetchResp) && (m.Type != protocol.MsgFetch || m.From != slow)
		}
		s.start(holds)
		s.Member(holds).WhenAwake(s.Member(holds).ReadAll)
		s.wait(1)
	}
	s.Member(holds).Stalled = 0
	s.Pass = nil
	s.remove(4)
	s.passes()
}
