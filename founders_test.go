package braid_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// TestFoundersOfTwoClustersAreNotJoined: two members are founders of a cluster of three, and the third one is a founder
// of a cluster of five, by an error of the operator. Each of the two clusters has a majority, so there are two logs
// from the first entry on, before either has a lineage. Nothing of one is ever in the other, and both serve.
func TestFoundersOfTwoClustersAreNotJoined(t *testing.T) {
	for _, protocol := range []string{"raft", "multi-paxos", "iss", "slotpaxos", "niagara"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			c := &cluster{t: t, nodes: map[braid.MemberID]*braid.Node{}, counts: map[braid.MemberID]*counts{}, dirs: map[braid.MemberID]string{}}
			for id := braid.MemberID(1); id <= 5; id++ {
				c.members, c.dirs[id] = append(c.members, braid.Member{ID: id, PeerURLs: []string{freeURL(t)}}), t.TempDir()
			}
			c.tune = func(o *braid.Options) {
				if o.Protocol = braid.Named(protocol); o.Self < 3 {
					o.Members = o.Members[:3]
				}
			}
			t.Cleanup(func() {
				for _, n := range c.nodes {
					n.Close()
				}
			})
			for _, m := range c.members {
				c.start(m, false)
			}
			for i := range 5 {
				for _, id := range []braid.MemberID{1, 2, 3, 4, 5} {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					_, err := c.nodes[id].Propose(ctx, fmt.Appendf(nil, "%d-%d", id, i))
					cancel()
					require.NoError(t, err, "member %s", id)
				}
			}
			for id, n := range c.nodes {
				require.NoError(t, n.ReadBarrier(c.ctx()))
				for from := range c.nodes {
					require.Equal(t, (id < 3) == (from < 3), c.counts[id].count(fmt.Sprintf("%d-0", from)) > 0, "of %s at %s", from, id)
				}
			}
			require.NotEqual(t, c.lineage(1), c.lineage(3))
			require.Equal(t, c.lineage(3), c.lineage(5))
		})
	}
}
