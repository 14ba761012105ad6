package braid_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// founders are members that were each opened alone, as the only one of a cluster with the same id.
func founders(t *testing.T, size int, protocol string) *cluster {
	c := &cluster{t: t, nodes: map[braid.MemberID]*braid.Node{}, counts: map[braid.MemberID]*counts{}, dirs: map[braid.MemberID]string{}}
	c.tune = func(o *braid.Options) {
		o.Protocol = braid.Named(protocol)
		o.Members = []braid.Member{{ID: o.Self, PeerURLs: []string{"http://" + o.Listen[0]}}}
	}
	for id := braid.MemberID(1); id <= braid.MemberID(size); id++ {
		c.dirs[id] = t.TempDir()
		m := braid.Member{ID: id, PeerURLs: []string{freeURL(t)}}
		c.members = append(c.members, m)
		c.start(m, false)
		for i := range 3 {
			_, err := c.nodes[id].Propose(c.ctx(), fmt.Appendf(nil, "%d-%d", id, i))
			require.NoError(t, err)
		}
	}
	t.Cleanup(func() {
		for id := range c.nodes {
			c.stop(id)
		}
	})
	return c
}

// lineage is that of a member's log.
func (c *cluster) lineage(id braid.MemberID) uint64 { return c.nodes[id].Status().Lineage }

// refuses reports that a member refuses to be joined with another one's log.
func (c *cluster) refuses(at, other braid.MemberID, voter bool) {
	change := braid.Change{Kind: braid.AddLearner, Member: c.members[other-1]}
	if voter {
		change.Kind = braid.AddVoter
	}
	err := c.nodes[at].ChangeMembers(c.ctx(), change)
	var refused *braid.RefusedError
	require.ErrorAs(c.t, err, &refused)
	require.Equal(c.t, braid.ReasonLineage, refused.Reason)
	require.False(c.t, refused.Retryable())
}

// goesOn shows that a member serves as before, and has only its own commands.
func (c *cluster) goesOn(id braid.MemberID, others ...braid.MemberID) {
	_, err := c.nodes[id].Propose(c.ctx(), []byte("more"))
	require.NoError(c.t, err)
	require.NoError(c.t, c.nodes[id].ReadBarrier(c.ctx()))
	require.Equal(c.t, 1, c.counts[id].count(fmt.Sprintf("%d-0", id)))
	for _, o := range others {
		require.Zero(c.t, c.counts[id].count(fmt.Sprintf("%d-0", o)))
	}
}

// TestLogsThatWereFoundedApartAreNotJoined, whichever protocol decides, whichever member is asked, and after each of
// them was started again.
func TestLogsThatWereFoundedApartAreNotJoined(t *testing.T) {
	for _, protocol := range []string{"raft", "multi-paxos", "iss", "slotpaxos", "lcr", "niagara"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			c := founders(t, 2, protocol)
			c.refuses(1, 2, true)
			c.refuses(2, 1, false)
			require.Eventually(t, func() bool { return c.lineage(1) != 0 && c.lineage(2) != 0 }, testTimeout, time.Millisecond)
			require.NotEqual(t, c.lineage(1), c.lineage(2))
			c.refuses(1, 2, true) // before they knew it, they were refused as well
			for id := range c.nodes {
				before := c.lineage(id)
				c.stop(id)
				c.start(c.members[id-1], false)
				c.goesOn(id, 3-id)
				require.Equal(t, before, c.lineage(id))
			}
			c.refuses(1, 2, true)
			c.goesOn(1, 2)
			c.goesOn(2, 1)
		})
	}
}

// TestALogFoundedBehindAnAdditionIsNotJoined: the member was added first, and then its operator founds a cluster with
// it.
func TestALogFoundedBehindAnAdditionIsNotJoined(t *testing.T) {
	c := founders(t, 1, "raft")
	m := braid.Member{ID: 2, PeerURLs: []string{freeURL(t)}}
	c.members, c.dirs[2] = append(c.members, m), t.TempDir()
	require.NoError(t, c.nodes[1].ChangeMembers(c.ctx(), braid.Change{Kind: braid.AddVoter, Member: m}))
	c.start(m, false)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for c.lineage(2) == 0 && ctx.Err() == nil {
		_, err := c.nodes[2].Propose(ctx, []byte("2-0"))
		require.NoError(t, err)
		require.NoError(t, c.nodes[2].ReadBarrier(ctx))
	}
	require.NotEqual(t, c.lineage(1), c.lineage(2))
	c.goesOn(1, 2)
	c.refuses(1, 2, true)
	require.False(t, errors.Is(c.nodes[2].ReadBarrier(c.ctx()), braid.ErrStopped))
}

// TestAMemberOfAnotherClusterStopsNobody: two clusters have the same id and the same members, and a member of the one
// is told the address of the other. It takes who answers for a member that lost its directory. Neither stops because of
// that.
func TestAMemberOfAnotherClusterStopsNobody(t *testing.T) {
	t.Parallel()
	a, b := newCluster(t, 3, nil), newCluster(t, 3, nil)
	for _, c := range []*cluster{a, b} {
		c.leader()
		for id := range c.nodes {
			require.Eventually(t, func() bool { return c.lineage(id) != 0 }, testTimeout, time.Millisecond)
		}
	}
	log := &lines{}
	b.stop(2)
	b.moves(1, a.members[0].PeerURLs[0])
	b.tune = func(o *braid.Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) }
	b.start(b.members[1], false)
	require.Eventually(t, func() bool { return log.count("the members have two logs, which were founded apart") > 0 }, testTimeout, time.Millisecond)
	for _, c := range []*cluster{a, b} {
		for id, n := range c.nodes {
			_, err := n.Propose(c.ctx(), []byte("more"))
			require.NoError(t, err, "member %s", id)
		}
	}
}
