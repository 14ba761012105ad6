package replica

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/protocol"
)

// TestACommandThatWasNotSentIsWithdrawn proposes at a member that knows no leader, with contexts that end before
// there is one. These commands never take effect, even if others of the same batch do.
func TestACommandThatWasNotSentIsWithdrawn(t *testing.T) {
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
		a := newAnswers()
		ask := func(p interface {
			Propose(ctx context.Context, command, body []byte) (any, error)
		}, name string, patience time.Duration, body []byte,
		) {
			a.ask(name, func() error {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				_, err := p.Propose(ctx, []byte(name), body)
				return err
			})
		}
		client := r.NewClient()
		for i := range 10 {
			ask(r, fmt.Sprintf("soon %d", i), 20*time.Millisecond, nil)
			ask(r, fmt.Sprintf("late %d", i), time.Minute, nil)
			ask(client, fmt.Sprintf("soon of a client %d", i), 20*time.Millisecond, nil)
			ask(client, fmt.Sprintf("late of a client %d", i), time.Minute, nil)
		}
		ask(r, "soon with a body", 20*time.Millisecond, []byte("body"))
		ask(r, "late with a body", time.Minute, []byte("body"))
		<-time.After(100 * time.Millisecond)
		cut(false)
		c.until("all are told", a.all)
		for name, err := range a.complete(c.t) {
			if soon := name[:4] == "soon"; soon {
				require.ErrorIs(c.t, err, member.ErrNotSent, name)
				require.ErrorIs(c.t, err, context.DeadlineExceeded, name)
			} else {
				require.NoError(c.t, err, name)
			}
			require.Equal(c.t, name[:4] == "late", c.machines[1].has(name), name)
		}
		require.Zero(c.t, r.proposer.pendingBytes())
		r.waiters.idle(c)
	})
}

// TestAContextThatEndedIsLookedAtFirst calls every function that has a context with one that has ended. Nothing
// happens.
func TestAContextThatEndedIsLookedAtFirst(t *testing.T) {
	inBubble(t, setting{size: 1}, func(c *testCluster) {
		c.leader()
		r := c.running[1]
		ctx, cancel := context.WithCancel(c.t.Context())
		cancel()
		learner := []protocol.Change{{Kind: protocol.AddLearner,
			Member: protocol.Member{ID: 9, PeerURLs: []string{"http://member9:1"}}}}
		for range 20 {
			_, err := r.Propose(ctx, []byte("x"), nil)
			require.ErrorIs(c.t, err, member.ErrNotSent)
			_, err = r.ProposeWith(ctx, []byte("x"), nil, protocol.ProposeOptions{})
			require.ErrorIs(c.t, err, member.ErrNotSent)
			_, err = r.NewClient().Propose(ctx, []byte("x"), []byte("body"))
			require.ErrorIs(c.t, err, member.ErrNotSent)
			require.ErrorIs(c.t, r.ChangeMembers(ctx, learner), member.ErrNotSent)
			require.ErrorIs(c.t, r.TransferLeader(ctx, 1), member.ErrNotSent)
			require.ErrorIs(c.t, r.Reshape(ctx, 1), member.ErrNotSent)
			require.ErrorIs(c.t, r.ReadBarrier(ctx), member.ErrReadTimeout)
			require.ErrorIs(c.t, r.AwaitTokens(ctx, nil), member.ErrReadTimeout)
		}
		require.NoError(c.t, r.ReadBarrier(c.t.Context()))
		require.False(c.t, c.machines[1].has("x"))
		require.Len(c.t, r.Status().Config.Members, 1)
	})
}

// TestACommandThatIsNotWithdrawnInTimeIsAnswered blocks an event loop while a command that it has, and has not sent,
// is to be withdrawn. The command stays, and its proposer is answered.
func TestACommandThatIsNotWithdrawnInTimeIsAnswered(t *testing.T) {
	inBubble(t, setting{size: 3}, func(c *testCluster) {
		c.leader()
		r := c.running[1]
		c.net.isolate(1, true)
		c.until("no leader is known", func() bool { return r.first().status.Load().Leader == 0 })
		told := make(chan error, 1)
		var ticket intake.Ticket
		require.NoError(c.t,
			r.proposer.propose(&r.proposer.queue, []byte("x"), nil, func(_ any, err error) { told <- err }, &ticket))
		c.until("the loop has it", func() bool { bytes, _, _ := r.proposer.waiting(r.first().id); return bytes == 0 })
		busy, open := c.gate()
		r.first().do(func() { <-busy })
		began := time.Now()
		ok, _ := r.withdraw(ticket)
		require.False(c.t, ok)
		require.Equal(c.t, withdrawWithin, time.Since(began))
		c.net.isolate(1, false)
		open()
		require.NoError(c.t, <-told)
		require.True(c.t, c.machines[1].has("x"))
	})
}
