package braid_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// TestLeaseAfterATurnThatStalled: a leader with leases stands still in the middle of a turn of
// its event loop (here its state machine, which may as well be a disk that is read) until the
// others have another leader. Who asked it meanwhile must not be answered by the lease that
// it had before.
func TestLeaseAfterATurnThatStalled(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, func(o *braid.Options) { o.LeaseReads, o.Experiment.NoAsyncApply = true, true })
	old := c.leader()
	_, err := c.nodes[old].Propose(c.ctx(), []byte("first"))
	require.NoError(t, err)
	require.NoError(t, c.nodes[old].ReadBarrier(c.ctx()))

	stalled, release := make(chan struct{}), make(chan struct{})
	sm := c.counts[old]
	sm.mu.Lock()
	sm.before = func(command string) {
		if command == "stall" {
			close(stalled)
			<-release
		}
	}
	sm.mu.Unlock()
	let := sync.OnceFunc(func() { close(release) })
	defer let()
	require.NoError(t, c.nodes[old].ProposeAsync([]byte("stall"), func(any, error) {}))
	<-stalled
	var next *braid.Node
	require.Eventually(t, func() bool {
		for id, n := range c.nodes {
			if st := n.Status(); id != old && st.Leader() == id {
				next = n
			}
		}
		return next != nil
	}, testTimeout, 5*time.Millisecond, "no other leader")
	_, err = next.Propose(c.ctx(), []byte("second"))
	require.NoError(t, err)

	const readers = 20
	var asking atomic.Int32
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			asking.Add(1)
			if c.nodes[old].ReadBarrier(c.ctx()) == nil && sm.count("second") == 0 {
				t.Error("a read that began after a write was acknowledged misses it")
			}
		})
	}
	for asking.Load() < readers {
		runtime.Gosched()
	}
	for range 1000 {
		runtime.Gosched() // they ask while the turn stands still
	}
	let()
	all.Wait()
}
