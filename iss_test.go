package braid_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// wovenISS has a log of several instances of ISS.
func wovenISS(instances int) func(*braid.Options) {
	return func(o *braid.Options) { o.Protocol = braid.ISS{Instances: instances} }
}

// many proposes commands at all members at the same time, so that all instances take part. It returns them.
func (c *cluster) many(name string, count int) (acked []string) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for id, n := range c.nodes {
		for i := range count {
			wg.Go(func() {
				text := fmt.Sprintf("%s-%d-%d", name, id, i)
				_, err := n.Propose(c.ctx(), []byte(text))
				require.NoError(c.t, err, text)
				mu.Lock()
				defer mu.Unlock()
				acked = append(acked, text)
			})
		}
	}
	wg.Wait()
	return acked
}

// TestInstancesOfISSAreOneLog: all members propose in all instances, and read. One of them starts again, then all.
func TestInstancesOfISSAreOneLog(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, wovenISS(4))
	c.led()
	acked := c.fill("x", 20)
	acked = append(acked, c.many("many", 150)...)
	c.verify(acked)
	for id, n := range c.nodes {
		require.NoError(t, n.ReadBarrier(c.ctx()))
		st := n.Status()
		require.Equal(t, []any{"iss", braid.OrderNiagara}, []any{st.Protocol, st.Order})
		require.Len(t, st.Instances, 4)
		for _, in := range st.Instances {
			require.NotNil(t, in.Epoch, "instance %d of %s", in.Instance, id)
			require.Len(t, in.Epoch.Segments, 3, "all members lead in instance %d", in.Instance)
		}
	}
	c.stop(2)
	acked = append(acked, c.fill("two of three", 10)...)
	c.start(c.members[1], false)
	acked = append(acked, c.fill("again", 10)...)
	c.verify(acked)
	c.restart()
	c.led()
	acked = append(acked, c.many("end", 20)...)
	c.verify(acked)
}

// TestTheNumberOfInstancesOfISSIsSwitched: it is neither tuned nor reshaped. All that was acknowledged stays.
func TestTheNumberOfInstancesOfISSIsSwitched(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	acked := c.fill("raft", 5)
	instances := func(n string) map[string]string { return map[string]string{"instances": n} }
	for _, to := range []braid.Switch{
		{Protocol: "iss", Settings: instances("4")}, {Protocol: "iss", Settings: instances("2")},
		{Protocol: "iss", Settings: instances("1")}, {Protocol: "iss", Settings: instances("3")}, {Protocol: "niagara"}, {Protocol: "raft"},
	} {
		acked = append(acked, c.switched(1, to)...)
		if to.Protocol == "iss" {
			require.Len(t, c.nodes[1].Status().Instances, int(to.Settings["instances"][0]-'0'))
			_, err := c.any().Tune(c.ctx(), braid.Tuning{Set: map[string]string{"instances": "5"}})
			require.ErrorContains(t, err, "only a switch to it changes them")
			var refused *braid.RefusedError
			require.ErrorAs(t, c.any().Reshape(c.ctx(), 5), &refused)
		}
		acked = append(acked, c.many(fmt.Sprint(to), 20)...)
		c.verify(acked)
	}
	c.restart()
	c.verify(append(acked, c.fill("end", 5)...))
}

// TestASwitchToAnotherNumberOfInstances: a repeated call succeeds, also after a later tune, and one with another number
// fails, although its seal would have brought the same profile.
func TestASwitchToAnotherNumberOfInstances(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	to := func(instances string) braid.Switch {
		return braid.Switch{Protocol: "iss", Settings: map[string]string{"instances": instances}, Version: 1}
	}
	c.switched(1, to("4"))
	for _, relays := range []string{"1", "2"} {
		_, err := c.any().Switch(c.ctx(), to("4"))
		require.NoError(t, err)
		_, err = c.any().Switch(c.ctx(), to("2"))
		require.ErrorIs(t, err, braid.ErrProfileReplaced)
		_, err = c.any().Tune(c.ctx(), braid.Tuning{Set: map[string]string{"relays": relays}})
		require.NoError(t, err)
	}
}

// TestMembersOfInstancesOfISSChange: the instances follow the first one, with members that join and that leave.
func TestMembersOfInstancesOfISSChange(t *testing.T) {
	t.Parallel()
	testMembershipChanges(newCluster(t, 3, wovenISS(3)))
}
