package braid_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// An answer before a command is applied: the state machine of the member that is asked stands still
// until the answer has come. Raft has no such answers, and answers with the result.
func TestAnswersBeforeACommandIsApplied(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"slotpaxos", "raft"} {
		t.Run(protocol, func(t *testing.T) {
			c := newCluster(t, 3, func(o *braid.Options) { o.Protocol = braid.Named(protocol) })
			ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
			defer cancel()
			for id, n := range c.nodes {
				_, err := n.Propose(ctx, []byte("first "+id.String()))
				require.NoError(t, err)
				answered := make(chan struct{})
				late := "late " + id.String()
				if protocol == "slotpaxos" {
					c.counts[id].mu.Lock()
					c.counts[id].before = func(command string) {
						if command == late {
							select {
							case <-answered:
							case <-ctx.Done():
							}
						}
					}
					c.counts[id].mu.Unlock()
				}
				result, err := n.ProposeWith(ctx, []byte(late), nil, braid.ProposeOptions{Mode: braid.ModeAccepted})
				close(answered)
				require.NoError(t, err)
				if protocol == "slotpaxos" {
					require.IsType(t, &braid.Accepted{}, result)
					require.Equal(t, id, result.(*braid.Accepted).Token.Session.Member)
				} else {
					require.IsType(t, 0, result)
				}
				require.NoError(t, n.ReadBarrier(ctx))
				require.Equal(t, 1, c.counts[id].count(late))
			}
			_, err := c.nodes[1].ProposeWith(ctx, []byte("x"), nil, braid.ProposeOptions{Mode: 7})
			var wrong *braid.ProposeOptionsError
			require.ErrorAs(t, err, &wrong)
		})
	}
}

// A token makes other members wait for a command that is accepted, and not applied where it is read or
// where the next command is proposed.
func TestTokens(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, func(o *braid.Options) { o.Protocol = braid.Named("slotpaxos") })
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	for id, n := range c.nodes { // so that all know the others' sessions
		_, err := n.Propose(ctx, []byte("first "+id.String()))
		require.NoError(t, err)
	}
	apply := make(chan struct{})
	slow := c.counts[2]
	slow.mu.Lock()
	slow.before = func(command string) {
		if command == "write" {
			select {
			case <-apply:
			case <-ctx.Done():
			}
		}
	}
	slow.mu.Unlock()
	result, err := c.nodes[1].ProposeWith(ctx, []byte("write"), nil, braid.ProposeOptions{Mode: braid.ModeAccepted})
	require.NoError(t, err)
	token, err := braid.ParseToken(braid.FormatToken(result.(*braid.Accepted).Token))
	require.NoError(t, err)
	after := []braid.Token{token}

	short, end := context.WithTimeout(ctx, 100*time.Millisecond)
	defer end()
	var late *braid.TokenError
	err = c.nodes[2].Read(short, braid.ReadOptions{After: after, Local: true})
	require.ErrorAs(t, err, &late)
	require.Equal(t, token, late.Token)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	short, end = context.WithTimeout(ctx, 100*time.Millisecond)
	defer end()
	_, err = c.nodes[2].ProposeWith(short, []byte("never"), nil, braid.ProposeOptions{After: after})
	require.ErrorAs(t, err, &late)

	ended := make(chan error, 2)
	go func() { ended <- c.nodes[2].Read(ctx, braid.ReadOptions{After: after, Local: true}) }()
	require.NoError(t, c.nodes[2].ProposeWithAsync([]byte("next"), nil, braid.ProposeOptions{After: after}, func(_ any, err error) { ended <- err }))
	require.NoError(t, c.nodes[1].Read(ctx, braid.ReadOptions{After: after, Barrier: true}))
	require.NoError(t, c.nodes[3].Read(ctx, braid.ReadOptions{Barrier: true}))
	require.Equal(t, 1, c.counts[3].count("write"))
	require.Equal(t, 1, c.counts[1].count("write"))
	close(apply)
	for range 2 {
		require.NoError(t, <-ended)
	}
	require.Equal(t, 1, slow.count("write"))
	require.Equal(t, 1, slow.count("next"))
	require.Zero(t, slow.count("never"))

	stranger := token
	stranger.Session.Member = 77
	unknown, end := context.WithTimeout(ctx, 50*time.Millisecond)
	defer end()
	require.ErrorAs(t, c.nodes[1].Read(unknown, braid.ReadOptions{After: []braid.Token{stranger}}), &late)
	require.Equal(t, braid.TokenUnknown, late.State)
	var wrong *braid.ProposeOptionsError
	require.ErrorAs(t, c.nodes[1].Read(ctx, braid.ReadOptions{After: []braid.Token{{}}}), &wrong)
}
