package braid_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// TestALogIsSealedAndContinues: under each protocol that is switched to, everything acknowledged before is there once.
// A repetition of each switch succeeds. All members start again behind the last one.
func TestALogIsSealedAndContinues(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		begin string
		to    []braid.Switch
	}{
		{"multi-paxos", []braid.Switch{{Protocol: "multi-paxos", Settings: map[string]string{"quorums": "3/1"}},
			{Protocol: "multi-paxos", Settings: map[string]string{"quorums": ""}}}},
		{"raft", []braid.Switch{{Protocol: "multi-paxos"}, {Protocol: "lcr"}, {Protocol: "iss"},
			{Protocol: "niagara"}}},
		{"iss", []braid.Switch{{Protocol: "craft"},
			{Protocol: "iss", Settings: map[string]string{"epoch-slots": "128"}},
			{Protocol: "multi-paxos"}, {Protocol: "raft"}}},
	} {
		t.Run(k.begin, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, func(o *braid.Options) { o.Protocol = braid.Named(k.begin) })
			acked := c.fill("begin ", 3)
			for i, to := range k.to {
				acked = append(acked, c.switched(braid.MemberID(i%3+1), to)...)
				c.verify(acked)
			}
			last := k.to[len(k.to)-1].Protocol
			c.restart()
			acked = append(acked, c.fill("end ", 3)...)
			c.verify(acked)
			require.Equal(t, last, c.any().Status().Protocol)
		})
	}
}

// switched changes the protocol at a member, and repeats that at any. It returns what is acknowledged after it.
func (c *cluster) switched(at braid.MemberID, to braid.Switch) []string {
	t, n := c.t, c.nodes[at]
	t.Helper()
	to.Version = n.Status().Profile.Version
	p, err := n.Switch(c.ctx(), to)
	require.NoError(t, err, to.Protocol)
	require.Equal(t, to.Protocol, p.Protocol)
	require.Equal(t, to.Protocol, n.Status().Protocol)
	require.Eventually(t, func() bool { return (n.Status().Instances[0].Epoch != nil) == (to.Protocol == "iss") },
		testTimeout, time.Millisecond, "its instances are of the core")
	again, err := c.any().Switch(c.ctx(), to)
	require.NoError(t, err, "a repetition after a lost answer")
	require.Equal(t, p.Version, again.Version)
	return c.fill(to.Protocol+string(rune('a'+p.Version)), 3)
}

// TestSwitchesAreMadeUnderLoad, with a member away: it follows when it starts.
func TestSwitchesAreMadeUnderLoad(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	acked := c.fill("begin ", 3)
	loading, end := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var loaded []string
	load.Go(func() {
		for i := 0; loading.Err() == nil; i++ {
			loaded = append(loaded, c.fill("load "+time.Duration(i).String(), 5)...)
		}
	})
	for i, to := range []string{"iss", "raft", "multi-paxos"} {
		acked = append(acked, c.switched(braid.MemberID(i+1), braid.Switch{Protocol: to})...)
	}
	end()
	load.Wait()
	acked = append(acked, loaded...)
	c.stop(3)
	acked = append(acked, c.switched(1, braid.Switch{Protocol: "iss"})...)
	acked = append(acked, c.switched(2, braid.Switch{Protocol: "craft"})...)
	c.start(c.members[2], false)
	require.NoError(t, c.nodes[3].ReadBarrier(c.ctx()))
	require.Equal(t, "craft", c.nodes[3].Status().Protocol)
	c.verify(acked)
}

// TestTwoSwitchesAtOnce: of two with a version one wins. Without one both take effect, one after the other.
func TestTwoSwitchesAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.leader()
	for _, version := range []uint64{1, 0} {
		var errs [2]error
		var both sync.WaitGroup
		before := c.any().Status().Profile.Version
		for i, to := range []string{"multi-paxos", "iss"} {
			both.Go(func() {
				_, errs[i] = c.nodes[braid.MemberID(i+1)].Switch(c.ctx(), braid.Switch{Protocol: to, Version: version})
			})
		}
		both.Wait()
		lost := 0
		for _, err := range errs {
			if err != nil {
				require.ErrorIs(t, err, braid.ErrProfileReplaced)
				lost++
			}
		}
		n := c.any()
		require.NoError(t, n.ReadBarrier(c.ctx()))
		if version > 0 {
			require.Equal(t, 1, lost)
			require.Equal(t, before+1, n.Status().Profile.Version)
		} else {
			require.Zero(t, lost)
			require.Greater(t, n.Status().Profile.Version, before)
		}
	}
	c.verify(c.fill("x", 3))
}

// TestASwitchGoesOnAfterItsTune: its first call ended between the two. Another change in between is not overwritten.
func TestASwitchGoesOnAfterItsTune(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, func(o *braid.Options) { o.Protocol = braid.LCR{} })
	c.leader()
	to := braid.Switch{Protocol: "multi-paxos", Version: 1}
	plan, err := c.any().PlanSwitch(c.ctx(), to)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"lanes": "false"}, plan.Tune)
	require.EqualValues(t, 3, plan.Seal)
	_, err = c.any().Tune(c.ctx(), braid.Tuning{Set: plan.Tune, Version: 1})
	require.NoError(t, err)
	p, err := c.nodes[2].Switch(c.ctx(), to)
	require.NoError(t, err)
	require.Equal(t, []any{uint64(3), "multi-paxos"}, []any{p.Version, p.Protocol})
	_, err = c.any().Tune(c.ctx(), braid.Tuning{Set: map[string]string{"relays": "1"}})
	require.NoError(t, err)
	p, err = c.nodes[3].Switch(c.ctx(), to)
	require.NoError(t, err, "it was made")
	require.EqualValues(t, 4, p.Version)
	_, err = c.any().Switch(c.ctx(), braid.Switch{Protocol: "iss", Version: 3})
	require.ErrorIs(t, err, braid.ErrProfileReplaced)
	c.verify(c.fill("x", 3))
}
