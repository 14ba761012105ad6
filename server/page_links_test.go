package server

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/server/internal/page"
)

// TestStatusOfDeadMembers: the status of a member is that of the link to it, and since when.
func TestStatusOfDeadMembers(t *testing.T) {
	f := start(t)
	since := time.Now().Add(-90 * time.Second)
	for _, c := range []struct {
		name    string
		leader  braid.MemberID
		down    []braid.MemberID
		want    map[string]string // roles by id
		reached int
	}{
		{"all up", 0x10, nil,
			map[string]string{"10": "leader", "20": "follower", "30": "follower", "40": "learner"}, 3},
		{"one down", 0x10, []braid.MemberID{0x30}, map[string]string{"10": "leader", "20": "follower", "30": "voter",
			"40": "learner"}, 2},
		{"the learner down", 0x10, []braid.MemberID{0x40}, map[string]string{"10": "leader", "40": "learner"}, 3},
		{"two down", 0x10, []braid.MemberID{0x20, 0x30},
			map[string]string{"10": "leader", "20": "voter", "30": "voter"}, 1},
		{"follows, reaches the leader alone", 0x20, []braid.MemberID{0x30},
			map[string]string{"10": "follower", "20": "leader", "30": "voter"}, 2},
		{"follows, the leader is gone", 0x20, []braid.MemberID{0x20, 0x30},
			map[string]string{"10": "follower", "20": "leader", "30": "voter"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.fake.set(func(l *fakeLog) {
				l.leader = c.leader
				l.members = []braid.Member{
					{ID: 0x10, Zone: "eu-west-1"}, {ID: 0x20, PeerURLs: []string{"http://c:1/"}},
					{ID: 0x30, PeerURLs: []string{"http://d:1"}},
					{ID: 0x40, Learner: true, PeerURLs: []string{"e:1"}},
				}
				l.amend = func(st *braid.Status) {
					st.Links.Peers = slices.Grow(st.Links.Peers, 3)[:3]
					for i, id := range []braid.MemberID{0x20, 0x30, 0x40} {
						p := &st.Links.Peers[i]
						p.Addrs = []string{[]string{"c:1", "elsewhere:1", "e:1"}[i]}
						p.ID, p.Connected, p.Since = id, !slices.Contains(c.down, id), since
						if !p.Connected {
							p.LastError = "connection refused"
						}
					}
					st.Instances[0].Lanes = &braid.LanesStatus{Accepting: true}
				}
			})
			eventually(t, "the leader", func() bool { return f.self.Load().leader == c.leader })
			v := f.view(testContext(t))
			require.True(t, v.Ready)
			require.Equal(t, page.Voters{All: 3, Reached: c.reached}, v.Voters)
			for _, m := range v.Members {
				if want := c.want[m.ID]; want != "" {
					require.Equal(t, want, m.Role, m.ID)
				}
				require.Equal(t, m.ID == "10", m.Link == nil)
				require.Equal(t, m.ID == "30", m.Link != nil && m.Link.Moved)
				require.Equal(t, m.ID == "10", m.Zone == "eu-west-1")
				if id, err := strconv.ParseUint(m.ID, 16, 64); slices.Contains(c.down, braid.MemberID(id)) {
					require.NoError(t, err)
					require.Equal(t, []any{false, "connection refused"}, []any{m.Link.Up, m.Link.Error})
					require.WithinDuration(t, since, m.Link.Since, time.Millisecond)
				}
			}
		})
	}
}
