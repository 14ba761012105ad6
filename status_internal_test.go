package braid

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/replica"
	"github.com/braidlog/braid/protocol"
)

// A member that became a voter of the first instance is a voter of the cluster when it is one of all instances.
func TestAVoterVotesInAllInstances(t *testing.T) {
	voters := []protocol.Member{{ID: 1}, {ID: 2}}
	s := replica.Status{Config: protocol.Config{Members: voters}}
	second := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2, Learner: true, Joining: true}}}
	s.Instances = []protocol.Status{{Instance: 1, Config: s.Config}, {Instance: 2, Config: second}}
	require.Equal(t, second.Members, members(&s))
	require.False(t, voters[1].Learner, "the membership itself does not change")

	s.Instances[1].Config = protocol.Config{Members: voters[:1]}
	require.Equal(t, second.Members, members(&s), "it is to be added")
	s.Instances[1].Config.Removed = []protocol.MemberID{2}
	require.Equal(t, voters, members(&s), "it is about to leave")
	s.Instances[1].Config = protocol.Config{}
	require.Equal(t, voters, members(&s), "the instance has not begun here")
	s.Instances[1].Config.Members = voters
	require.Equal(t, voters, members(&s))
}
