package braid_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// TestATicketWithdrawsWhatWasNotSent has commands withdrawn at a member without a leader, after they were answered, and
// after the member has stopped.
func TestATicketWithdrawsWhatWasNotSent(t *testing.T) {
	t.Parallel()
	require.False(t, braid.Ticket{}.Withdraw())
	silent := sole(t, []braid.Member{{ID: 1, PeerURLs: []string{"http://127.0.0.1:9"}}, {ID: 2, PeerURLs: []string{"http://127.0.0.1:9"}}})
	told := make(chan error, 9)
	done := func(_ any, err error) { told <- err }
	for _, body := range [][]byte{nil, []byte("body")} {
		ticket, err := silent.ProposeTicket([]byte("x"), body, braid.ProposeOptions{}, done)
		require.NoError(t, err)
		require.True(t, ticket.Withdraw())
		require.False(t, ticket.Withdraw(), "twice")
	}
	last, err := silent.ProposeTicket([]byte("x"), nil, braid.ProposeOptions{}, done)
	require.NoError(t, err)
	refused, err := silent.ProposeTicket([]byte("x"), nil, braid.ProposeOptions{Wait: -1}, done)
	require.ErrorAs(t, err, new(*braid.ProposeOptionsError))
	require.False(t, refused.Withdraw(), "it names no command, and not the last one that was taken")
	require.NoError(t, silent.Close())
	require.ErrorIs(t, <-told, braid.ErrStopped, "the last one; the others are told nothing")
	require.Empty(t, told)
	require.False(t, last.Withdraw())

	n := sole(t, []braid.Member{{ID: 1}})
	ticket, err := n.ProposeTicket([]byte("x"), nil, braid.ProposeOptions{}, done)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, n.ReadBarrier(ctx))
	require.NoError(t, <-told)
	require.False(t, ticket.Withdraw(), "it took effect")
}
