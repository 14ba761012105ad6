package replica

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/member/snapshot"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/protocol"
)

// TestAChangeThatEndsIsForgotten ends membership changes in all ways without success. The member keeps no state of
// them.
func TestAChangeThatEndsIsForgotten(t *testing.T) {
	inBubble(t, setting{size: 3}, func(c *testCluster) {
		leader := c.leader()
		r := c.running[leader]
		forgotten := func() {
			c.t.Helper()
			synctest.Wait()
			r.readView(func(v *cluster.MemberView) {
				require.Zero(c.t, v.Applied.Watched())
				require.Zero(c.t, r.operations.Open())
			})
		}
		taken := []protocol.Change{{Kind: protocol.AddLearner,
			Member: protocol.Member{ID: 9, PeerURLs: c.members[0].PeerURLs}}}
		var refused *member.RefusedError
		require.ErrorAs(c.t, r.ChangeMembers(c.t.Context(), taken), &refused)
		forgotten()
		for id := range c.running {
			c.net.isolate(uint64(id), id != leader)
		}
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Millisecond)
		defer cancel()
		learner := []protocol.Change{{Kind: protocol.AddLearner,
			Member: protocol.Member{ID: 9, PeerURLs: []string{"http://member9:1"}}}}
		require.ErrorIs(c.t, r.ChangeMembers(ctx, learner), context.DeadlineExceeded, "nobody confirms it")
		forgotten()
	})
}

// TestAViewThatComesLateIsClosed closes a member while views of its state are requested, and the state machine is
// busy. The apply loop takes the views after the links are closed. An open view would prevent closing the state
// machine.
func TestAViewThatComesLateIsClosed(t *testing.T) {
	inBubble(t, setting{size: 1}, func(c *testCluster) {
		c.leader()
		r, sm := c.running[1], c.machines[1]
		reached := make(chan struct{})
		busy, open := c.gate()
		sm.hook(func(m *machine) {
			m.apply = func(string) error {
				close(reached)
				<-busy
				return nil
			}
		})
		a := newAnswers()
		require.NoError(c.t, a.propose(r, "slow", nil))
		<-reached
		for range 3 { // the apply loop takes them together, after the command
			r.apply.push(apply.ApplyItem{Due: true})
		}
		r.exchange.do(func(m *snapshot.StateExchange) {
			m.Ask(2, &member.SnapshotOffer{Instance: 1})
			m.Ask(3, &member.SnapshotOffer{})
		})
		closed := make(chan error, 1)
		go func() { closed <- r.Close() }()
		synctest.Wait()
		open()
		require.NoError(c.t, <-closed)
		a.complete(c.t)
		c.ended(1)
	})
}

// blockedLog is a log handler that blocks on a message.
type blockedLog struct {
	slog.Handler
	message          string
	reached, release chan struct{}
}

func (b *blockedLog) Enabled(context.Context, slog.Level) bool { return true }

func (b *blockedLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == b.message {
		close(b.reached)
		<-b.release
	}
	return nil
}

// lateLinks get a request while they are being closed.
type lateLinks struct {
	links
	request func()
	once    sync.Once
}

func (l *lateLinks) Close() error {
	l.once.Do(l.request)
	return l.links.Close()
}

// TestARequestThatComesWhileAMemberClosesIsWaitedFor answers a request so late that the event loops have ended. The
// work for the request ends before Close returns.
func TestARequestThatComesWhileAMemberClosesIsWaitedFor(t *testing.T) {
	b := &blockedLog{Handler: slog.DiscardHandler, message: "sending a snapshot failed"}
	inBubble(t, setting{size: 1, tune: func(o *Options) {
		b.reached, b.release = make(chan struct{}), make(chan struct{})
		o.Logger = slog.New(b)
		join := o.newLinks
		o.newLinks = func(t transport.Options) (links, error) {
			l, err := join(t)
			return &lateLinks{links: l, request: func() {
				needs, _ := json.Marshal(order.Begin(1, false))
				_, _ = t.Handler.HandleRequest(context.Background(), 2, append([]byte{askState}, needs...))
			}}, err
		}
	}}, func(c *testCluster) {
		c.leader()
		closed := make(chan error, 1)
		go func() { closed <- c.running[1].Close() }()
		<-b.reached
		synctest.Wait()
		require.Empty(c.t, closed, "something of the member still runs")
		close(b.release)
		require.NoError(c.t, <-closed)
		c.ended(1)
	})
}

// TestASnapshotForACallerEndsWithTheMember has a caller write the state for as long as its context lasts.
func TestASnapshotForACallerEndsWithTheMember(t *testing.T) {
	inBubble(t, setting{size: 1}, func(c *testCluster) {
		c.leader()
		r := c.running[1]
		writing := make(chan struct{})
		c.machines[1].hook(func(m *machine) {
			m.write = func(ctx context.Context) error {
				close(writing)
				<-ctx.Done()
				return ctx.Err()
			}
		})
		a := newAnswers()
		a.ask("snapshot", func() error {
			_, err := r.Snapshot(context.Background(), io.Discard)
			return err
		})
		<-writing
		require.NoError(c.t, r.Close())
		c.until("all are told", a.all)
		require.ErrorIs(c.t, a.complete(c.t)["snapshot"], member.ErrStopped)
		c.machines[1].hook(func(m *machine) { require.Zero(c.t, m.views) })
		c.ended(1)
	})
}

// TestADrainWhileAMemberCloses: Close waits for what Drain has begun, and a later Drain begins nothing. Otherwise the
// process could end, because Close had stopped waiting when something to wait for began.
func TestADrainWhileAMemberCloses(t *testing.T) {
	inBubble(t, setting{size: 1}, func(c *testCluster) {
		c.leader()
		r := c.running[1]
		closed := make(chan error, 1)
		go func() { closed <- r.Close() }()
		r.Drain(true) // sooner or later than Close
		require.NoError(c.t, <-closed)
		r.Drain(false)
		r.Drain(true)
		require.False(c.t, r.Drains(), "it does not run")
		c.ended(1)
	})
}
