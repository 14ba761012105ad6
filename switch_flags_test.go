package braid_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// TestAnyFlagsFollowASwitch: behind a switch members start again with the flags of the first protocol, of the new one
// and of others, also one that was away meanwhile, and a new member joins with any. Before it another core is refused.
func TestAnyFlagsFollowASwitch(t *testing.T) {
	t.Parallel()
	flags := "raft"
	c := newCluster(t, 3, func(o *braid.Options) { o.Protocol = braid.Named(flags) })
	acked := c.fill("begin ", 3)
	c.stop(3)
	c.unlinked(3)
	_, err := c.nodes[1].Switch(c.ctx(), braid.Switch{Protocol: "iss"})
	require.ErrorContains(t, err, "earlier version", "the one that is away may run one")
	flags = "iss"
	require.ErrorAs(t, c.open(c.members[2], false), new(*braid.LogKindError))
	flags = "raft"
	c.start(c.members[2], false)
	require.NoError(t, c.nodes[3].ReadBarrier(c.ctx()))
	change := func(protocol string) {
		require.Eventually(t, func() bool { // the leader may not have its link with the member that restarted yet
			_, err := c.nodes[1].Switch(c.ctx(), braid.Switch{Protocol: protocol})
			var refused *braid.RefusedError
			if errors.As(err, &refused) && refused.Retryable() {
				return false
			}
			require.NoError(t, err)
			return true
		}, testTimeout, 5*time.Millisecond)
		acked = append(acked, c.fill(protocol, 3)...)
	}
	change("iss")
	c.stop(3)
	change("multi-paxos")
	c.start(c.members[2], false) // it is not behind the last seal
	require.NoError(t, c.nodes[3].ReadBarrier(c.ctx()))
	require.Equal(t, "multi-paxos", c.nodes[3].Status().Protocol)
	for i, name := range []string{"iss", "raft", "multi-paxos"} {
		c.stop(braid.MemberID(i + 1))
		flags = name
		c.start(c.members[i], false)
		require.NoError(t, c.nodes[braid.MemberID(i+1)].ReadBarrier(c.ctx()))
	}
	for i, name := range []string{"raft", "iss"} {
		m := braid.Member{ID: braid.MemberID(8 + i), PeerURLs: []string{freeURL(t)}}
		changed(t, c.any(), braid.Change{Kind: braid.AddVoter, Member: m})
		found, err := braid.FindRunning(c.ctx(), c.members[0].PeerURLs[0], nil, m.PeerURLs)
		require.NoError(t, err)
		require.True(t, found.Sealed)
		require.Equal(t, "multi-paxos", found.Kind.Core)
		flags, c.members, c.dirs[m.ID] = name, found.Members, t.TempDir()
		c.start(m, true)
		require.NoError(t, c.nodes[m.ID].ReadBarrier(c.ctx()))
		c.stop(m.ID)
		c.start(m, true)
		require.NoError(t, c.nodes[m.ID].ReadBarrier(c.ctx()))
		require.Equal(t, "multi-paxos", c.nodes[m.ID].Status().Protocol)
	}
	acked = append(acked, c.fill("end ", 3)...)
	c.verify(acked)
}
