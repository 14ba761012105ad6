package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
)

// idle waits until no look is due, and checks that no waiter is left.
func (s *waiters) idle(c *testCluster) {
	c.t.Helper()
	c.until("nobody waits", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.looking
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(c.t, s.known)
	require.Empty(c.t, s.begun)
}

// TestProposeEndsWithItsContext ends contexts in all ways while the state machine is busy. Their waiters are answered
// soon, the others when the state machine continues.
func TestProposeEndsWithItsContext(t *testing.T) {
	inBubble(t, setting{size: 1}, func(c *testCluster) {
		c.leader()
		r := c.running[1]
		busy, open := c.gate()
		c.machines[1].hook(func(m *machine) {
			m.apply = func(string) error {
				<-busy
				return nil
			}
		})
		a := newAnswers()
		ask := func(name string, ctx context.Context, p interface {
			Propose(ctx context.Context, command, body []byte) (any, error)
		}, body []byte) {
			a.ask(name, func() error {
				_, err := p.Propose(ctx, []byte(name), body)
				return err
			})
		}
		cancelled, cancel := context.WithCancel(c.t.Context())
		late, end := context.WithTimeout(c.t.Context(), 20*time.Millisecond)
		defer end()
		before, endBefore := context.WithCancel(c.t.Context())
		endBefore()
		began := time.Now()
		ask("without end", context.Background(), r, nil)
		ask("with an end", c.t.Context(), r, nil)
		ask("before", before, r, nil)
		ask("cancelled", cancelled, r, nil)
		ask("of a client", cancelled, r.NewClient(), nil)
		ask("with a body", late, r, []byte("body"))
		ask("late", late, r, nil)
		told := func(count int, at time.Duration) {
			c.t.Helper()
			c.until("some are told", func() bool {
				a.mu.Lock()
				defer a.mu.Unlock()
				return len(a.told) == count
			})
			require.Less(c.t, time.Since(began), at+lookInterval+2*time.Millisecond)
		}
		told(1, 0)
		time.AfterFunc(10*time.Millisecond-time.Since(began), cancel)
		told(3, 10*time.Millisecond)
		told(5, 20*time.Millisecond)
		open()
		c.until("all are told", a.all)
		errs := a.complete(c.t)
		require.NoError(c.t, errs["without end"])
		require.NoError(c.t, errs["with an end"])
		for _, name := range []string{"before", "cancelled", "of a client"} {
			require.ErrorIs(c.t, errs[name], context.Canceled, name)
			require.Equal(c.t, name != "before", errors.Is(errs[name], member.ErrMaybeCommitted), name)
			require.Equal(c.t, name == "before", errors.Is(errs[name], member.ErrNotSent), name)
		}
		for _, name := range []string{"late", "with a body"} {
			require.ErrorIs(c.t, errs[name], context.DeadlineExceeded, name)
			require.ErrorIs(c.t, errs[name], member.ErrMaybeCommitted, name)
		}
		r.waiters.idle(c)
	})
}

// TestAWaiterIsUsedAgain has many proposers, with contexts that end at about the time of their answers. Each gets the
// outcome of its own command, and a closing member answers all.
func TestAWaiterIsUsedAgain(t *testing.T) {
	inBubble(t, setting{size: 1}, func(c *testCluster) {
		c.leader()
		r := c.running[1]
		c.machines[1].hook(func(m *machine) {
			m.apply = func(string) error {
				<-time.After(100 * time.Microsecond)
				return nil
			}
		})
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				for n := range 50 {
					ctx, cancel := context.WithTimeout(c.t.Context(), time.Duration((i*7+n*3)%9)*time.Millisecond)
					command := fmt.Sprintf("%d of %d", n, i)
					result, err := r.Propose(ctx, []byte(command), nil)
					cancel()
					if err == nil {
						c.machines[1].hook(func(m *machine) { assert.Equal(c.t, command, m.applied[result.(int)-1]) })
						continue
					}
					assert.ErrorIs(c.t, err, context.DeadlineExceeded)
					assert.True(c.t, errors.Is(err, member.ErrMaybeCommitted) != errors.Is(err, member.ErrNotSent), err)
				}
			})
		}
		wg.Wait()
		r.waiters.idle(c)
		a := newAnswers()
		for i := range 40 {
			a.ask(fmt.Sprint(i), func() error {
				_, err := r.Propose(c.t.Context(), fmt.Append(nil, i), nil)
				return err
			})
		}
		require.NoError(c.t, r.Close())
		c.until("all are told", a.all)
		for name, err := range a.complete(c.t) {
			if err != nil {
				require.ErrorIs(c.t, err, member.ErrStopped, name)
			}
		}
		r.waiters.idle(c)
		c.ended(1)
	})
}

// TestAnAnswerAndAnEndAtTheSameTime has both before the waiter runs. The answer counts, and the next waiter finds
// nothing left.
func TestAnAnswerAndAnEndAtTheSameTime(t *testing.T) {
	var s waiters
	s.init(func() bool { return false }, nil)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, order := range [][]bool{{true, false}, {false, true}} {
		w := newWaiter()
		w.ctx = ended
		w.waits.Unlock()
		for _, answer := range order {
			if answer {
				w.done("result", nil)
			} else {
				require.True(t, w.tell(sight{}))
				require.True(t, w.tell(sight{}), "twice")
			}
		}
		w.waits.Lock()
		<-w.woken
		require.True(t, w.told)
		result, err := s.giveUp(w, false, w.ctx.Err())
		require.NoError(t, err)
		require.Equal(t, "result", result)
		require.Empty(t, w.woken)
		require.False(t, w.told)
		require.False(t, w.tell(sight{}), "nobody waits")
	}
}
