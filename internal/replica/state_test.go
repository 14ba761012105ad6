package replica

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// TestAMemberThatCannotFollowTheStateGetsNoLink: it comes back with a version that does not know a command that the
// others applied meanwhile. With a version that does, it has links again. The links are real ones.
func TestAMemberThatCannotFollowTheStateGetsNoLink(t *testing.T) {
	c := &testCluster{t: t, net: newNetwork(), setting: setting{size: 3, durable: true}}
	c.open(t)
	up := func(id, other protocol.MemberID) bool {
		linked, _ := c.running[id].linked()
		return linked(other)
	}
	all := func() bool { return up(1, 3) && up(2, 3) && up(3, 1) && up(3, 2) }
	needs := func(ids ...protocol.MemberID) {
		for _, id := range ids {
			c.machines[id].mu.Lock()
			c.machines[id].needed = 1
			c.machines[id].mu.Unlock()
		}
	}
	c.eventually("links", all)
	needs(1, 2)
	require.NoError(t, c.running[3].Close())
	c.start(3)
	c.eventually("links that are refused", func() bool {
		refused := 0
		for _, id := range []protocol.MemberID{1, 2} {
			for _, p := range c.running[id].Status().Links.Peers {
				if p.ID == 3 && strings.Contains(p.LastError, "state is of version 1 here") {
					refused++
				}
			}
		}
		return refused == 2 && !up(3, 1) && !up(3, 2) && up(1, 2)
	})
	needs(3)
	c.eventually("links again", all)
}
