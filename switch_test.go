package braid_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// TestProtocolsOfOneCoreAreSwitched: by a change of settings alone. A repetition succeeds, whatever the first call has
// done, and another profile than the one that is named is left alone.
func TestProtocolsOfOneCoreAreSwitched(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.leader()
	var acked []string
	version := uint64(1)
	for _, to := range []braid.Switch{
		{Protocol: "craft", Settings: map[string]string{"code-k": "2"}}, {Protocol: "niagara"}, {Protocol: "lcr"},
		{Protocol: "niagara", Settings: map[string]string{"instances": "2", "leaders": "spread"}}, {Protocol: "raft"},
	} {
		to.Version = version
		plan, err := c.any().PlanSwitch(c.ctx(), to)
		require.NoError(t, err)
		require.NotEmpty(t, plan.Tune)
		require.Zero(t, plan.Seal)
		p, err := c.nodes[braid.MemberID(version%3+1)].Switch(c.ctx(), to)
		require.NoError(t, err, to.Protocol)
		version++
		require.Equal(t, version, p.Version, to.Protocol)
		require.Equal(t, to.Protocol, p.Protocol)
		require.Equal(t, plan.Settings, p.Settings)
		require.Empty(t, p.Earlier[version-2].Protocol)
		for _, again := range []uint64{0, version - 1, version} {
			to.Version = again
			n := c.any()
			p, err := n.Switch(c.ctx(), to)
			require.NoError(t, err, "%s again, from profile %d", to.Protocol, again)
			require.Equal(t, version, p.Version)
			require.Equal(t, to.Protocol, n.Status().Protocol)
		}
		acked = append(acked, c.fill(p.Protocol+string(rune(0x60+version)), 3)...)
	}
	require.Equal(t, "copy false 1", func(set map[string]string) string {
		return set["placement"] + " " + set["lanes"] + " " + set["instances"]
	}(c.any().Status().Profile.Settings))
	_, err := c.any().Switch(c.ctx(), braid.Switch{Protocol: "craft", Version: 2})
	require.ErrorIs(t, err, braid.ErrProfileReplaced)
	c.verify(acked)
}

// TestCoresAreSwitched: by a seal, to whatever protocol and from wherever the log began, and the members come back.
func TestCoresAreSwitched(t *testing.T) {
	t.Parallel()
	for _, began := range []string{"raft", "multi-paxos", "iss"} {
		t.Run(began, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, func(o *braid.Options) { o.Protocol = braid.Named(began) })
			c.leader()
			acked := c.fill("first", 3)
			for i, to := range []string{"iss", "multi-paxos", "niagara", "iss", "lcr", "multi-paxos", "craft"} {
				if i == 0 && to == began {
					continue
				}
				p, err := c.nodes[braid.MemberID(i%3+1)].Switch(c.ctx(), braid.Switch{Protocol: to})
				require.NoError(t, err, to)
				require.Equal(t, to, p.Protocol)
				require.Equal(t, to, c.nodes[braid.MemberID(i%3+1)].Status().Protocol)
				acked = append(acked, c.fill(fmt.Sprint(to, i), 3)...)
				if i%2 == 1 {
					c.restart()
				}
			}
			c.verify(acked)
		})
	}
}

// TestWhatCannotBeSwitched: a refusal names the setting or the protocol, and nothing happened.
func TestWhatCannotBeSwitched(t *testing.T) {
	t.Parallel()
	n := sole(t, []braid.Member{{ID: 1}})
	require.NoError(t, n.ReadBarrier(t.Context()))
	before := n.Status().Profile
	for want, s := range map[string]braid.Switch{
		"protocol: paxos: it is one of raft, craft, niagara, lcr, multi-paxos and iss":      {Protocol: "paxos"},
		"protocol: epaxos: it is for comparison, as etcd's API needs one order of all keys": {Protocol: "epaxos"},
		"color: blue: there is no such setting of protocol iss": {Protocol: "iss",
			Settings: map[string]string{"color": "blue"}},
		"quorums: 4/2: there are 1 voters": {Protocol: "iss", Settings: map[string]string{"quorums": "4/2"}},
	} {
		var no *braid.SwitchError
		_, err := n.Switch(t.Context(), s)
		require.ErrorAs(t, err, &no)
		require.ErrorIs(t, err, braid.ErrNotTunable)
		require.EqualError(t, err, "braid: switch: "+want)
		require.False(t, no.Retry)
		_, planned := n.PlanSwitch(t.Context(), s)
		require.Equal(t, err, planned)
	}
	for _, version := range []uint64{2, 7} {
		_, err := n.Switch(t.Context(), braid.Switch{Protocol: "iss", Version: version})
		require.ErrorIs(t, err, braid.ErrProfileReplaced)
	}
	plan, err := n.PlanSwitch(t.Context(), braid.Switch{Protocol: "multi-paxos",
		Settings: map[string]string{"relays": "2"}})
	require.NoError(t, err)
	require.Equal(t, []any{uint64(1), uint64(2), "multi-paxos", 1, "2"},
		[]any{plan.Version, plan.Seal, plan.Protocol, plan.Instances, plan.Settings["relays"]})
	require.Equal(t, "majority", plan.Settings["quorums"])
	require.Equal(t, before, n.Status().Profile)
}

// TestOtherLogsAreNotSwitched: those without one order of all commands.
func TestOtherLogsAreNotSwitched(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, func(o *braid.Options) { o.Protocol = braid.Named("epaxos") })
	_, err := c.any().Switch(c.ctx(), braid.Switch{Protocol: "raft"})
	require.ErrorIs(t, err, braid.ErrNotTunable)
	require.ErrorContains(t, err, "protocol epaxos cannot be left")
}
