package replica

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
)

// TestATransferToAMemberThatIsDownIsRefusedAtOnce asks the leader, and another member. Virtual time goes on only while
// everybody waits, so no load of the machine counts.
func TestATransferToAMemberThatIsDownIsRefusedAtOnce(t *testing.T) {
	inBubble(t, setting{size: 3}, func(c *cluster) {
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
