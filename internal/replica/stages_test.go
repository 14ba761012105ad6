package replica

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/vfs/errorfs"
	"github.com/braidlog/braid/protocol"
)

// slow makes the syncs of a member's log take a time. Others may be waited for under a lock.
func (c *testCluster) slow(id protocol.MemberID, took time.Duration) {
	c.faults[id].set(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData {
			<-time.After(took)
		}
		return nil
	})
}

// TestStagesOfAProposal: each stage has the time that it took, on the member that was asked.
func TestStagesOfAProposal(t *testing.T) {
	const own, others, apply = 30 * time.Millisecond, 50 * time.Millisecond, 20 * time.Millisecond
	inBubble(t, setting{size: 3}, func(c *testCluster) {
		id := c.leader()
		c.fill(id, "before", 1)
		for _, m := range c.members {
			c.slow(m.ID, others)
		}
		c.slow(id, own)
		c.machines[id].hook(func(m *machine) { m.apply = func(string) error { <-time.After(apply); return nil } })
		r := c.running[id]
		<-time.After(time.Millisecond) // by the bubble's clock earlier writes were at the same time
		before := r.Status().Stages
		var s protocol.Stages
		_, err := r.ProposeWith(t.Context(), []byte("x"), nil, protocol.ProposeOptions{Stages: &s})
		require.NoError(t, err)
		require.Zero(t, s.Proposed)
		require.Equal(t, own, s.Appended-s.Proposed)
		require.GreaterOrEqual(t, s.Committed-s.Proposed, others)
		require.Zero(t, s.Ordered-s.Committed)
		require.Equal(t, apply, s.Applied-s.Ordered)

		now := r.Status().Stages
		since := func(before, now Latency) (n uint64, sum time.Duration) {
			for i := range now.Counts {
				n += now.Counts[i] - before.Counts[i]
			}
			return n, now.Sum - before.Sum
		}
		for _, stage := range []struct {
			before, now Latency
			sum         time.Duration
		}{
			{before.Queue, now.Queue, 0},
			{before.Replicate, now.Replicate, s.Committed - s.Proposed},
			{before.Order, now.Order, 0},
			{before.Apply, now.Apply, apply},
		} {
			n, sum := since(stage.before, stage.now)
			require.EqualValues(t, 1, n)
			require.Equal(t, stage.sum, sum)
		}
		n, sum := since(before.Append, now.Append)
		require.GreaterOrEqual(t, n, uint64(1))
		require.GreaterOrEqual(t, sum, own)

		// Where the leader's disk is the slow one, the command is committed before that has it.
		c.slow(id, 4*others)
		_, err = r.ProposeWith(t.Context(), []byte("x"), nil, protocol.ProposeOptions{Stages: &s})
		require.NoError(t, err)
		require.Zero(t, s.Appended)

		// A follower does not append what it proposes before the leader has it.
		f := c.running[c.follower()]
		_, err = f.ProposeWith(t.Context(), []byte("x"), nil, protocol.ProposeOptions{Stages: &s})
		require.NoError(t, err)
		require.Zero(t, s.Appended)
		require.GreaterOrEqual(t, s.Committed-s.Proposed, others)
	})
}

// TestStagesOfAProposalThatIsGivenUp: its caller learns since when it waits to be committed, if it was proposed.
func TestStagesOfAProposalThatIsGivenUp(t *testing.T) {
	inBubble(t, setting{size: 3}, func(c *testCluster) {
		id := c.leader()
		c.fill(id, "before", 1)
		r := c.running[id]
		c.net.isolate(uint64(id), true)
		<-time.After(time.Millisecond)
		require.NoError(t, r.ProposeAsync([]byte("x"), nil, func(any, error) {}))
		<-time.After(100 * time.Microsecond)
		var s protocol.Stages
		propose := func() error {
			_, err := r.ProposeWith(t.Context(), []byte("y"), nil,
				protocol.ProposeOptions{Stages: &s, Timeout: 100 * time.Millisecond})
			return err
		}
		require.ErrorIs(t, propose(), member.ErrMaybeCommitted)
		require.Equal(t, protocol.Stages{Proposed: 150 * time.Microsecond}, s, "batches are so far apart")

		c.until("it does not lead", func() bool { return r.first().status.Load().Leader == 0 })
		s = protocol.Stages{}
		require.ErrorIs(t, propose(), member.ErrNotSent)
		require.Zero(t, s)
	})
}

// TestStagesOfARead: a read waits until what was confirmed is applied.
func TestStagesOfARead(t *testing.T) {
	inBubble(t, setting{size: 3}, func(c *testCluster) {
		id := c.leader()
		c.fill(id, "before", 1)
		r := c.running[id]
		busy, open := c.gate()
		c.machines[id].hook(func(m *machine) { m.apply = func(string) error { <-busy; return nil } })
		require.NoError(t, r.ProposeAsync([]byte("x"), nil, func(any, error) {}))
		c.until("it is committed", func() bool {
			_, applied, _ := r.apply.appliedOf(1)
			return r.first().status.Load().Commit > applied
		})
		var s protocol.ReadStages
		read := make(chan error, 1)
		go func() { read <- r.ReadAs(t.Context(), false, 0, &s) }()
		<-time.After(40 * time.Millisecond)
		open()
		require.NoError(t, <-read)
		require.Zero(t, s.Asked)
		require.Less(t, s.Confirmed-s.Asked, 40*time.Millisecond)
		require.Equal(t, 40*time.Millisecond, s.Served)
		stats := r.Status().Stages
		require.Positive(t, stats.ReadWait.Sum)
		require.Equal(t, s.Confirmed-s.Asked, stats.ReadConfirm.Sum)

		// One that fails leaves them.
		s = protocol.ReadStages{}
		c.net.isolate(uint64(id), true)
		require.ErrorIs(t, r.ReadAs(t.Context(), false, time.Second, &s), member.ErrReadTimeout)
		require.Zero(t, s)
	})
}

// TestLatencyBounds: each time is counted at the least bound that it does not exceed.
func TestLatencyBounds(t *testing.T) {
	for took, at := range map[time.Duration]int{
		-1: 0, 0: 0, leastLatency: 0, leastLatency + 1: 1, 2 * leastLatency: 1, 2*leastLatency + 1: 2,
		LatencyBound(19): 19, LatencyBound(19) + 1: 20, time.Hour: 20,
	} {
		var l latency
		l.observe(took)
		s := l.stats()
		require.EqualValues(t, 1, s.Counts[at], took)
		require.Equal(t, max(took, 0), s.Sum)
	}
}

// TestAppendingsAreKeptForAWhile: what was durable when is known of the last writes alone.
func TestAppendingsAreKeptForAWhile(t *testing.T) {
	var s appendings
	for i := range 3 * appendingsKept {
		a := &appending{at: time.Duration(10 + 10*i)}
		a.done.Store(int64(a.at) + 5)
		s.add(a)
	}
	last := s.list[len(s.list)-1]
	require.Equal(t, last.at+5, s.durable(last.at))
	require.Equal(t, last.at+5, s.durable(last.at-9))
	require.Zero(t, s.durable(last.at+1))
	require.Zero(t, s.durable(10))
	require.LessOrEqual(t, len(s.list), 2*appendingsKept)
	last.done.Store(0)
	require.Zero(t, s.durable(last.at), "it is not durable")
}
