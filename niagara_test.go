package braid_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/testsize"
)

// woven makes a cluster's log one of several instances.
func woven(instances int, more ...func(*braid.Options)) func(*braid.Options) {
	return func(o *braid.Options) {
		o.Protocol = braid.With(o.Protocol, "order=niagara", fmt.Sprint("instances=", instances))
		for _, f := range more {
			f(o)
		}
	}
}

func spread(o *braid.Options) { o.Protocol = braid.With(o.Protocol, "leaders=spread") }

// led waits until every instance has a leader everywhere.
func (c *cluster) led() {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		for _, n := range c.nodes {
			for _, in := range n.Status().Instances {
				if c.nodes[in.Leader] == nil {
					return false
				}
			}
		}
		return true
	}, testTimeout, 5*time.Millisecond, "an instance without a leader")
}

func TestWovenInstancesAreOneLog(t *testing.T) {
	t.Parallel()
	for _, instances := range []int{1, 3, 4} {
		t.Run(fmt.Sprintf("%d instances", instances), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, woven(instances))
			c.led()
			acked := c.fill("x", 50)
			require.Len(t, acked, 150)
			c.verify(acked)
			for _, n := range c.nodes {
				st := n.Status()
				require.Len(t, st.Instances, instances)
				for i, in := range st.Instances {
					require.EqualValues(t, i+1, in.Instance)
				}
			}
			// All instances take part when there is enough to do.
			var wg sync.WaitGroup
			for i := range 400 {
				wg.Go(func() {
					_, err := c.any().Propose(c.ctx(), fmt.Appendf(nil, "many-%d", i))
					require.NoError(t, err)
				})
			}
			wg.Wait()
			c.restart()
			c.led()
			c.verify(acked)
			c.verify(c.fill("y", 10))
		})
	}
}

func TestNothingIsLostWhenALeaderOfInstancesStops(t *testing.T) {
	t.Parallel()
	for name, tune := range map[string]func(*braid.Options){"together": woven(4), "spread": woven(3, spread)} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3, tune)
			c.led()
			leader := c.leader()
			acked := c.fill("before", 20)
			c.stop(leader)
			acked = append(acked, c.fill("after", 20)...)
			require.Len(t, acked, 100, "proposals at the others survive the change of leaders")
			c.verify(acked)
			c.start(c.members[leader-1], false)
			c.led()
			c.verify(acked)
		})
	}
}

func TestALaggardOfWovenInstancesCatchesUpBySnapshot(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, woven(3, func(o *braid.Options) { o.Limits.SnapshotBytes = 4 << 10 }))
	c.led()
	leader := c.leader()
	behind := leader%3 + 1
	has := c.nodes[behind].Status().Instances[0].Last
	c.stop(behind)
	acked := c.fillPast(leader, has, "x")
	c.start(c.members[behind-1], false)
	c.led()
	c.verify(acked)
	acked = append(acked, c.fill("y", 100)...)
	for _, m := range c.members { // and all recover from snapshots
		c.stop(m.ID)
	}
	for _, m := range c.members {
		c.start(m, false)
	}
	c.led()
	c.verify(acked)
}

// ledBy waits until every member sees the instances led as wanted.
func (c *cluster) ledBy(want func(instance int) braid.MemberID, why string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		for _, n := range c.nodes {
			for i, in := range n.Status().Instances {
				if in.Leader != want(i+1) {
					return false
				}
			}
		}
		return true
	}, testTimeout, 10*time.Millisecond, why)
}

func TestInstancesGoToWhoShouldLeadThem(t *testing.T) {
	t.Parallel()
	t.Run("spread", func(t *testing.T) {
		t.Parallel()
		c := newCluster(t, 3, woven(4, spread))
		want := func(i int) braid.MemberID { return braid.MemberID((i-1)%3 + 1) }
		c.ledBy(want, "they take turns")
		c.stop(2)
		acked := c.fill("x", 10)
		c.start(c.members[1], false)
		c.ledBy(want, "moved back")
		c.verify(acked)

		require.Eventually(t, func() bool { return c.any().TransferLeader(c.ctx(), 3) == nil }, testTimeout, 10*time.Millisecond)
		for i, began := 0, time.Now(); time.Since(began) < 3*time.Second; i++ {
			c.fill(fmt.Sprintf("meanwhile %d", i), 20)
		}
		require.EqualValues(t, 3, c.any().Status().Instances[0].Leader, "whom an operator chose stays")
	})
	t.Run("together", func(t *testing.T) {
		t.Parallel()
		c := newCluster(t, 3, woven(4))
		c.leader()
		together := func(first func() braid.MemberID) func(int) braid.MemberID {
			return func(int) braid.MemberID { return first() }
		}
		first := func() braid.MemberID { return c.any().Status().Instances[0].Leader }
		c.ledBy(together(first), "one leads all")
		old := c.leader()
		to := old%3 + 1
		require.Eventually(t, func() bool { return c.any().TransferLeader(c.ctx(), to) == nil && c.leader() == to }, testTimeout, 10*time.Millisecond)
		c.ledBy(together(first), "all follow the first")
		c.verify(c.fill("x", 10))
	})
}

