package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/iss"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/protocol"
)

// hubs is a cluster of five in which only members 2 and 3 have links with all others: each other member has links
// with these two.
func hubs(t *testing.T, p string, mutant protocol.Mutant) *script {
	s := newStage(t, 5, "", func(set *fault.Settings) {
		set.Protocol = registry.Find(p)
		set.Core.MaxFrameEntries, set.Core.Mutant = 0, mutant
	})
	s.until("somebody leads", func() bool { return s.Leader() != nil })
	s.mustAck(s.put(2))
	s.wait(0.2)
	fault.OnlyLinksOf(s.World, 2, 3)
	return s
}

// took returns the latency of a write at a member.
func (s *script) takes(id protocol.MemberID) time.Duration {
	began := s.Now()
	s.mustAck(s.put(id))
	return s.Now() - began
}

// TestMembersWithAllLinksServe: members with links to all others serve at once, with one leader and with many.
func TestMembersWithAllLinksServe(t *testing.T) {
	for _, p := range []string{"raft", "multi-paxos", "iss"} {
		s := hubs(t, p, "")
		for i := range 20 {
			require.LessOrEqual(t, s.takes(protocol.MemberID(2+i%2)), stageHeartbeat, "%s, write %d", p, i)
		}
	}
}

// writeAround lets a client write at members of ISS that have no link with two leaders. It returns the latency of the
// slowest write.
func writeAround(s *script) (most time.Duration) {
	for i := range 20 {
		most = max(most, s.takes([]protocol.MemberID{1, 4, 5}[i%3]))
		s.wait(0.1)
	}
	return most
}

// TestLeadersWithoutALinkHearOfValues: a leader fills its slots before a value of a member to which it has no link,
// without waiting until it is suspected.
func TestLeadersWithoutALinkHearOfValues(t *testing.T) {
	s := hubs(t, "iss", "")
	require.LessOrEqual(t, writeAround(s), 4*stageHeartbeat)
	s.passes()
	require.Greater(t, writeAround(hubs(t, "iss", iss.MutantUsedUnheard)), stageElection/2)
}
