package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Tests of a member that is far behind with a narrow link: how it catches up, and the effect on the others.

const (
	narrowRate  = 40 << 10 // bytes a second
	narrowFrame = 2 << 10  // of an entry
)

func narrowFrames(set *fault.Settings) {
	coded(0)(set)
	set.Core.Placement, set.Bodies.Min, set.Bodies.Max = protocol.PlacementCopy, narrowFrame, narrowFrame
	set.Core.MaxFrameBytes, set.Core.MaxInflightBytes = narrowFrame, 32<<10
}

// late lets a member miss the given number of entries. Then it catches up over a narrow link.
func (s *script) late(id protocol.MemberID, entries int) {
	s.t.Helper()
	var others []protocol.MemberID
	for _, m := range s.Members {
		if m.ID != id && m.Up {
			others = append(others, m.ID)
		}
	}
	s.split(others...)
	for range entries {
		s.mustAck(s.putBody(1))
	}
	s.Pass = func(m *protocol.Message) bool {
		return m.From == 1 || m.Type != message.PreVote && m.Type != message.Vote
	}
	s.Net.Narrow(1, id, narrowRate, 2*s.Set.Core.MaxInflightBytes)
	fault.HealLinks(s.World)
}

func lateCoded(set *fault.Settings) {
	narrowFrames(set)
	set.Core.Placement = protocol.PlacementCode
}

// laggard: of five members one is down and one is far behind. The latter responds and catches up, but rows of new
// entries reach it last. Writes must not wait for it, with bodies or without.
func laggard(s *script) {
	const bound = 10 * stageHeartbeat
	s.elect(1)
	s.mustAck(s.put(1))
	s.crash(5)
	s.late(4, 200)
	for s.commit(4)+20 < s.commit(1) && s.Broken == nil {
		began := s.Now()
		ops := []*history.Operation{s.putBody(1), s.put(1)}
		for _, op := range ops {
			s.mustAck(op)
		}
		if took := s.Now() - began; took > bound {
			s.Violate(1, fmt.Errorf("nothing was committed for %s while a member was behind", took))
		}
		s.wait(0.2)
	}
}

// lateAnswers: one of thirty messages to a member is lost, and the member rejects all that come after it. It must catch
// up in the time for the bytes and a few round trips for each loss.
func lateAnswers(s *script) {
	s.elect(1)
	s.mustAck(s.put(1))
	s.late(3, 300)
	s.wait(1)
	n, before := 0, s.Pass
	s.Pass = func(m *protocol.Message) bool {
		if m.To == 3 && m.Type == message.Append && len(m.Entries) > 0 {
			if n++; n%30 == 5 {
				return false
			}
		}
		return before(m)
	}
	began := s.Now()
	for s.commit(3) < s.commit(1) && s.Broken == nil {
		s.wait(1)
		if took := s.Now() - began; took > time.Minute {
			s.Violate(1, fmt.Errorf("after %s a member has %d of %d entries", took, s.commit(3), s.commit(1)))
		}
	}
	s.t.Logf("it took %s", s.Now()-began)
}

func TestALaggardHoldsNobodyUp(t *testing.T) {
	s := newStage(t, 5, "", lateCoded)
	laggard(s)
	s.passes()
}

func TestLateAnswersMeanNothing(t *testing.T) {
	s := newStage(t, 3, "", narrowFrames)
	lateAnswers(s)
	s.passes()
}

func keepsLog(set *fault.Settings) {
	set.SnapshotBytes, set.KeepLogBytes, set.StreamRate = 2000, 400_000, 200
}

// endlessSnapshots: while a snapshot is sent to a member, clients write so much that the log is cut several times.
// The member must still catch up, with two snapshots at most.
func endlessSnapshots(s *script) {
	s.elect(1)
	s.split(1, 2)
	for range 60 {
		s.mustAck(s.put(1))
	}
	require.Positive(s.t, s.Member(1).Inst.Core().Status().First-1, "the log was not cut")
	fault.HealLinks(s.World)
	for began := s.Now(); s.commit(3)+20 < s.commit(1) && s.Broken == nil; {
		s.mustAck(s.put(1))
		s.wait(0.02)
		if s.Events.Of(node.SnapshotStreams) > 2 || s.Now()-began > time.Minute {
			s.Violate(1, fmt.Errorf("%d snapshots were sent within %s, and the member has %d of %d entries",
				s.Events.Of(node.SnapshotStreams), s.Now()-began, s.commit(3), s.commit(1)))
		}
	}
	require.Positive(s.t, s.Events.Of(node.SnapshotStreams))
}

func TestSnapshotsEnd(t *testing.T) {
	s := newStage(t, 3, "", keepsLog)
	endlessSnapshots(s)
	s.passes()
}

func spreadKeepsLog(set *fault.Settings) {
	woven(set)
	keepsLog(set)
	set.Core.Leaders = protocol.LeadersSpread
}

// TestOneSnapshotForAllInstances: a member is behind the logs of three instances, which two others lead. It receives
// one snapshot for all of them.
func TestOneSnapshotForAllInstances(t *testing.T) {
	s := newStage(t, 3, "", spreadKeepsLog)
	s.lead(1, 2, 1)
	s.split(1, 2)
	s.lead(1, 2, 1)
	for range 60 {
		s.mustAck(s.put(1))
		s.mustAck(s.put(2))
	}
	for _, id := range []protocol.InstanceID{1, 2, 3} {
		require.Greater(t, s.Member(1).Of(id).Inst.Core().Status().First, s.Member(3).Of(id).Inst.Core().Status().Last)
	}
	fault.HealLinks(s.World)
	s.until("the member is level", func() bool {
		for _, k := range s.Member(3).InForce {
			if l := s.LeaderOf(k.Instance); l == nil || l.Of(k.Instance).Inst.Core().Status().Commit > k.Inst.Core().Status().Commit {
				return false
			}
		}
		return true
	})
	s.wait(4)
	t.Logf("%d streams, %d taken", s.Events.Of(node.SnapshotStreams), s.Member(3).Exchange.Taken())
	require.EqualValues(t, 1, s.Member(3).Exchange.Taken())
	s.passes()
}

// TestWhatWaitedGoesFirst: responses wait for a narrow link, and are still sent first when it is wide again. The
// judge of promptness must not consider the leader slow.
func TestWhatWaitedGoesFirst(t *testing.T) {
	s := newStage(t, 3, "", nil)
	s.elect(1)
	s.mustAck(s.put(1))
	s.wait(1)
	rate := (&protocol.Message{Type: message.HeartbeatResp}).Size() * int(time.Second/stageHeartbeat) / 2
	for _, id := range []protocol.MemberID{2, 3} {
		s.Net.Narrow(id, 1, rate, 1<<20)
	}
	s.wait(10)
	for _, id := range []protocol.MemberID{2, 3} {
		s.Net.Narrow(id, 1, 0, 0)
	}
	began, op := s.Now(), s.put(1)
	s.mustAck(op)
	require.Greater(t, s.Now()-began, s.Promptness(), "the answer waited")
	s.passes()
}
