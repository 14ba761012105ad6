package braid_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// TestDial: members connect over the program's own network, here sockets in the file system, and so does a member that
// joins.
func TestDial(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket := func(address string) string { return filepath.Join(dir, address) }
	c := newMembers(t, 3, func(o *braid.Options) {
		o.Listen = nil
		l, err := net.Listen("unix", socket(fmt.Sprintf("m%d:1", o.Self)))
		require.NoError(t, err)
		o.Listeners = []net.Listener{l}
		o.PeerURLs = []string{fmt.Sprintf("http://m%d:1", o.Self)}
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket(address))
		}
		if o.Join { // it asks for the ids
			o.Self, o.Cluster = 0, 0
			o.Members = []braid.Member{{PeerURLs: o.Members[0].PeerURLs}}
		}
	})
	for i := range c.members {
		c.members[i].PeerURLs = []string{fmt.Sprintf("http://m%d:1", i+1)}
	}
	for _, m := range c.members {
		c.start(m, false)
	}
	_, err := c.nodes[3].Propose(c.ctx(), []byte("first"))
	require.NoError(t, err)

	fourth := braid.Member{ID: 4, PeerURLs: []string{"http://m4:1"}}
	require.NoError(t, c.nodes[1].ChangeMembers(c.ctx(), braid.Change{Kind: braid.AddLearner, Member: fourth}))
	c.dirs[4] = t.TempDir()
	c.start(fourth, true)
	require.NoError(t, c.nodes[4].ReadBarrier(c.ctx()))
	require.Equal(t, 1, c.counts[4].count("first"))
}
