package replica

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// TestCallersEndWithTheirTimeout has a proposer and readers wait at a disconnected member, each with its own timeout
// and a context without end. Longer waits end when the member stops.
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
			err := r.ReadAs(context.Background(), false, limit, nil)
			ended <- time.Since(began)
			return err
		})
		a.ask("longer", func() error { return r.ReadAs(context.Background(), false, time.Hour, nil) })
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

// TestAReadIsAwaited: without a leader a read gives up, and is tried again as long as its context lasts.
func TestAReadIsAwaited(t *testing.T) {
	inBubble(t, setting{size: 3}, func(c *testCluster) {
		c.leader()
		r := c.running[1]
		c.net.isolate(1, true)
		c.until("no leader is known", func() bool { return r.first().status.Load().Leader == 0 })
		awaited := make(chan error, 1)
		go func() { awaited <- r.AwaitRead(c.t.Context()) }()
		require.ErrorIs(c.t, r.ReadBarrier(c.t.Context()), member.ErrReadTimeout)
		ctx, cancel := context.WithTimeout(c.t.Context(), r.tuning().GiveUp/10)
		defer cancel()
		require.ErrorIs(c.t, r.AwaitRead(ctx), context.DeadlineExceeded)
		require.Empty(c.t, awaited)
		c.net.isolate(1, false)
		require.NoError(c.t, <-awaited)
	})
}

// TestNothingIsLeftOfReadersThatGaveUp has readers start and give up while the state machine does not return, as on a
// full disk.
func TestNothingIsLeftOfReadersThatGaveUp(t *testing.T) {
	inBubble(t, setting{size: 1}, func(c *testCluster) {
		c.leader()
		r := c.running[1]
		busy, open := c.gate()
		entered := make(chan struct{})
		c.machines[1].hook(func(m *machine) {
			m.apply = func(string) error {
				close(entered)
				<-busy
				return nil
			}
		})
		a := newAnswers()
		a.ask("propose", func() error {
			_, err := r.Propose(context.Background(), []byte("x"), nil)
			return err
		})
		<-entered
		l := r.first()
		groups := map[*readGroup]bool{}
		for range 3 {
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					err := r.ReadAs(context.Background(), i%5 == 0, time.Duration(10+i%3*10)*time.Millisecond, nil)
					assert.ErrorIs(c.t, err, context.DeadlineExceeded)
				})
				<-time.After(time.Millisecond) // the previous group is in progress
				l.mu.Lock()
				for _, g := range l.joined {
					groups[g] = g != nil
				}
				l.mu.Unlock()
			}
			wg.Wait()
		}
		require.Greater(c.t, len(groups), 20)
		for g, ok := range groups {
			if ok {
				require.Nil(c.t, g.first)
				require.False(c.t, g.answered)
			}
		}
		a.ask("read", func() error { return r.ReadAs(context.Background(), false, time.Hour, nil) })
		c.until("the read waits", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.joined[0].first != nil
		})
		open()
		c.until("all are told", a.all)
		for name, err := range a.complete(c.t) {
			require.NoError(c.t, err, name)
		}
		for g, ok := range groups {
			require.False(c.t, ok && g.answered, "a group in which nobody waits is answered")
		}
		r.waiters.idle(c)
	})
}
