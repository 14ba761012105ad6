package braid_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// expelled waits until a member stopped because the cluster continues without it.
func (c *cluster) expelled(id braid.MemberID) *braid.ExpelledError {
	c.t.Helper()
	select {
	case <-c.nodes[id].Done():
	case <-time.After(testTimeout):
		require.Fail(c.t, "a member that was removed goes on")
	}
	var expelled *braid.ExpelledError
	require.ErrorAs(c.t, c.nodes[id].Err(), &expelled)
	require.Equal(c.t, id, expelled.Member)
	delete(c.nodes, id)
	return expelled
}

// unready waits until a member knows that it was removed. It is not ready then, although it still runs for a while.
func (c *cluster) unready(id braid.MemberID) {
	c.t.Helper()
	n := c.nodes[id]
	for range n.Changes(c.ctx()) {
		if !slices.ContainsFunc(n.Status().Instances, func(st braid.InstanceStatus) bool { return !st.Removed }) {
			break
		}
	}
	err := braid.Ready(c.ctx(), n)
	require.True(c.t, errors.As(err, new(*braid.ExpelledError)) || errors.Is(err, braid.ErrStopped), "%v", err)
}

func remove(id braid.MemberID) braid.Change {
	return braid.Change{Kind: braid.RemoveMember, Member: braid.Member{ID: id}}
}

func TestARemovedMemberStops(t *testing.T) {
	t.Parallel()
	for name, tune := range map[string]func(*braid.Options){"raft": nil, "spread": woven(3, spread)} {
		for _, leads := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, leads %t", name, leads), func(t *testing.T) {
				t.Parallel()
				c := newCluster(t, 3, tune)
				c.led()
				leaves := c.leader()
				if !leads {
					leaves = leaves%3 + 1
				}
				acked := c.fill("x", 5)
				changed(t, c.nodes[leaves], remove(leaves))
				c.unready(leaves)
				c.expelled(leaves)
				c.led()
				c.verify(append(acked, c.fill("y", 5)...))

				// It knows from its own disk, or is told again.
				if err := c.open(c.members[leaves-1], false); err != nil {
					require.ErrorAs(t, err, new(*braid.ExpelledError))
				} else {
					c.expelled(leaves)
				}
			})
		}
	}
}

func TestAMemberThatWasRemovedWhileItWasAwayStops(t *testing.T) {
	t.Parallel()
	for name, tune := range map[string]func(*braid.Options){"raft": nil, "woven": woven(2)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, tune)
			c.led()
			leaves := c.leader()%3 + 1
			acked := c.fill("x", 5)
			c.stop(leaves)
			c.led()
			changed(t, c.any(), remove(leaves))
			for _, m := range c.members { // now they keep no link for who left
				if m.ID != leaves {
					c.stop(m.ID)
					c.start(m, false)
				}
			}
			for range 2 { // every time that it starts
				require.NoError(t, c.open(c.members[leaves-1], false))
				require.NotZero(t, c.expelled(leaves).By, "others told it")
			}
			c.verify(append(acked, c.fill("y", 5)...))
		})
	}
}

// TestWritesGoOnWhenTheLeaderIsRemoved removes the leader while a member that stays has writes in progress. They ended
// with an error because the removed leader refused them. They are proposed again at the next one, and take effect once.
func TestWritesGoOnWhenTheLeaderIsRemoved(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4, func(o *braid.Options) { o.Experiment.Net = "latency=2ms" })
	leader := c.leader()
	stays := c.nodes[leader%4+1]
	ended, end := context.WithCancel(c.ctx())
	var wg sync.WaitGroup
	var mu sync.Mutex
	var acked []string
	for i := range 64 {
		wg.Go(func() {
			for n := 0; ended.Err() == nil; n++ {
				command := fmt.Sprintf("%d of %d", n, i)
				_, err := stays.Propose(c.ctx(), []byte(command))
				if assert.NoError(t, err) {
					mu.Lock()
					acked = append(acked, command)
					mu.Unlock()
				}
			}
		})
	}
	changed(t, stays, remove(leader))
	c.expelled(leader)
	end()
	wg.Wait()
	c.verify(acked)
}
