package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

func TestLead(t *testing.T) {
	at := Begin(2, true)
	require.Equal(t, Lead{}, at.Lead(nil), "nothing is known before the first instance says how it stands")
	first := &protocol.Status{Instance: 1, Leader: 3, Term: 7}
	other := &protocol.Status{Instance: 2, Leader: 2, Term: 9}
	require.Equal(t, Lead{Instance: 1, Leader: 3, Term: 7, Open: true}, at.Lead([]*protocol.Status{first, other}))
	other.Leader = 0
	require.Equal(t, Lead{Instance: 1, Leader: 3, Term: 7}, at.Lead([]*protocol.Status{first, other}),
		"nothing new gets a place while an instance has no leader")
	first.Leader, other.Leader = 0, 2
	require.Equal(t, Lead{Instance: 1, Term: 7}, at.Lead([]*protocol.Status{first, other}))
}
