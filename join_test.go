package braid_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// TestAJoinerFindsItsCluster, by the peer URLs under which it was added, and with what it is told it
// joins, in one order of instances as in another.
func TestAJoinerFindsItsCluster(t *testing.T) {
	for name, instances := range map[string]int{"raft": 0, "niagara": 3} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1, func(o *braid.Options) {
				o.Protocol = braid.Named(name, fmt.Sprint("instances=", instances))
			})
			url := c.members[0].PeerURLs[0]
			added := braid.Member{ID: 9, PeerURLs: []string{freeURL(t), freeURL(t)}}
			asked := []string{added.PeerURLs[1] + "/", added.PeerURLs[0]}
			_, err := braid.FindRunning(c.ctx(), url, nil, asked)
			require.ErrorIs(t, err, braid.ErrNotAdded)
			_, err = braid.FindRunning(c.ctx(), "https"+url[len("http"):], nil, asked)
			require.ErrorContains(t, err, "not asked in clear text")
			changed(t, c.any(), braid.Change{Kind: braid.AddVoter, Member: added})
			found, err := braid.FindRunning(c.ctx(), url, nil, asked)
			require.NoError(t, err)
			require.EqualValues(t, 42, found.Cluster)
			require.EqualValues(t, 9, found.Self)
			require.Equal(t, instances, found.Begun)
			require.Equal(t, "raft "+c.any().Status().Order, fmt.Sprint(found.Kind.Core, " ", found.Kind.Order))
			require.Len(t, found.Members, 2)
			require.True(t, found.Members[1].Joining)
			for _, wrong := range [][]string{nil, added.PeerURLs[:1], {url, added.PeerURLs[0]}} {
				_, err := braid.FindRunning(c.ctx(), url, nil, wrong)
				require.ErrorIs(t, err, braid.ErrNotAdded)
			}

			c.members, c.dirs[added.ID] = found.Members, t.TempDir()
			c.start(found.Members[1], true)
			_, err = c.nodes[added.ID].Propose(c.ctx(), []byte("a"))
			require.NoError(t, err)
		})
	}
}

// TestAJoinerNeedsNoNumbers: it has an address of the cluster, and a directory that knows the rest once it has started.
func TestAJoinerNeedsNoNumbers(t *testing.T) {
	t.Parallel()
	for _, protocol := range []braid.Protocol{braid.Raft{}, braid.Niagara{Instances: 3}} {
		c := newCluster(t, 1, func(o *braid.Options) { o.Protocol = protocol })
		if _, ok := protocol.(braid.Niagara); ok {
			protocol = braid.Niagara{} // the others tell how many instances there are
		}
		c.leader()
		added, url := braid.Member{ID: 9, PeerURLs: []string{freeURL(t)}}, c.members[0].PeerURLs
		changed(t, c.any(), braid.Change{Kind: braid.AddVoter, Member: added})
		o := braid.Options{
			Join: true, Members: []braid.Member{{PeerURLs: url}}, Dir: t.TempDir(), Protocol: protocol,
			Listen:    []string{added.PeerURLs[0][len("http://"):]},
			Heartbeat: 50 * time.Millisecond, ElectionTimeout: 500 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		}
		require.NoError(t, o.CheckDir())
		for i := range 3 {
			if i == 2 { // neither the cluster's address nor any id is needed any more
				o.Members, o.Join = nil, false
			}
			n, err := braid.Open(o, newCounts())
			require.NoError(t, err)
			require.NoError(t, n.ReadBarrier(c.ctx()))
			st := n.Status()
			require.EqualValues(t, 9, st.Self)
			require.EqualValues(t, 42, st.Cluster)
			require.Len(t, st.Members, 2)
			require.NoError(t, n.Close())
			require.NoError(t, o.CheckDir())
		}
	}
}

// TestAJoinerBelievesOneCluster: addresses of several clusters, or ids that the cluster contradicts, are refused before
// anything is written.
func TestAJoinerBelievesOneCluster(t *testing.T) {
	t.Parallel()
	added := braid.Member{ID: 9, PeerURLs: []string{freeURL(t)}}
	var urls []string
	for i := range 2 {
		m := braid.Member{ID: 1, PeerURLs: []string{freeURL(t)}}
		n, err := braid.Open(braid.Options{
			Self: 1, Cluster: uint64(42 + i), Members: []braid.Member{m}, Dir: t.TempDir(), Listen: []string{m.PeerURLs[0][len("http://"):]},
			Heartbeat: 20 * time.Millisecond, ElectionTimeout: 200 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		}, newCounts())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, n.Close()) })
		require.NoError(t, n.ChangeMembers(t.Context(), braid.Change{Kind: braid.AddLearner, Member: added}))
		urls = append(urls, m.PeerURLs[0])
	}
	o := braid.Options{
		Join: true, Dir: filepath.Join(t.TempDir(), "d"), Listen: []string{added.PeerURLs[0][len("http://"):]},
		Logger: slog.New(slog.DiscardHandler),
	}
	for _, c := range []struct {
		cluster uint64
		ask     []string
		wrong   string
	}{
		{ask: urls, wrong: "are of the clusters 2a and 2b"},
		{cluster: 7, ask: urls[:1], wrong: "is 7, and the member at"},
		{wrong: "have no peer URL to ask"},
	} {
		o.Cluster, o.Members = c.cluster, []braid.Member{{PeerURLs: c.ask}}
		_, err := braid.Open(o, newCounts())
		require.ErrorContains(t, err, c.wrong)
		require.ErrorAs(t, err, new(*braid.OptionError))
		require.NoDirExists(t, o.Dir)
	}
	// An id is enough to find out which of the two is meant.
	o.Cluster, o.Members = 43, []braid.Member{{PeerURLs: urls}}
	n, err := braid.Open(o, newCounts())
	require.NoError(t, err)
	require.EqualValues(t, 9, n.Status().Self)
	require.NoError(t, n.Close())
}
