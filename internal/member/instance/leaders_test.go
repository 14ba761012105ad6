package instance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

func TestLeadershipMovesToWhoIsPreferredAndFit(t *testing.T) {
	const timeout = time.Second
	status := func(edit func(*protocol.Status)) *protocol.Status {
		st := &protocol.Status{
			Self: 1, Role: protocol.Leader, First: 1, Last: 5000,
			Config: protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}},
			Peers:  []protocol.PeerStatus{{ID: 2, Active: true, Match: 4500}, {ID: 3, Active: true, Match: 5000}},
		}
		if edit != nil {
			edit(st)
		}
		return st
	}
	var m LeaderPreference
	require.Zero(t, m.Next(0, timeout, status(nil), 2), "it may be gone again soon")
	require.Zero(t, m.Next(900*time.Millisecond, timeout, status(nil), 2))
	require.Equal(t, protocol.MemberID(2), m.Next(time.Second, timeout, status(nil), 2))
	require.Zero(t, m.Next(2*time.Second, timeout, status(nil), 2), "not again soon after an attempt")
	require.Equal(t, protocol.MemberID(2), m.Next(10*time.Second, timeout, status(nil), 2))

	for name, edit := range map[string]func(*protocol.Status){
		"silent":          func(st *protocol.Status) { st.Peers[0].Active = false },
		"far behind":      func(st *protocol.Status) { st.Peers[0].Match = 10 },
		"lacks bodies":    func(st *protocol.Status) { st.Peers[0].Lacking = true },
		"gets a snapshot": func(st *protocol.Status) { st.Peers[0].Snapshot = true },
		"learner":         func(st *protocol.Status) { st.Config.Members[1].Learner = true },
		"gone":            func(st *protocol.Status) { st.Config.Members = st.Config.Members[:1] },
		"not the leader":  func(st *protocol.Status) { st.Role = protocol.Follower },
	} {
		m := LeaderPreference{}
		require.Zero(t, m.Next(0, timeout, status(nil), 2))
		require.Zero(t, m.Next(time.Second, timeout, status(edit), 2), name)
		require.Zero(t, m.Next(1500*time.Millisecond, timeout, status(nil), 2), "%s: the timeout begins anew", name)
	}
	require.Zero(t, new(LeaderPreference).Next(time.Hour, 0, status(nil), 1), "it leads already")
	require.Zero(t, new(LeaderPreference).Next(time.Hour, 0, status(nil), 0), "nobody is preferred")
}

func TestInstancesFollowTheFirst(t *testing.T) {
	of := func(id protocol.MemberID) protocol.Member { return protocol.Member{ID: id, Slot: uint8(id)} }
	old := protocol.Config{Members: []protocol.Member{of(1), of(2)}, Slots: 3}
	changed := protocol.Config{Members: []protocol.Member{of(1), of(3)}, Slots: 4, Removed: []protocol.MemberID{2}}
	st := &protocol.Status{Role: protocol.Leader, Config: old}
	require.Nil(t, Followed(&old, st))
	require.Equal(t, &changed, Followed(&changed, st))
	joint := changed
	joint.Outgoing = []protocol.MemberID{1, 2}
	require.Nil(t, Followed(&joint, st), "the first is not done")
	require.Nil(t, Followed(&changed, &protocol.Status{Role: protocol.Leader, Config: joint}))

	f := MembershipFollower{}
	const timeout = time.Second
	require.Equal(t, &changed, f.Next(0, timeout, &changed, st), "a leader proposes it at once")
	st.Role = protocol.Follower
	require.Nil(t, f.Next(1, timeout, &changed, st), "the leader is likely to do it")
	require.Nil(t, f.Next(timeout, timeout, &changed, st))
	require.NotNil(t, f.Next(1+timeout, timeout, &changed, st), "it does not seem to know")
	require.Nil(t, f.Next(2*timeout, timeout, &changed, st), "it was told")
	require.Nil(t, f.Next(3*timeout, timeout, &old, st), "it followed")
	require.Nil(t, f.Next(4*timeout, timeout, &changed, st), "it is likely to do it again")

	require.False(t, member.Settled(&changed, []protocol.Config{changed, old}))
	require.True(t, member.Settled(&changed, []protocol.Config{changed, changed}))

	u := member.Union([]protocol.Config{changed, old})
	require.NotNil(t, u.Find(2), "a member until it has left everywhere")
	require.NotNil(t, u.Find(3))
	require.Empty(t, u.Removed)
	u = member.Union([]protocol.Config{changed, changed})
	require.Equal(t, []protocol.MemberID{2}, u.Removed)
	require.Nil(t, u.Find(2))

	removes := []protocol.Config{changed}
	undecided, decided := member.Linked(removes, []protocol.Config{old}), member.Linked(removes, removes)
	require.NotNil(t, undecided.Find(2), "its removal is not applied")
	require.Empty(t, undecided.Removed)
	require.Equal(t, changed, decided)
}
