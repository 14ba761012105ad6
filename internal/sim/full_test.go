package sim

import (
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

// TestAFullDiskMeetsANewLife: a member restarts, and another one cannot record the new incarnation, because its disk
// is full. The two have no link until there is space. No member stops.
func TestAFullDiskMeetsANewLife(t *testing.T) {
	s := newStage(t, 3, "", nil)
	s.elect(1)
	s.mustAck(s.put(1))
	s.wait(1)
	s.fill(1)
	s.crash(3)
	s.start(3)
	s.wait(3)
	require.True(t, s.Member(1).Up)
	require.Less(t, s.Acquainted[device.Pair{From: 1, To: 3}], s.Member(3).Lives)
	s.Member(1).Disk.Full = false
	s.wait(3)
	require.Equal(t, s.Member(3).Lives, s.Acquainted[device.Pair{From: 1, To: 3}])
	s.passes()
}
