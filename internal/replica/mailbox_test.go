package replica

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/snapshot"
	"github.com/braidlog/braid/protocol"
)

// hold blocks an event loop until the returned function is called.
func (c *testCluster) hold(l *eventLoop) (release func()) {
	over, release := c.gate()
	held := make(chan struct{})
	l.do(func() {
		close(held)
		<-over
	})
	<-held
	return release
}

// frame is a message of a member, as received from a link.
func frame(m *protocol.Message, about protocol.Index, blob int) []byte {
	m.Blob = make([]byte, blob)
	m.Holdings = []protocol.Holding{{Index: about, Digest: protocol.Digest(m.Blob)}}
	framer := instance.Framer{}
	parts, _ := framer.Frame(m)
	return slices.Concat(parts...)
}

// TestAFullInboxDropsMessages blocks an event loop while another member sends more than fits. Dropped messages are
// counted. The bytes that wait are released, even if the member stops first.
func TestAFullInboxDropsMessages(t *testing.T) {
	for _, stops := range []bool{false, true} {
		inBubble(t, setting{size: 3}, func(c *testCluster) {
			id := c.follower()
			r, from := c.running[id], c.leader()
			release := c.hold(r.first())
			limit := intake.NewInboxLimit(intake.InboxBytes)
			large := frame(&protocol.Message{Type: protocol.MsgTail, Instance: 1, From: from, To: id, Part: protocol.Wanted{}},
				1, limit.All/8)
			for range 12 {
				r.HandleFrame(uint64(from), 0, large)
			}
			require.LessOrEqual(c.t, r.inbox.bytes.Load(), int64(limit.All))
			require.Greater(c.t, r.inbox.bytes.Load(), int64(limit.All/2))
			require.Positive(c.t, r.metrics.dropped.Load())
			if stops {
				closed := make(chan error, 1)
				go func() { closed <- r.Close() }()
				synctest.Wait()
				release()
				require.NoError(c.t, <-closed)
				c.ended(id)
				r.HandleFrame(uint64(from), 0, large)
				require.Zero(c.t, r.inbox.bytes.Load(), "a member that has stopped takes nothing")
				c.start(id)
			} else {
				release()
				c.until("an empty inbox", func() bool { return r.inbox.bytes.Load() == 0 })
			}
			c.serves()
		})
	}
}

// TestProposalsAreRefusedBeyondTheirLimit proposes more than may be pending. The excess is refused at once, and has
// no effect. When all are resolved nothing is counted.
func TestProposalsAreRefusedBeyondTheirLimit(t *testing.T) {
	const limit = 100_000
	inBubble(t, setting{size: 3, tune: func(o *Options) { o.MaxPendingBytes, o.MaxBatchBytes = limit, limit/10 }},
		func(c *testCluster) {
			id := c.leader()
			r := c.running[id]
			c.net.isolate(uint64(id), true)
			proposers := []interface {
				ProposeAsync(command, body []byte, done intake.Done) error
			}{r, r.NewClient(), r.NewClient()}
			a, refused := newAnswers(), 0
			for i := range 60 {
				err := a.propose(proposers[i%3], fmt.Sprint("command ", i), make([]byte, 5000*(i%2)))
				if err != nil {
					require.ErrorIs(c.t, err, member.ErrOverloaded)
					refused++
				}
				require.LessOrEqual(c.t, r.proposer.pendingBytes(), int64(limit))
			}
			require.Positive(c.t, refused)
			require.ErrorIs(c.t, a.propose(r, "large", make([]byte, r.opt.MaxCommandBytes)), member.ErrTooLarge)
			c.net.isolate(uint64(id), false)
			c.until("everybody is told", a.all)
			require.Len(c.t, a.complete(c.t), 60-refused)
			c.until("nothing is pending", func() bool { return r.proposer.pendingBytes() == 0 })
		})
}