func TestMembersOfWovenInstancesChange(t *testing.T) {
	t.Parallel()
	for name, tune := range map[string]func(*braid.Options){"together": woven(3), "spread": woven(3, spread)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testMembershipChanges(newCluster(t, 3, tune))
		})
	}
}

func TestBodiesOfWovenInstances(t *testing.T) {
	t.Parallel()
	l := newLibrary(t, 3, woven(3)) // spread, for what is coded
	l.leader()
	l.put("x", sizes...)
	l.coded(100_000, 2)
	l.verify()
	used := map[braid.InstanceID]bool{}
	for name := range l.bodies {
		ref, _ := l.shelves[1].find(name)
		used[ref.Instance] = true
	}
	require.Greater(t, len(used), 1, "members propose to the instances that they lead")
	for _, m := range l.members {
		l.stop(m.ID)
	}
	for _, m := range l.members {
		l.restart(m.ID)
	}
	l.leader()
	l.verify()
	l.complete()
}

func TestALogIsReshapedUnderLoad(t *testing.T) {
	t.Parallel()
	for name, tune := range map[string]func(*braid.Options){"together": woven(2), "spread": woven(2, spread)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, tune)
			c.led()
			var acked []string
			for i, instances := range []int{4, 1, 3} {
				done := make(chan []string)
				go func() { done <- c.fill(fmt.Sprintf("during %d", i), 100) }()
				require.NoError(t, c.nodes[braid.MemberID(i+1)].Reshape(c.ctx(), instances))
				some := <-done
				require.Len(t, some, 300)
				acked = append(acked, some...)
				require.Eventually(t, func() bool {
					for _, n := range c.nodes {
						if len(n.Status().Instances) != instances {
							return false
						}
					}
					return true
				}, testTimeout, 5*time.Millisecond)
				c.led()
				c.verify(acked)
			}
			c.restart()
			c.led()
			require.Eventually(t, func() bool { return len(c.any().Status().Instances) == 3 }, testTimeout, 5*time.Millisecond)
			c.verify(append(acked, c.fill("after", 10)...))
		})
	}
}

func TestReshapingIsRefusedWhereItMakesNoSense(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, woven(2))
	c.led()
	var refused *braid.RefusedError
	require.ErrorAs(t, c.any().Reshape(c.ctx(), 0), &refused)
	require.ErrorAs(t, c.any().Reshape(c.ctx(), braid.MaxInstances+1), &refused)
	require.NoError(t, c.any().Reshape(c.ctx(), 2), "as it is")
	single := newCluster(t, 1, func(o *braid.Options) { o.Protocol = braid.MultiPaxos{} })
	single.leader()
	require.ErrorAs(t, single.any().Reshape(single.ctx(), 2), &refused, "its instances cannot be merged")
}

// Ids of instances have gaps after reshapes: leaders are spread evenly all the same.
func TestLeadersAreSpreadAfterReshapes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, woven(3, spread))
	c.led()
	require.NoError(t, c.nodes[1].Reshape(c.ctx(), 1))
	require.NoError(t, c.nodes[1].Reshape(c.ctx(), 3))
	require.Eventually(t, func() bool {
		for id, n := range c.nodes {
			st, leads := n.Status(), 0
			for _, in := range st.Instances {
				if in.Leader == id {
					leads++
				}
			}
			if len(st.Instances) != 3 || st.Instances[1].Instance != 4 || leads != 1 {
				return false
			}
		}
		return true
	}, testTimeout, 5*time.Millisecond, "instances 1, 4 and 5 are not led by one member each")
	c.verify(c.fill("x", 10))
}

