package braid_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// TestMembersWithoutAProtocol: options that name no protocol leave it to the log, on a member that starts again and on
// one that joins.
func TestMembersWithoutAProtocol(t *testing.T) {
	t.Parallel()
	for _, began := range []braid.Protocol{
		braid.LCR{}, braid.MultiPaxos{}, braid.MultiPaxos{Quorums: "3/1"}, braid.ISS{},
	} {
		name := braid.NameOf(began)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, func(o *braid.Options) { o.Protocol = began })
			c.led()
			acked := c.fill("first", 2)
			for again, unnamed := range map[string]braid.Protocol{"nil": nil, "empty": braid.Named("")} {
				c.stop(3)
				c.tune = func(o *braid.Options) { o.Protocol = unnamed }
				c.start(c.members[2], false)
				acked = append(acked, c.fill(again, 2)...)
				require.Equal(t, name, c.nodes[3].Status().Protocol)
			}
			if p, fixed := began.(braid.MultiPaxos); fixed && p.Quorums != "" {
				return // a member that joins must be given the quorums
			}
			joiner := braid.Member{ID: 4, PeerURLs: []string{freeURL(t)}}
			c.dirs[4] = t.TempDir()
			changed(t, c.any(), braid.Change{Kind: braid.AddVoter, Member: joiner})
			c.start(joiner, true)
			acked = append(acked, c.fill("joined", 2)...)
			c.verify(acked)
			require.Equal(t, name, c.nodes[4].Status().Protocol)
		})
	}
}
