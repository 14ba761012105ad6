package replica

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// TestCallersEndWithTheirTimeout has a proposer and readers wait at a member that is cut off, each with a time of its own
// and a context without end. Who waits for longer is told when the member stops.
func TestCallersEndWithTheirTimeout(t *testing.T) {
	inBubble(t, setting{size: 3}, func(c *testCluster) {
		c.leader()
		r := c.running[1]
		c.net.isolate(1, true)
		c.until("no leader is known", func() bool { return r.first().status.Load().Leader == 0 })
		a := newAnswers()
		began := time.Now()
		const limit = 50 * time.Millisecond
		ended := make(chan time.Duration, 2)
		a.ask("propose", func() error {
			_, err := r.ProposeWith(context.Background(), []byte("x"), nil, protocol.ProposeOptions{Timeout: limit})
			ended <- time.Since(began)
			return err
		})
		a.ask("read", func() error {
			err := r.ReadAs(context.Background(), false, limit)
			ended <- time.Since(began)
			return err
		})
		a.ask("longer", func() error { return r.ReadAs(context.Background(), false, time.Hour) })
		for range 2 {
			at := <-ended
			require.GreaterOrEqual(c.t, at, limit)
			require.Less(c.t, at, limit+lookInterval+2*time.Millisecond+withdrawWithin)
		}
		require.NoError(c.t, r.Close())
		c.until("all are told", a.all)
		errs := a.complete(c.t)
		require.ErrorIs(c.t, errs["propose"], context.DeadlineExceeded)
		require.ErrorIs(c.t, errs["propose"], member.ErrNotSent)
		require.ErrorIs(c.t, errs["read"], context.DeadlineExceeded)
		require.ErrorIs(c.t, errs["read"], member.ErrReadTimeout)
		require.ErrorIs(c.t, errs["longer"], member.ErrStopped)
		r.waiters.idle(c)
		c.ended(1)
	})
}
