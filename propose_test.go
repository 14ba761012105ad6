package braid_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// An answer before a command is applied: the state machine of the member that is asked stands still
// until the answer has come. Raft has no such answers, and answers with the result.
func TestAnswersBeforeACommandIsApplied(t *testing.T) {
	for _, protocol := range []string{"slotpaxos", "raft"} {
		t.Run(protocol, func(t *testing.T) {
			c := newCluster(t, 3, func(o *braid.Options) { o.Protocol = protocol })
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
