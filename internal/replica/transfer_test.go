package replica

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// TestATransferToAMemberThatIsDownIsRefusedAtOnce asks the leader, and another member. Virtual time advances only
// while all wait, so the load of the machine does not matter.
func TestATransferToAMemberThatIsDownIsRefusedAtOnce(t *testing.T) {
	inBubble(t, setting{size: 3}, func(c *testCluster) {
		leader := c.leader()
		down := leader%3 + 1
		c.close(down)
		c.net.isolate(uint64(down), true)
		for _, asked := range []protocol.MemberID{leader, down%3 + 1} {
			ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
			began := time.Now()
			err := c.running[asked].TransferLeader(ctx, down)
			cancel()
			var refused *member.RefusedError
			require.ErrorAs(c.t, err, &refused)
			require.Equal(c.t, protocol.ReasonNoAnswer, refused.Reason)
			require.True(c.t, refused.Retryable())
			require.Less(c.t, time.Since(began), testElection/2)
		}
		require.Equal(c.t, leader, c.leader(), "it leads on")
	})
}

// TestACommandThatFoundNoLeaderDidNotHappen fails when a member has tried it for long enough. A retry takes effect,
// and the command itself never does.
func TestACommandThatFoundNoLeaderDidNotHappen(t *testing.T) {
	inBubble(t, setting{size: 3}, func(c *testCluster) {
		c.leader()
		cut := func(cut bool) {
			for id := range c.running {
				c.net.isolate(uint64(id), cut)
			}
		}
		cut(true)
		r := c.running[1]
		c.until("no leader is known", func() bool { return r.first().status.Load().Leader == 0 })
		_, err := r.Propose(c.t.Context(), []byte("x"), nil)
		require.Equal(c.t, member.ErrNoLeader, err)
		cut(false)
		_, err = r.Propose(c.t.Context(), []byte("y"), nil)
		require.NoError(c.t, err)
		require.False(c.t, c.machines[1].has("x"))
		_, err = r.Propose(c.t.Context(), []byte("x"), nil)
		require.NoError(c.t, err)
		require.Equal(c.t, []string{"y", "x"}, c.machines[1].applied)
	})
}