// TestWhatWaitsToBeAppliedIsBounded commits while the state machine blocks. Beyond the limit the payloads do not wait
// in memory. They are read from the log later.
func TestWhatWaitsToBeAppliedIsBounded(t *testing.T) {
	const limit, size, count = 50_000, 1000, 200
	inBubble(t, setting{size: 3, tune: func(o *Options) { o.MaxBatchBytes = size }}, func(c *testCluster) {
		id := c.leader()
		r, sm := c.running[id], c.machines[id]
		l := r.apply
		l.mu.Lock()
		l.queue.Limit = limit
		l.mu.Unlock()
		busy, open := c.gate()
		sm.hook(func(m *machine) { m.apply = func(string) error { <-busy; return nil } })
		a := newAnswers()
		waiting := func() int {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.queue.Bytes()
		}
		proposed := 0
		propose := func() {
			require.NoError(c.t, a.propose(r, fmt.Sprintf("%0*d", size, proposed), nil))
			proposed++
			synctest.Wait()
		}
		for waiting() <= limit {
			propose()
		}
		full := waiting()
		c.net.isolate(uint64(id), true)
		for proposed < count {
			propose()
		}
		c.until("the log has all", func() bool {
			st := r.first().status.Load()
			return st.Last >= count && st.Durable == st.Last
		})
		c.net.isolate(uint64(id), false)
		c.until("all are committed", func() bool { return r.metrics.commits.Load() > count })
		require.LessOrEqual(c.t, waiting(), full+size/2, "configurations stay, commands do not")
		open()
		c.until("everybody is told", a.all)
		for _, err := range a.complete(c.t) {
			require.NoError(c.t, err)
		}
		require.Len(c.t, sm.applied, count)
		require.True(c.t, slices.IsSorted(sm.applied), "the payloads are those that were proposed")
		l.mu.Lock()
		defer l.mu.Unlock()
		require.Zero(c.t, l.queue.Bytes())
	})
}

// TestQuestionsBeyondTheirLimitAreDropped requests bodies while no request can be answered.
func TestQuestionsBeyondTheirLimitAreDropped(t *testing.T) {
	inBubble(t, setting{size: 3}, func(c *testCluster) {
		id := c.follower()
		r, from := c.running[id], c.leader()
		_, err := r.Propose(c.t.Context(), []byte("with a body"), make([]byte, 5000))
		require.NoError(c.t, err)
		index := c.bodiesOf(id)[0].Index
		ask := func(blob int) {
			r.HandleFrame(uint64(from), 0,
				frame(&protocol.Message{Type: protocol.MsgFetch, Instance: 1, From: from, To: id}, index, blob))
		}
		ask(1 << 20)
		require.EqualValues(c.t, 1, r.metrics.dropped.Load(), "no question is so large")
		synctest.Wait()     // until the body is durable
		r.bodies.kmu.Lock() // the answering goroutine waits
		for range 2 * body.Questions {
			ask(0)
		}
		require.GreaterOrEqual(c.t, r.metrics.dropped.Load(), uint64(body.Questions-bodyServers))
		r.bodies.kmu.Unlock()
		c.until("no question waits", func() bool { return len(r.bodies.questions) == 0 })
		c.serves()
	})
}

// TestReadsShareGroups starts many reads while the leader is disconnected. They wait in a few groups, and all are
// answered.
func TestReadsShareGroups(t *testing.T) {
	inBubble(t, setting{size: 3, tune: woven(3)}, func(c *testCluster) {
		id := c.leader()
		r, a := c.running[id], newAnswers()
		c.net.isolate(uint64(id), true)
		for i := range 300 {
			a.ask(fmt.Sprint("read ", i), func() error { return r.ReadBarrier(c.t.Context()) })
			if i%30 == 0 {
				synctest.Wait()
			}
			require.LessOrEqual(c.t, r.apply.reading[0].Load(), int64(3))
		}
		<-time.After(testElection / 4)
		c.net.isolate(uint64(id), false)
		c.until("everybody is told", a.all)
		a.complete(c.t)
		c.until("no group waits", func() bool { return r.apply.reading[0].Load() == 0 })
	})
}

// TestOneStreamServesAllThatAsk requests snapshots for a member repeatedly while one is sent.
func TestOneStreamServesAllThatAsk(t *testing.T) {
	inBubble(t, setting{size: 3, tune: keepLittle}, func(c *testCluster) {
		from, to := c.stream()
		r := c.running[from]
		views := c.machines[from].views
		for range 50 {
			r.exchange.do(func(m *snapshot.StateExchange) { m.Ask(to, &member.SnapshotOffer{}) })
		}
		synctest.Wait()
		require.Equal(c.t, views, c.machines[from].views, "no other view is taken")
	})
}
