package replica

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
)

// TestAChangeThatEndsIsForgotten ends membership changes in all ways in which they end without success. The
// member keeps nothing of them.
func TestAChangeThatEndsIsForgotten(t *testing.T) {
	inBubble(t, 3, nil, func(c *cluster) {
		leader := c.leader()
		r := c.running[leader]
		forgotten := func() {
			c.t.Helper()
			synctest.Wait()
			r.apply.amu.Lock()
			defer r.apply.amu.Unlock()
			require.Zero(c.t, r.apply.known.AwaitingConfigs())
			require.Empty(c.t, r.changes)
		}
		taken := []protocol.Change{{Kind: protocol.AddLearner, Member: protocol.Member{ID: 9, PeerURLs: c.members[0].PeerURLs}}}
		var refused *member.RefusedError
		require.ErrorAs(c.t, r.ChangeMembers(c.t.Context(), taken), &refused)
		forgotten()
		for id := range c.running {
			c.net.isolate(uint64(id), id != leader)
		}
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Millisecond)
		defer cancel()
		learner := []protocol.Change{{Kind: protocol.AddLearner, Member: protocol.Member{ID: 9, PeerURLs: []string{"http://member9:1"}}}}
		require.ErrorIs(c.t, r.ChangeMembers(ctx, learner), context.DeadlineExceeded, "nobody confirms it")
		forgotten()
	})
}
