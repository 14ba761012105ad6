package instance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

func TestSuccessor(t *testing.T) {
	of := func(id protocol.MemberID, learner bool) protocol.Member {
		return protocol.Member{ID: id, Learner: learner}
	}
	config := protocol.Config{Members: []protocol.Member{of(1, false), of(2, false), of(3, false), of(4, true)}}
	peer := func(id protocol.MemberID, match protocol.Index) protocol.PeerStatus {
		return protocol.PeerStatus{ID: id, Match: match, Active: true}
	}
	status := func(instance protocol.InstanceID) *protocol.Status {
		return &protocol.Status{Instance: instance, Self: 1, Role: protocol.Leader, Leader: 1, First: 1, Last: 100,
			Config: config,
			Peers:  []protocol.PeerStatus{peer(2, 90), peer(3, 99), peer(4, 100)}}
	}
	all := func(protocol.MemberID) bool { return true }
	require.EqualValues(t, 3, Successor(status(1), 0, all), "the most advanced voter")
	require.EqualValues(t, 2, Successor(status(1), 2, all), "the preferred one is near enough")
	require.EqualValues(t, 2, Successor(status(1), 0, func(id protocol.MemberID) bool { return id != 3 }),
		"a link is down")
	zoned := status(1)
	zoned.Config = zoned.Config.Clone()
	zoned.Config.Members[0].Zone, zoned.Config.Members[2].Zone = "a", "a"
	zoned.Peers[0].Match = 99
	require.EqualValues(t, 3, Successor(zoned, 0, all), "of two that are as advanced, the one in the same zone")
	zoned.Peers[0].Match = 100
	require.EqualValues(t, 2, Successor(zoned, 0, all), "the most advanced, wherever it is")
	silent := status(1)
	silent.Peers[0].Active, silent.Peers[1].Snapshot = false, true
	require.Zero(t, Successor(silent, 2, all), "nobody is fit")
	follower := status(1)
	follower.Role = protocol.Follower
	require.Zero(t, Successor(follower, 0, all))
	fixed := status(1)
	fixed.Epoch = &protocol.EpochStatus{Number: 7}
	require.Zero(t, Successor(fixed, 2, all), "who leads follows from the log")

	second := status(2)
	second.Peers[0].Match = 100 // the most advanced member there
	l := StopHandover{Config: member.OperationConfig{Heartbeat: time.Second / 2}}
	give := func(instance protocol.InstanceID, to protocol.MemberID) member.InstanceInput {
		return member.InstanceInput{Instance: instance, Input: protocol.Transfer{To: to}}
	}
	next := func(now time.Duration, instances ...*protocol.Status) (gives []member.InstanceInput, left bool) {
		return l.Next(now, instances, all, nil)
	}
	gives, left := next(0, status(1), second)
	require.False(t, left)
	require.Equal(t, []member.InstanceInput{give(1, 3), give(2, 3)}, gives, "together they stay")
	gives, left = next(time.Second/2, follower, second)
	require.False(t, left)
	require.Empty(t, gives, "it is on its way")
	l.Config.Leaders = protocol.LeadersSpread
	gives, _ = next(time.Second, follower, second)
	require.Equal(t, []member.InstanceInput{give(2, 2)}, gives, "again, spread: to whom it suits best")
	_, left = next(2*time.Second, follower, silent)
	require.True(t, left, "nobody could lead what is left")
	gives, left = next(3*time.Second, fixed)
	require.True(t, left, "it leads nothing in this epoch")
	require.Empty(t, gives)

	fixed.Epoch.Segments = []protocol.SegmentStatus{{Leader: 1}, {Leader: 3}}
	l = StopHandover{Config: l.Config}
	gives, left = next(4*time.Second, fixed)
	require.False(t, left, "others would wait for it")
	require.Equal(t, []member.InstanceInput{{Instance: 1, Input: protocol.Stopping{}}}, gives)
	gives, left = l.Next(5*time.Second, []*protocol.Status{fixed}, func(protocol.MemberID) bool { return false }, nil)
	require.True(t, left, "nobody is there who could lead")
	require.Empty(t, gives)
}

// TestADrainedMemberIsHandedNothing: it gets an instance only if it alone could lead it, and the present leader stops.
func TestADrainedMemberIsHandedNothing(t *testing.T) {
	st := &protocol.Status{Instance: 1, Self: 1, Role: protocol.Leader, Leader: 1, First: 1, Last: 100,
		Config: protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}},
		Peers:  []protocol.PeerStatus{{ID: 2, Match: 90, Active: true}, {ID: 3, Match: 99, Active: true}}}
	for _, c := range []struct {
		name    string
		drains  bool
		drained []protocol.MemberID
		to      protocol.MemberID // 0: it is handed to no one
	}{
		{"none", true, nil, 3},
		{"the most advanced", true, []protocol.MemberID{3}, 2},
		{"all, and it stays", true, []protocol.MemberID{2, 3}, 0},
		{"all, and it stops", false, []protocol.MemberID{2, 3}, 3},
		{"one, and it stops", false, []protocol.MemberID{3}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := StopHandover{Config: member.OperationConfig{Heartbeat: time.Second}, Drains: c.drains}
			gives, left := l.Next(0, []*protocol.Status{st}, func(protocol.MemberID) bool { return true }, c.drained)
			require.Equal(t, c.to == 0, left)
			if c.to == 0 {
				require.Empty(t, gives)
				return
			}
			require.Equal(t, []member.InstanceInput{{Instance: 1, Input: protocol.Transfer{To: c.to}}}, gives)
		})
	}
}
