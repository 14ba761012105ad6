package braid_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// Founders with different zones are of different clusters. Without zones a cluster has the id that it always had.
func TestZonesOfFounders(t *testing.T) {
	of := func(zones ...string) uint64 {
		return braid.ClusterIDOf([]braid.Member{{ID: 2, Name: "b", Zone: zones[1]}, {ID: 1, Name: "a", Zone: zones[0]}}, "x")
	}
	require.NotEqual(t, of("", ""), of("east", ""))
	require.NotEqual(t, of("east", "west"), of("west", "east"))
	require.EqualValues(t, uint64(15676744807814228278), of("", ""))
}

// A cluster whose quorums are by zones, and whose voters have none, gets zones in one change of all voters: a zone of
// one voter alone is refused.
func TestZonesOfAllVotersAtOnce(t *testing.T) {
	for _, name := range []string{"multi-paxos", "iss"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, func(o *braid.Options) { o.Protocol = braid.Named(name, "quorums=zones:3/1/0") })
			acked := c.fill("before", 20)
			var changes []braid.Change
			for i, m := range c.members {
				changes = append(changes, braid.Change{Kind: braid.UpdateMember, Member: braid.Member{ID: m.ID,
					Zone: []string{"east", "west", "north"}[i]}})
			}
			var refused *braid.RefusedError
			require.ErrorAs(t, c.any().ChangeMembers(c.ctx(), changes[0]), &refused)
			require.Equal(t, "the cluster's quorums are by zones: every voter needs one, and their number is fixed",
				refused.Reason.String())
			changed(t, c.any(), changes...)
			acked = append(acked, c.fill("after", 20)...)
			c.stop(c.leader())
			acked = append(acked, c.fill("one down", 20)...)
			c.verify(acked)
			for _, m := range c.any().Status().Members {
				require.NotEmpty(t, m.Zone)
			}

			joins := braid.Member{ID: 4, PeerURLs: []string{freeURL(t)}}
			c.dirs[joins.ID] = t.TempDir()
			c.start(c.members[slices.IndexFunc(c.members, func(m braid.Member) bool { return c.nodes[m.ID] == nil })], false)
			changed(t, c.any(), braid.Change{Kind: braid.AddVoter, Member: joins})
			c.members = append(c.members, joins)
			c.start(joins, true)
			update := braid.Change{Kind: braid.UpdateMember, Member: braid.Member{ID: joins.ID, Zone: "south"}}
			require.ErrorAs(t, c.any().ChangeMembers(c.ctx(), update), &refused, "a fourth zone")
			update.Member.Zone = "west"
			changed(t, c.any(), update)
			require.Eventually(t, func() bool { return !c.any().Status().Members[3].Learner }, testTimeout, 5*time.Millisecond)
		})
	}
}

// Quorums that do not fit the zones of the first members are refused before anything is written.
func TestZonesThatDoNotFitTheQuorums(t *testing.T) {
	for zones, want := range map[string]string{
		"a,b,b": "quorums zones:3/1/0: the voters are in 2 zones",
		"a,b,":  "quorums zones:3/1/0: some of the voters have no zone",
		"a,b,/": "the zone is not a name",
	} {
		o := braid.Options{Self: 1, Cluster: 42, Dir: t.TempDir(), Listen: []string{"127.0.0.1:1"},
			Protocol: braid.Named("iss", "quorums=zones:3/1/0")}
		for i, zone := range strings.Split(zones, ",") {
			o.Members = append(o.Members, braid.Member{ID: braid.MemberID(i + 1), PeerURLs: []string{"http://127.0.0.1:1"},
				Zone: zone})
		}
		_, err := braid.Open(o, newCounts())
		var wrong *braid.OptionError
		require.ErrorAs(t, err, &wrong, "%v", err)
		require.ErrorContains(t, err, want)
	}
}

// Leaders that are spread are in different zones. By their ids they would both be in the first one.
func TestLeadersAreSpreadOverZones(t *testing.T) {
	t.Parallel()
	zones := []string{"east", "east", "west", "west"}
	c := newCluster(t, 4, func(o *braid.Options) {
		o.Protocol = braid.Named("niagara", "instances=2", "leaders=spread")
		for i := range o.Members {
			o.Members[i].Zone = zones[i]
		}
	})
	require.Eventually(t, func() bool {
		st := c.any().Status()
		return st.Instances[0].Leader == 1 && st.Instances[1].Leader == 3
	}, testTimeout, 5*time.Millisecond)
}
