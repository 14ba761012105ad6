package replica

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/protocol"
)

// TestALinkFromBeforeTheLineageIsChecked: two members have links from a time when neither of them knew the lineage of
// its log. While both have the same log the links stay. When one of them learns that its log is a different one, the
// links end on both sides, and are not opened again. Both members continue. The links are real ones.
func TestALinkFromBeforeTheLineageIsChecked(t *testing.T) {
	c := &testCluster{t: t, net: newNetwork(), setting: setting{size: 2}}
	c.open(t)
	lineage := func(id protocol.MemberID) uint64 { return c.running[id].who.lineage() }
	up := func(id protocol.MemberID) bool {
		linked, _ := c.running[id].linked()
		return linked(3 - id)
	}
	c.eventually("one lineage", func() bool { return lineage(1) != 0 && lineage(1) == lineage(2) && up(1) && up(2) })
	for _, r := range c.running {
		for _, p := range r.Status().Links.Peers {
			require.Empty(t, p.LastError)
		}
	}

	second := c.running[2]
	second.who.mu.Lock()
	second.who.handshakes = cluster.NewHandshakes(cluster.NewRegister(second.dir.Own), cluster.Birth{},
		handshakeWorld{second})
	require.NoError(t, second.who.handshakes.Relate(1, 0, 0), "a link of before")
	require.NoError(t, second.who.handshakes.Relate(3, 7, 0), "what it learns")
	second.who.mu.Unlock()
	second.who.checkEarly()
	for _, r := range c.running {
		c.eventually("links that are refused", func() bool {
			s := r.Status().Links
			return strings.Contains(s.Peers[0].LastError, "lineage")
		})
		require.NoError(t, r.ctx.Err())
	}
	require.False(t, up(1) || up(2))
}

// open starts members with real links, which they have at the same addresses when they start again.
func (c *testCluster) open(t *testing.T) {
	c.disks, c.machines, c.running = map[protocol.MemberID]vfs.FS{}, map[protocol.MemberID]*machine{},
		map[protocol.MemberID]*Replica{}
	listeners := map[protocol.MemberID]net.Listener{}
	for i := range c.size {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		id := protocol.MemberID(i + 1)
		listeners[id], c.disks[id] = l, vfs.NewMem()
		c.members = append(c.members, protocol.Member{ID: id, PeerURLs: []string{"http://" + l.Addr().String()}})
	}
	c.tune = func(o *Options) {
		l := listeners[o.Self]
		if delete(listeners, o.Self); l == nil {
			var err error
			l, err = net.Listen("tcp", strings.TrimPrefix(c.members[o.Self-1].PeerURLs[0], "http://"))
			require.NoError(t, err)
		}
		o.Listen, o.newLinks = []net.Listener{l}, nil
	}
	for _, m := range c.members {
		c.start(m.ID)
		t.Cleanup(func() { require.NoError(t, c.running[m.ID].Close()) })
	}
}

func (c *testCluster) eventually(what string, ok func() bool) {
	c.t.Helper()
	require.Eventually(c.t, ok, 20*time.Second, time.Millisecond, what)
}
