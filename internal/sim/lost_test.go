package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// hotCopy replaces a member's disk by a copy from the member's last incarnation. So the incarnation's number does not
// show that it is a copy. The leader, which continues to run, knows the entries that the member has acknowledged
// since.
func hotCopy(s *script) {
	s.elect(1)
	s.mustAck(s.put(1))
	s.wait(1)
	m := s.Member(2)
	copied := m.Disk.Crash(s.Rand)
	s.split(3)
	s.mustAck(s.put(1)) // by 1 and 2
	s.crash(2)
	m.Disk, m.Restored = copied, true
	m.Strangers++
	s.start(2)
	s.wait(3)
	if s.Set.Core.Mutant == "" {
		require.False(s.t, m.Up, "it must not go on")
		require.Equal(s.t, 1, s.Events.Of(node.StoppedWithoutDisk))
		require.NotEqual(s.t, protocol.Leader, roleOf(s.Member(1)), "nor does it count for the leader, which has no quorum without 3")
	}
	fault.HealLinks(s.World)
	s.crash(1)
	s.wait(8)
	s.start(1)
	s.wait(4)
}

func TestALeaderThatLivesFindsOutWhoForgot(t *testing.T) {
	s := newStage(t, 3, "", nil)
	hotCopy(s)
	s.passes()
}

// wiped is a sequence of events in which a member without a disk could help to elect a member without an acknowledged
// write.
func wiped(s *script) {
	s.elect(1)
	s.mustAck(s.put(1))
	s.wait(2)
	s.crash(3)
	s.mustAck(s.put(1)) // by 1 and 2
	s.crash(1, 2)
	m := s.Member(2)
	m.Disk, m.Saved = device.NewDisk(), nil
	m.Strangers++
	s.start(2, 3)
	s.wait(8)
	s.start(1)
	s.wait(4)
}

func TestAWipedMemberDoesNotElect(t *testing.T) {
	s := newStage(t, 3, "", nil)
	wiped(s)
	require.Positive(t, s.Events.Of(node.StoppedWithoutDisk))
	s.passes()
}

func TestAWipedMemberElectsIfNobodyComparesWhoItIs(t *testing.T) {
	s := newStage(t, 3, string(member.MutantAnyLog), nil)
	wiped(s)
	require.NotNil(t, s.end())
}

// TestWhoIsAboutToVoteIsNotLost: the world counts an added voter before it is a voter, even while it is down. The
// leader promotes it on the basis of its messages, which may be old.
func TestWhoIsAboutToVoteIsNotLost(t *testing.T) {
	s := newStage(t, 1, "", nil)
	s.elect(1)
	s.mustAck(s.put(1))
	added := fault.AddMember(s.World)
	m := s.Member(added.ID)
	s.until("it joins", func() bool {
		changeAt(s.Member(1), []protocol.Change{{Kind: protocol.AddVoter, Member: added}}, func(error) {})
		x := s.Member(1).Witness.Latest.Config.Find(added.ID)
		return x != nil && x.Joining && m.Up
	})
	s.Member(1).Executing = nil // a pending operation counts already
	alone := s.Except(m)
	require.True(t, s.Decisive(alone), "it does not vote yet")
	require.True(t, s.Joins(m))
	require.False(t, fault.MayLose(s.World, m, nil))
	s.crash(added.ID)
	require.True(t, s.Joins(m), "the leader may have heard of it just before")
	s.start(added.ID)
	s.until("it votes", func() bool {
		c := s.Member(1).Applier.Config()
		return c.Voter(added.ID)
	})
	require.False(t, s.Joins(m))
	require.False(t, s.Decisive(alone))
	s.passes()
}

// TestWhoIsToDecideAloneIsNotLost: an operator requested a change after which one member remains. The leader has not
// begun it, and that member counts as if it had.
func TestWhoIsToDecideAloneIsNotLost(t *testing.T) {
	s := newStage(t, 3, "", nil)
	s.elect(1)
	s.mustAck(s.put(1))
	require.True(t, fault.MayLose(s.World, s.Member(2), nil))
	remove := func(id protocol.MemberID) protocol.Change {
		return protocol.Change{Kind: protocol.RemoveMember, Member: protocol.Member{ID: id}}
	}
	s.Member(1).Executing = append(s.Member(1).Executing, &cluster.Execution{Op: cluster.Operation{
		Kind: cluster.ChangeMembers, Changes: []protocol.Change{remove(1), remove(3)},
	}})
	require.False(t, fault.MayLose(s.World, s.Member(2), nil))
	require.True(t, fault.MayLose(s.World, s.Member(3), nil))
	s.Member(1).Executing = nil
	s.passes()
}
