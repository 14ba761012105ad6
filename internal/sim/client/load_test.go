package client

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/internal/sim/world"
	"github.com/braidlog/braid/protocol"
)

// TestWhichMemberAClientAsks: a client that stays asks its own member or none; others ask another running member, and
// stay with that one.
func TestWhichMemberAClientAsks(t *testing.T) {
	w := &node.Environment{Base: world.Base{Rand: rand.New(rand.NewPCG(1, 2))}, Set: &node.Settings{}}
	for id := range protocol.MemberID(3) {
		w.Members = append(w.Members, node.NewMember(w, id+1))
	}
	all := New(w, &Settings{})
	loyal, roaming := all.Client(1, 1), all.Client(2, 1)
	loyal.manner = stays
	require.Nil(t, loyal.chooses())
	require.Nil(t, roaming.chooses())

	w.Member(3).Up = true
	require.Nil(t, loyal.chooses())
	require.Equal(t, protocol.MemberID(3), roaming.chooses().ID)
	require.Equal(t, protocol.MemberID(3), roaming.Home)

	w.Member(1).Up = true
	require.Equal(t, protocol.MemberID(1), loyal.chooses().ID)
}
