package braid_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// others are the options of members that restart or join, whatever the cluster began with: all are profiles of one
// core.
var others = []braid.Protocol{
	braid.Niagara{Instances: 7, Leaders: braid.LeadersSpread}, braid.LCR{}, braid.CRaft{K: 2},
	braid.LCR{Coded: &braid.CRaft{}}, braid.Raft{},
}

// TestMembersWithOtherProtocolNames: the log says how it began and which settings it has. So a member restarts and
// joins with the name of each protocol of the same core, also after the cluster was tuned. It has the same settings as
// members that have the first options, and answers alike.
func TestMembersWithOtherProtocolNames(t *testing.T) {
	t.Parallel()
	steps := []map[string]string{nil, {"lanes": "true"}, {"lanes": "false", "placement": "code"},
		{"placement": "copy", "instances": "3"}, {"instances": "2"}}
	for _, began := range []braid.Protocol{braid.Raft{}, braid.LCR{}, braid.Niagara{Instances: 2}} {
		name := braid.NameOf(began)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var logs logged
			first := func(o *braid.Options) {
				o.Protocol, o.Limits.SnapshotBytes = began, 32<<10
				o.Logger = slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelWarn}))
			}
			c := newCluster(t, 3, first)
			c.led()
			acked := c.fill("first", 2)
			for i, set := range steps {
				_, err := c.nodes[braid.MemberID(i%3+1)].Tune(c.ctx(), braid.Tuning{Set: set})
				require.NoError(t, err, "%v", set)
				m := c.members[i%len(c.members)]
				c.stop(m.ID)
				other := others[i]
				c.tune = func(o *braid.Options) {
					first(o)
					o.Protocol = other
				}
				c.start(m, false)
				acked = append(acked, c.fill(string(rune('a'+i)), 3)...)
				c.alike(name + " with a member of " + braid.NameOf(other))
			}
			c.verify(acked)
			require.Contains(t, logs.String(), "setting=protocol here=")

			joiner := braid.Member{ID: 4, PeerURLs: []string{freeURL(t)}}
			c.dirs[4] = t.TempDir()
			changed(t, c.any(), braid.Change{Kind: braid.AddVoter, Member: joiner})
			c.tune = func(o *braid.Options) {
				first(o)
				o.Protocol, o.PeerURLs = others[len(name)%2], joiner.PeerURLs
			}
			c.start(joiner, true)
			c.verify(append(acked, c.fill("joined", 2)...))
			c.alike("a joiner")
			c.refusesOthers(joiner)
		})
	}
}

// alike waits until all members tell the same of the cluster.
func (c *cluster) alike(why string) {
	c.t.Helper()
	type told struct {
		protocol, order, placement string
		version                    uint64
		instances                  int
	}
	var all []told
	require.Eventually(c.t, func() bool {
		all = nil
		for _, n := range c.nodes {
			s := n.Status()
			all = append(all, told{s.Protocol, s.Order, s.Placement, s.Profile.Version, len(s.Instances)})
		}
		return !slices.ContainsFunc(all, func(x told) bool { return x != all[0] })
	}, testTimeout, 5*time.Millisecond, "%s: %v", why, &all)
	for _, n := range c.nodes {
		require.Equal(c.t, c.any().Tunables(), n.Tunables(), why)
	}
}

// refusesOthers opens a member's directory with protocols of another core, or of another order, and asks to join so.
func (c *cluster) refusesOthers(m braid.Member) {
	c.t.Helper()
	c.stop(m.ID)
	before := c.tune
	for _, name := range []string{"iss", "multi-paxos", "multi-raft"} {
		c.tune = func(o *braid.Options) {
			before(o)
			o.Protocol = braid.Named(name)
		}
		require.ErrorAs(c.t, c.open(m, false), new(*braid.LogKindError), name)
		var wrong *braid.OptionError
		dir := c.dirs[m.ID]
		c.dirs[m.ID] = c.t.TempDir()
		require.ErrorAs(c.t, c.open(m, true), &wrong, name)
		require.Contains(c.t, wrong.Error(), "the cluster that this member is to join has a log of ")
		c.dirs[m.ID] = dir
	}
	c.tune = before
}
