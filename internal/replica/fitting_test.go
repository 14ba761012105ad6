package replica

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
)

// reportLinks counts the reports that a member sends, and the decisions that it gets.
type reportLinks struct {
	links
	sent, decisions *atomic.Int64
}

func (l *reportLinks) Request(ctx context.Context, to uint64, request []byte) ([]byte, error) {
	answer, err := l.links.Request(ctx, to, request)
	if request[0] == askReport {
		l.sent.Add(1)
		if len(answer) > 0 {
			l.decisions.Add(1)
		}
	}
	return answer, err
}

// fits has members fit their log, and counts their reports.
func fits(mode protocol.Fit, sent, decisions *atomic.Int64) func(*Options) {
	return func(o *Options) {
		grows(true)(o)
		o.Settings.Flags = common.Fit.Set(o.Settings.Flags, mode)
		o.Fitting = &Fitting{
			Protocol: func(*protocol.Profile, int) string { return "raft" },
			Act:      func(context.Context, *Replica, *fit.Wish) error { panic("there is nothing to wish for") },
		}
		join := o.newLinks
		o.newLinks = func(t transport.Options) (links, error) {
			l, err := join(t)
			return &reportLinks{links: l, sent: sent, decisions: decisions}, err
		}
	}
}

// TestMembersTellWhatTheyMeasure: the leader has a report of each, and each has the leader's decision. Another leader
// has its own.
func TestMembersTellWhatTheyMeasure(t *testing.T) {
	var sent, decisions atomic.Int64
	inBubble(t, setting{size: 3, tune: fits(protocol.FitAdvise, &sent, &decisions)}, func(c *testCluster) {
		decided := func(leader protocol.MemberID) {
			c.until("all know what the leader decides", func() bool {
				commands := uint64(0)
				for id, r := range c.running {
					c.fill(id, "x", 1)
					p := r.Status().Fit
					if p == nil || p.By != leader || len(p.Reports) != 3 {
						return false
					}
					for i := range p.Reports {
						commands = max(commands, p.Reports[i].Asked.Commands)
					}
				}
				return commands >= 10
			})
		}
		leader := c.leader()
		decided(leader)
		p := c.running[leader].Status().Fit
		require.Equal(c.t, protocol.FitAdvise, p.Mode)
		require.EqualValues(c.t, 1, p.Version)
		require.Positive(c.t, sent.Load())

		next := leader%3 + 1
		require.NoError(c.t, c.running[leader].TransferLeader(c.t.Context(), next))
		decided(next)
	})
}

// TestDecisionsAreAskedForAsTheyAreShown: the leader's decision, which has all reports, is sent to members that show
// it, and otherwise once in ten reports.
func TestDecisionsAreAskedForAsTheyAreShown(t *testing.T) {
	var sent, decisions atomic.Int64
	inBubble(t, setting{size: 3, tune: fits(protocol.FitAdvise, &sent, &decisions)}, func(c *testCluster) {
		leader := c.leader()
		follower := c.running[leader%3+1]
		c.until("there is a decision", func() bool {
			p := follower.Status().Fit
			return p != nil && p.By == leader
		})
		pass := func(d time.Duration, show bool) (reports, answers int64) {
			began, s, a := time.Now(), sent.Load(), decisions.Load()
			c.until("a while passes", func() bool {
				if show {
					require.NotNil(c.t, follower.Status().Fit)
				}
				return time.Since(began) >= d
			})
			return sent.Load() - s, decisions.Load() - a
		}
		pass(2*time.Second, false) // what was shown above
		reports, answers := pass(20*time.Second, false)
		require.InDelta(c.t, 6*20, reports, 12)
		require.InDelta(c.t, 2*2, answers, 1, "two followers, once in ten seconds")
		_, answers = pass(20*time.Second, true)
		require.InDelta(c.t, 20+2, answers, 3, "one follower shows it")
	})
}

// TestNothingIsMeasuredThatIsNotFitted: with fit off, no reports are sent, and there is no decision.
func TestNothingIsMeasuredThatIsNotFitted(t *testing.T) {
	var sent, decisions atomic.Int64
	inBubble(t, setting{size: 3, tune: fits(protocol.FitOff, &sent, &decisions)}, func(c *testCluster) {
		leader := c.leader()
		c.fill(leader, "x", 10)
		set := func(mode protocol.Fit) {
			active := c.running[leader].Profile()
			require.NoError(c.t, c.running[leader].Tune(c.t.Context(), active.Next(common.Fit.Set(active.Values, mode), 0)))
		}
		pass := func(d time.Duration) {
			for began := time.Now(); time.Since(began) < d; {
				c.fill(leader, "y", 1)
				c.until("a tick passes", func() bool { return time.Since(began) >= d })
			}
		}
		pass(5 * time.Second)
		require.Zero(c.t, sent.Load())
		require.Nil(c.t, c.running[leader].Status().Fit)
		require.Zero(c.t, c.running[leader].first().busy.total.Load())

		set(protocol.FitAdvise)
		c.until("there is a decision", func() bool { return c.running[leader%3+1].Status().Fit != nil })
		set(protocol.FitOff)
		pass(2 * time.Second)
		was := sent.Load()
		pass(5 * time.Second)
		require.Equal(c.t, was, sent.Load())
		for _, r := range c.running {
			require.Nil(c.t, r.Status().Fit)
		}
	})
}

// TestChangesOfTheFitterAreCounted: those that were made, and of those the ones that take an earlier one back.
func TestChangesOfTheFitterAreCounted(t *testing.T) {
	var sent, decisions atomic.Int64
	failed := errors.New("another profile is active")
	inBubble(t, setting{size: 1, tune: func(o *Options) {
		fits(protocol.FitOn, &sent, &decisions)(o)
		o.Fitting.Act = func(_ context.Context, _ *Replica, w *fit.Wish) error {
			if w.Version > 1 {
				return failed
			}
			return nil
		}
	}}, func(c *testCluster) {
		c.leader()
		r := c.running[1]
		for _, w := range []fit.Wish{{Version: 1}, {Version: 1, TakesBack: true}, {Version: 2}} {
			r.fitting.act(c.t.Context(), &w)
		}
		require.Equal(c.t, fit.Done{Changes: 2, TakenBack: 1}, r.Status().Fitted)
	})
}
