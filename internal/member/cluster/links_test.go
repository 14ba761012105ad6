package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

func TestLinksFollowTheMembers(t *testing.T) {
	of := func(ids ...protocol.MemberID) protocol.Config {
		var c protocol.Config
		for _, id := range ids {
			c.Members = append(c.Members, protocol.Member{ID: id})
		}
		return c
	}
	all := of(1, 2, 3)
	l := NewLinks(1, time.Second, all.Members)
	linked := func(ids ...protocol.MemberID) {
		t.Helper()
		var have []protocol.MemberID
		for _, p := range l.Peers() {
			have = append(have, p.ID)
		}
		require.Equal(t, ids, have)
		require.NoError(t, l.Check())
	}
	follow := func(now time.Duration, c protocol.Config) { l.Follow(now, &c) }
	joining := of()
	l.Follow(0, &joining)
	linked(2, 3) // a member that joins keeps what it was given
	follow(0, of(1, 2))
	follow(time.Hour, of(1, 2))
	linked(2, 3) // also while it follows memberships from before 3 joined

	follow(0, all)
	follow(0, of(1, 2, 4))
	linked(2, 3, 4)
	require.True(t, l.Lingers())
	follow(linkLinger*time.Second-1, of(1, 2, 4))
	linked(2, 3, 4)
	follow(linkLinger*time.Second+1, of(1, 2, 4))
	linked(2, 4)
	require.False(t, l.Lingers())

	require.False(t, l.Welcome(&protocol.Member{ID: 2}), "it is known")
	require.False(t, l.Welcome(&protocol.Member{ID: 1}))
	require.True(t, l.Welcome(&protocol.Member{ID: 5, PeerURLs: []string{"http://e:1"}}))
	require.True(t, l.Lingers(), "perhaps it was removed before")
	follow(time.Hour, of(1, 2, 4))
	linked(2, 4, 5) // until it is known that it was removed
	gone := of(1, 2, 4)
	gone.Removed = []protocol.MemberID{5}
	follow(2*time.Hour, gone)
	linked(2, 4, 5)
	follow(3*time.Hour, gone)
	linked(2, 4)
}
