package replica

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func count(l Latency) (n uint64) {
	for _, c := range l.Counts {
		n += c
	}
	return n
}

// TestSnapshotsAreMeasured: those of a member, the one that it sends to a member that was cut off, and the one that
// this member receives and installs.
func TestSnapshotsAreMeasured(t *testing.T) {
	inBubble(t, setting{size: 3, tune: keepLittle}, func(c *testCluster) {
		busy, open := c.gate()
		to := c.behind()
		c.machines[to].hook(func(m *machine) { m.restore = func() error { <-busy; return nil } })
		c.net.isolate(uint64(to), false)
		c.until("it is installed", func() bool { return c.running[to].Status().SnapshotTimes.Installing })
		open()
		c.until("it has been", func() bool { return !c.running[to].Status().SnapshotTimes.Installing })
		from := c.leader()
		sent, got := c.running[from].Status().SnapshotTimes, c.running[to].Status().SnapshotTimes
		require.Positive(t, count(sent.Save))
		require.Equal(t, count(sent.Save), count(sent.Sync))
		require.Zero(t, count(sent.Receive))
		require.Positive(t, count(got.Receive))
		require.Equal(t, count(got.Receive), count(got.ReceiveSync))
		require.Len(t, got.Peers, 1)
		require.Equal(t, from, got.Peers[0].ID)
		require.Equal(t, count(got.Receive), count(got.Peers[0].Received.Done))
		require.Zero(t, got.Peers[0].Received.Running)
		require.Equal(t, to, sent.Peers[0].ID)
		require.Equal(t, count(got.Receive), count(sent.Peers[0].Sent.Done))
	})
	inBubble(t, setting{size: 3, tune: keepLittle}, func(c *testCluster) {
		from, to := c.stream()
		p := c.running[from].Status().SnapshotTimes.Peers
		require.EqualValues(t, 1, p[0].Sent.Running)
		require.EqualValues(t, 1, c.running[to].Status().SnapshotTimes.Peers[0].Received.Running)
		c.net.isolate(uint64(to), true)
		c.until("it failed", func() bool { return c.running[from].Status().SnapshotTimes.Peers[0].Sent.Failed > 0 })
		require.Zero(t, count(c.running[from].Status().SnapshotTimes.Peers[0].Sent.Done))
	})
}
