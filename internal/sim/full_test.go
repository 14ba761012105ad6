package sim

import (
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// fill fills the disk of a member.
func (s *script) fill(id protocol.MemberID) {
	d := s.Member(id).Disk
	d.Full, d.Capacity = true, d.Used()
}

// TestAMemberStartsOnAFullDisk: a start replaces small files. On a disk without free space it uses the space of a
// file reserved for this, even if others take all space after each start.
func TestAMemberStartsOnAFullDisk(t *testing.T) {
	s := newStage(t, 3, "", nil)
	s.elect(1)
	s.mustAck(s.put(1))
	s.fill(2)
	for range 12 {
		s.crash(2)
		require.True(t, s.Member(2).StartsFull())
		s.start(2)
		require.True(t, s.Member(2).Up)
		s.mustAck(s.put(1))
	}
	require.Equal(t, 12, s.Events.Of(node.StartsOnFullDisks))
	s.Member(2).Disk.Full = false
	s.passes()
}

// TestAFullDiskMeetsANewIncarnation: members restart, and another one records their new incarnations although its disk
// is full: the ballast has the space, even if others take all space after each link. Without the ballast there is no
// link until there is space. No member stops.
func TestAFullDiskMeetsANewIncarnation(t *testing.T) {
	s := newStage(t, 3, "", nil)
	s.elect(1)
	s.mustAck(s.put(1))
	s.wait(1)
	s.fill(1)
	restart := func() {
		s.crash(3)
		s.start(3)
		s.wait(3)
		require.True(t, s.Member(1).Up)
	}
	met := func() uint64 { return s.Acquainted[device.Pair{From: 1, To: 3}] }
	for range 20 {
		restart()
		require.Equal(t, s.Member(3).Lives, met())
		s.fill(1)
	}
	require.NoError(t, s.Member(1).Disk.Remove(path.Join(device.Root, "ballast")))
	s.fill(1)
	restart()
	require.Less(t, met(), s.Member(3).Lives)
	s.Member(1).Disk.Full = false
	s.wait(3)
	require.Equal(t, s.Member(3).Lives, met())
	s.passes()
}

// TestAMemberMeetsOthersOnAFullDisk: the disk is full before the member has met another one, and before its log has a
// lineage. The member learns both on the full disk, restarts, and serves reads.
func TestAMemberMeetsOthersOnAFullDisk(t *testing.T) {
	s := newStage(t, 3, "", nil)
	s.fill(2)
	s.elect(1)
	s.mustAck(s.put(1))
	s.wait(1)
	s.fill(2)
	s.crash(2)
	s.start(2)
	s.wait(3)
	s.mustAck(s.get(2))
	s.passes()
}
