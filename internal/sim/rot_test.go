package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// spoilRecord damages the record of an entry on a member's disk.
func (s *script) spoilRecord(id protocol.MemberID, index protocol.Index) {
	s.t.Helper()
	m := s.Member(id)
	record, err := m.Log.ReadEntry(uint32(node.FirstInstance), uint64(index))
	require.NoError(s.t, err)
	require.True(s.t, m.Disk.Decay(node.LogDir, record, len(record)-1, 1))
}

func tinyCache(set *fault.Settings) { set.Core.CacheBytes, set.SnapshotBytes = 1, 1<<30 }

// TestLeaderCannotRead: a follower comes back, and the leader cannot read an entry from its log that is missing on
// the follower. The follower gets a snapshot. The leader's log is cut after the damage.
func TestLeaderCannotRead(t *testing.T) {
	s := newStage(t, 3, "", tinyCache)
	s.elect(1)
	s.mustAck(s.put(1))
	s.wait(2) // the membership names the logs of all members
	s.split(3)
	for range 1200 { // more than the cache holds
		s.mustAck(s.put(1))
	}
	bad := s.commit(3) + 10
	s.wait(1)
	s.spoilRecord(1, bad)
	s.Pass = func(m *protocol.Message) bool { return m.From != 3 || m.Type != message.PreVote }
	fault.HealLinks(s.World)
	s.until("member 3 is level", func() bool { return s.commit(3) == s.commit(1) })
	require.Positive(t, s.Events.Of(node.EntriesUnreadable))
	require.Positive(t, s.Events.Of(node.SnapshotsInstalled))
	s.until("the log is cut behind the damage", func() bool { return s.Member(1).Inst.Core().Status().First > bad })
	s.crash(1)
	s.start(1)
	s.mustAck(s.put(2))
	s.passes()
}

// TestScrubCutsBehindDamage: a damaged record is applied on every member, and in no snapshot yet. The scrub detects
// it. The member can still start afterwards.
func TestScrubCutsBehindDamage(t *testing.T) {
	s := newStage(t, 3, "", func(set *fault.Settings) { tinyCache(set); set.Core.Placement = protocol.PlacementCopy })
	s.elect(1)
	for range 600 {
		s.mustAck(s.put(1))
	}
	s.wait(1)
	s.spoilRecord(1, 5) // applied everywhere, and in no snapshot
	s.Member(1).ScrubLater(s.Set.Election)
	s.until("the log is cut behind the damage", func() bool { return s.Member(1).Inst.Core().Status().First > 5 })
	s.crash(1)
	s.start(1)
	s.mustAck(s.put(2))
	s.passes()
}

// TestSnapshotGoesBad: the newest snapshot is damaged, and the member restarts. The snapshot before it and the log
// suffice.
func TestSnapshotGoesBad(t *testing.T) {
	s := newStage(t, 3, "", func(set *fault.Settings) { set.SnapshotBytes = 2000 })
	s.elect(1)
	fell := 0
	for n := range 400 {
		s.mustAck(s.put(1))
		before := s.Events.Of(fault.RecordsDamaged)
		if n%20 == 19 {
			s.wait(1)
			fault.RotSnapshot(s.World, s.Member(2))
		}
		if s.Events.Of(fault.RecordsDamaged) == before {
			continue
		}
		fell++
		s.crash(2)
		s.start(2)
	}
	require.Greater(t, fell, 2)
	s.passes()
}

// TestDamageIsCutWhileASnapshotIsSent: a member is sent a snapshot, and the leader cannot read a later entry. The
// leader still cuts its log there, because the entries up to there are of no use to that member.
func TestDamageIsCutWhileASnapshotIsSent(t *testing.T) {
	s := newStage(t, 3, "", func(set *fault.Settings) { keepsLog(set); set.BatchBytes = 100 })
	s.elect(1)
	s.split(1, 2)
	for range 60 {
		s.mustAck(s.put(1))
	}
	fault.HealLinks(s.World)
	sends := func() protocol.Index { return s.Member(1).Exchange.Streaming(3, node.FirstInstance) }
	s.until("member 3 is sent a snapshot", func() bool { return sends() > 0 })
	for range 5 {
		s.mustAck(s.put(1))
	}
	bad := s.commit(1)
	require.Greater(t, bad, sends())
	s.spoilRecord(1, bad)
	s.Member(1).ScrubLater(s.Set.Election)
	first := func() protocol.Index { return s.Member(1).Inst.Core().Status().First }
	for first() <= bad && s.Broken == nil {
		s.mustAck(s.put(1))
	}
	require.Positive(t, sends(), "the snapshot is still under way")
	require.Less(t, sends(), first()-1, "the log is cut beyond it")
	s.until("member 3 is level", func() bool { return s.commit(3) == s.commit(1) })
	s.passes()
}
