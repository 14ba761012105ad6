package braid_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// moves gives a member another address, with which it starts. The others are not told.
func (c *cluster) moves(id braid.MemberID, url string) {
	i := slices.IndexFunc(c.members, func(m braid.Member) bool { return m.ID == id })
	c.members = slices.Clone(c.members)
	c.members[i].PeerURLs = []string{url}
}

// dialed waits until a member has a link with another one at a URL.
func (c *cluster) dialed(from, to braid.MemberID, url string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		for _, p := range c.nodes[from].Status().Links.Peers {
			if p.ID == to {
				return p.Connected && slices.Equal(p.Addrs, []string{strings.TrimPrefix(url, "http://")})
			}
		}
		return false
	}, testTimeout, 5*time.Millisecond, "no link from %s to %s at %s", from, to, url)
}

// TestAllMembersMove starts all members at other addresses, which are in the Options of each and not in the log.
func TestAllMembersMove(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.leader()
	acked := c.fill("before", 5)
	for _, m := range c.members {
		c.stop(m.ID)
		c.moves(m.ID, freeURL(t))
	}
	for _, m := range c.members {
		c.start(m, false)
	}
	c.leader()
	c.verify(append(acked, c.fill("after", 5)...))
	for _, m := range c.members {
		for _, o := range c.members {
			if o.ID != m.ID {
				c.dialed(m.ID, o.ID, o.PeerURLs[0])
			}
		}
	}
	// A change of the membership takes the place of what was given.
	url := c.members[2].PeerURLs[0]
	changed(t, c.any(), braid.Change{Kind: braid.UpdateMember, Member: braid.Member{ID: 3, PeerURLs: []string{url}}})
	c.dialed(1, 3, url)
	c.verify(c.fill("last", 5))
}

// TestAMemberMoves starts one member at another address, which no other member knows. Then another member takes its
// old address.
func TestAMemberMoves(t *testing.T) {
	t.Parallel()
	logs := &lines{}
	c := newCluster(t, 3, func(o *braid.Options) {
		if o.Self == 1 {
			o.Logger = slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelWarn}))
		}
	})
	c.leader()
	acked := c.fill("before", 5)
	old := c.members[2].PeerURLs[0]
	c.stop(3)
	acked = append(acked, c.fill("meanwhile", 5)...)
	c.moves(3, freeURL(t))
	c.start(c.members[2], false)
	c.leader()
	acked = append(acked, c.fill("moved", 5)...)
	c.verify(acked)
	c.dialed(1, 3, c.members[2].PeerURLs[0])
	c.dialed(2, 3, c.members[2].PeerURLs[0])

	c.stop(2)
	c.moves(2, old)
	c.start(c.members[1], false)
	c.leader()
	c.verify(append(acked, c.fill("taken", 5)...))
	c.dialed(1, 2, old)
	c.dialed(3, 2, old)
	c.dialed(1, 3, c.members[2].PeerURLs[0])
	require.Equal(t, 2, logs.count("answers at other addresses"), "once for each move")
}

// TestOldOptionsDoNotHide starts members with addresses from before a change of the membership.
func TestOldOptionsDoNotHide(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.leader()
	given := c.members
	url := freeURL(t)
	changed(t, c.any(), braid.Change{Kind: braid.UpdateMember, Member: braid.Member{ID: 3, PeerURLs: []string{url}}})
	for _, m := range given {
		c.stop(m.ID)
	}
	for _, m := range given {
		if m.ID == 3 {
			m.PeerURLs = []string{url}
		}
		c.start(m, false)
	}
	c.leader()
	c.dialed(1, 3, url)
	c.dialed(2, 3, url)
	c.verify(c.fill("after", 5))
}

// lines counts what is logged.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write implements io.Writer.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.all.String(), text)
}
