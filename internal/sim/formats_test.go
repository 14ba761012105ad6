package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/format"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// A member that joins with a version that does not know the format of the others gets no link, and holds up nothing.
// With a later version it joins.
func TestAJoinerOfAnEarlierVersionGetsNoLink(t *testing.T) {
	s := newStage(t, 3, "", nil)
	const later = format.First + 1
	joiner := node.NewMember(&s.Environment, 4)
	joiner.Join = true
	s.Members = append(s.Members, joiner)
	s.start(4)
	s.wait(1)
	s.crash(4)
	s.elect(1)
	for id := protocol.MemberID(1); id <= 3; id++ {
		s.crash(id)
		s.Member(id).Newest = later
		s.start(id)
		s.wait(4)
	}
	// Simulated members learn a raised format with the next change of a leader or of the membership.
	for id := protocol.MemberID(1); id <= 3; id++ {
		for _, m := range s.Members[:3] {
			m.Step(protocol.Transfer{To: id})
		}
		s.until("it leads", func() bool { return roleOf(s.Member(id)) == protocol.Leader })
	}
	for _, m := range s.Members[:3] {
		s.until("the later format is written", func() bool { return m.Handshakes.Format() == later })
	}
	s.wait(2)
	leader := s.Member(3)
	added := []protocol.Change{{Kind: protocol.AddVoter, Member: protocol.Member{ID: 4}}}
	changeAt(leader, leader.Witness.Latest.Config.Joins(added), func(err error) { s.Violate(leader.ID, err) })
	s.start(4)
	s.wait(5)
	require.Positive(t, s.Events.Of(node.LinksRefusedByFormat))
	require.False(t, leader.Witness.Latest.Config.Voter(4))
	s.mustAck(s.put(leader.ID))
	s.crash(4)
	joiner.Newest = later
	s.start(4)
	s.until("4 is a voter", func() bool { return leader.Witness.Latest.Config.Voter(4) })
	s.passes()
}
