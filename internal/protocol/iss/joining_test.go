package iss

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/setting"
)

// TestNoMemberJoinsThatCannotVote: there are bodies, and the quorums are by zones, in which their deciders change with
// each voter. A member does not join then, one that joined before may leave, and a voter is not removed if a member
// that is joining could not vote after that.
func TestNoMemberJoinsThatCannotVote(t *testing.T) {
	zones := quorum.InZones(quorum.Zones{Count: 3, Lost: 2, Down: 1})
	config := func(voters int, joining ...protocol.MemberID) protocol.Config {
		c := protocol.Config{}
		for i := range voters {
			c.Members = append(c.Members, protocol.Member{ID: protocol.MemberID(1 + i)})
		}
		for _, id := range joining {
			c.Members = append(c.Members, protocol.Member{ID: id, Learner: true, Joining: true})
		}
		c.Number()
		return c
	}
	change := func(c protocol.Config, bodies bool, kind protocol.ChangeKind, id protocol.MemberID) protocol.Reason {
		s := &ISS{quorums: zones}
		s.cfg = protocol.Settings{Self: 1, Own: quorum.Setting.Set(setting.Values{}, zones)}
		s.conf, s.bodies.Any = c, bodies
		_, reason := s.changed([]protocol.Change{{Kind: kind, Member: protocol.Member{ID: id}}})
		return reason
	}
	require.Equal(t, protocol.ReasonBodies, change(config(4), true, protocol.AddJoining, 9))
	require.Equal(t, protocol.ReasonNone, change(config(4), false, protocol.AddJoining, 9))
	require.Equal(t, protocol.ReasonNone, change(config(6), true, protocol.AddJoining, 9))
	require.Equal(t, protocol.ReasonNone, change(config(4), true, protocol.AddLearner, 9))
	require.Equal(t, protocol.ReasonNone, change(config(4, 9), true, protocol.RemoveMember, 9))
	require.Equal(t, protocol.ReasonNone, change(config(4, 9), true, protocol.UpdateMember, 2))
	require.True(t, admits(quorum.Sizes(3, 3), new(config(4)), new(config(4, 9))))
	require.False(t, admits(zones, new(config(6, 9)), new(config(5, 9))), "the voter that leaves was counted")
}