func TestAMemberThatMissedAReshape(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	for name, snapshotBytes := range map[string]int{"with the log": 1 << 20, "without": 4 << 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, woven(4, func(o *braid.Options) { o.Limits.SnapshotBytes = snapshotBytes }))
			c.led()
			acked := c.fill("before", 10)
			c.stop(3)
			require.NoError(t, c.any().Reshape(c.ctx(), 2))
			// No member keeps retired instances forever.
			pace := time.NewTicker(20 * time.Millisecond)
			defer pace.Stop()
			for i, began := 0, time.Now(); time.Since(began) < 6*time.Second; i++ {
				acked = append(acked, c.fill(fmt.Sprintf("meanwhile %d", i), 10)...)
				<-pace.C
			}
			require.NoError(t, c.any().Reshape(c.ctx(), 3))
			c.start(c.members[2], false)
			require.Eventually(t, func() bool {
				return len(c.nodes[3].Status().Instances) == 3 && braid.Ready(c.ctx(), c.nodes[3]) == nil
			}, testTimeout, 5*time.Millisecond, "it does not get what it missed")
			c.verify(append(acked, c.fill("after", 10)...))

			fourth := braid.Member{ID: 4, PeerURLs: []string{freeURL(t)}}
			c.dirs[4], c.members = t.TempDir(), append(c.members, fourth)
			changed(t, c.any(), braid.Change{Kind: braid.AddVoter, Member: fourth})
			c.start(fourth, true)
			require.Eventually(t, func() bool {
				return len(c.nodes[4].Status().Instances) == 3 && braid.Ready(c.ctx(), c.nodes[4]) == nil
			}, testTimeout, 5*time.Millisecond, "a new member does not get there")
			c.verify(acked)
		})
	}
}

func TestAClientsCommandsTakeEffectInOrder(t *testing.T) {
	t.Parallel()
	for name, tune := range map[string]func(*braid.Options){"one instance": nil, "four": woven(4), "spread": woven(3, spread)} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3, tune)
			c.led()
			leader := c.leader()
			const count = 3000
			type answer struct {
				place int
				err   error
			}
			answers := make(chan answer, count)
			client := c.nodes[leader%3+1].Client()
			for i := range count {
				err := client.ProposeAsync(fmt.Appendf(nil, "pipelined %d", i), nil, func(result any, err error) {
					place, _ := result.(int)
					answers <- answer{place, err}
				})
				require.NoError(t, err)
				if i == count/3 {
					c.stop(leader) // what is in progress is proposed again to another
				}
			}
			for i := range count { // the counts's results count commands
				a := <-answers
				require.NoError(t, a.err)
				require.Equal(t, i+1, a.place)
			}
			result, err := client.Propose(c.ctx(), []byte("one more"), nil)
			require.NoError(t, err)
			require.Equal(t, count+1, result)
		})
	}
}

func TestAClientStopsAtAFailure(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	leader := c.leader()
	client := c.nodes[leader].Client()
	_, err := client.Propose(c.ctx(), []byte("a"), nil)
	require.NoError(t, err)
	failures := make(chan error, 4<<20)
	asked := 0
	for ; asked < cap(failures); asked++ { // until the member does not take any: it hands leadership over first
		if asked == 100 {
			go c.nodes[leader].Close()
		}
		if client.ProposeAsync(fmt.Appendf(nil, "x %d", asked), nil, func(_ any, err error) { failures <- err }) != nil {
			break
		}
	}
	failed := false
	for range asked {
		if err := <-failures; err == nil {
			require.False(t, failed, "a command took effect after one that failed")
		} else {
			failed = true
		}
	}
	<-c.nodes[leader].Done()
	var broken *braid.BrokenError
	_, err = client.Propose(c.ctx(), []byte("z"), nil)
	require.Error(t, err)
	require.Equal(t, failed, errors.As(err, &broken), "it is broken if a command failed that was taken: %v", err)
}

func TestWhoIsRemovedMayStopAtOnce(t *testing.T) {
	t.Parallel()
	for name, tune := range map[string]func(*braid.Options){"together": woven(3), "spread": woven(3, spread)} {
		for _, leads := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, the leader %t", name, leads), func(t *testing.T) {
				c := newCluster(t, 2, tune)
				c.led()
				acked := c.fill("x", 10)
				leaves := c.leader()
				if !leads {
					leaves = 3 - leaves
				}
				change := braid.Change{Kind: braid.RemoveMember, Member: braid.Member{ID: leaves}}
				changed(t, c.nodes[leaves], change)
				c.stop(leaves) // with two members nothing continues if an instance still counts on it
				c.led()
				c.verify(append(acked, c.fill("y", 10)...))
			})
		}
	}
}
