package sim

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/client"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol/setting"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // many small worlds
	os.Exit(m.Run())
}

// TestSeeds runs kinds of clusters that step sim of .ci/run does not, and some that it does, with few seeds each. A
// short run has every fourth.
func TestSeeds(t *testing.T) {
	t.Parallel()
	every := testsize.Pick(testsize.Seeds, 4, 1, 1)
	for i, c := range []Campaign{
		{Protocol: fault.DefaultProtocol, Nodes: 1, Last: 40},
		{Protocol: fault.DefaultProtocol, Nodes: 2, Last: 40},
		{Protocol: fault.DefaultProtocol, Nodes: 4, Last: 40},
		{Protocol: fault.DefaultProtocol, Nodes: 5, Last: 20},
		{Protocol: fault.DefaultProtocol, Nodes: 7, Last: 30},
		{Protocol: "craft", Nodes: 1, Last: 10},
		{Protocol: "craft", Nodes: 2, Last: 20},
		{Protocol: "craft", Nodes: 3, Last: 60},
		{Protocol: "craft", Nodes: 4, Last: 30},
		{Protocol: "craft", Nodes: 7, Last: 5},
		{Protocol: "rs-raft", Nodes: 5, Last: 10},
		{Protocol: "rs-raft", Nodes: 7, Last: 20},
		{Protocol: "slotpaxos", Nodes: 1, Last: 10},
		{Protocol: "slotpaxos", Nodes: 3, Last: 10},
		{Protocol: "slotpaxos", Nodes: 5, Last: 20},
		{Protocol: "multi-paxos", Nodes: 5, Own: setting.MustParse("relays=2"), Last: 20},
		{Protocol: "multi-paxos", Nodes: 7, Own: setting.MustParse("relays=2"), Last: 5},
		{Protocol: "multi-paxos", Nodes: 5, Own: setting.MustParse("quorums=4/2"), Last: 15},
		{Protocol: "multi-paxos", Nodes: 6, Own: setting.MustParse("quorums=grid:2"), Last: 10},
		{Protocol: "multi-paxos", Nodes: 4, Own: setting.MustParse("quorums=grid:2"), Last: 15},
		{Protocol: "iss", Nodes: 5, Own: setting.MustParse("quorums=4/2"), Last: 10},
		{Protocol: "iss", Nodes: 6, Own: setting.MustParse("quorums=grid:2"), Last: 5},
		{Protocol: "iss", Nodes: 5, Own: setting.MustParse("relays=2"), Last: 5},
		{Protocol: "epaxos", Nodes: 1, Last: 10},
		{Protocol: "epaxos", Nodes: 2, Last: 10},
		{Protocol: "epaxos", Nodes: 3, Last: 10},
		{Protocol: "epaxos", Nodes: 4, Last: 10},
		{Protocol: "epaxos", Nodes: 7, Last: 5},
		{Protocol: "lcr", Nodes: 3, Last: 10},
		{Protocol: "lcr", Nodes: 5, Last: 5},
		{Protocol: "niagara", Nodes: 1, Last: 20},
		{Protocol: "niagara", Nodes: 3, Instances: 1, Last: 20},
		{Protocol: "niagara", Nodes: 4, Instances: 5, Last: 20},
		{Protocol: "niagara", Nodes: 5, Last: 30},
		{Protocol: "craft", Order: string(order.KindNiagara), Nodes: 3, Last: 30},
		{Protocol: "multi-raft", Nodes: 1, Last: 10},
		{Protocol: "multi-raft", Nodes: 3, Last: 10},
		{Protocol: "multi-raft", Nodes: 3, Instances: 1, Last: 10},
		{Protocol: "multi-raft", Nodes: 5, Last: 10},
		{Protocol: "raft", Nodes: 3, Instances: 1, Last: 20},
	} {
		if i%every > 0 {
			continue
		}
		c.First, c.Failures = 1, 5
		c.Last = testsize.Pick(testsize.Seeds, 1, max(2, c.Last/10), c.Last)
		sum, err := c.Run(nil)
		require.NoError(t, err)
		for _, f := range sum.Failed {
			t.Errorf("%s\nreplay: %s", f.Error, f.Replay)
		}
		require.EqualValues(t, c.Last, sum.Runs)
		require.Positive(t, sum.Acked)
	}
}

// TestWritesAreAnsweredEarly runs a protocol with early responses.
func TestWritesAreAnsweredEarly(t *testing.T) {
	testsize.Long(t)
	c := Campaign{Protocol: "slotpaxos", Nodes: 3, First: 1, Last: 60}
	sum, err := c.Run(nil)
	require.NoError(t, err)
	require.Empty(t, sum.Failed)
	require.Greater(t, sum.Events.Of(client.WritesAnsweredEarly), 100)
	require.Greater(t, sum.Events.Of(client.ReadsWithToken), 100)
	require.Greater(t, sum.Events.Of(client.WritesAfterTokens), 100)
	require.Greater(t, sum.Events.Of(client.TokensExpired), 10)
	require.Greater(t, sum.Events.Of(node.BarrierReads), 50)
}

// TestBodiesTakeLanes: bodies of blind commands use lanes, as rows.
func TestBodiesTakeLanes(t *testing.T) {
	testsize.Long(t)
	c := Campaign{Protocol: "lcr", Placement: "code", Nodes: 5, First: 1, Last: 20}
	sum, err := c.Run(nil)
	require.NoError(t, err)
	require.Empty(t, sum.Failed)
	require.Greater(t, sum.Events.Of(node.BodiesByLanes), 100)
	require.Greater(t, sum.Events.Of(client.WritesAnsweredEarly), 100)
}

// TestSavedSeeds: campaign seeds runs all of them, a usual run every eighth.
func TestSavedSeeds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/seeds")
	require.NoError(t, err)
	var without []string
	n, at, every := 0, 0, testsize.Pick(testsize.Seeds, 40, 8, 1)
	for line := range strings.Lines(string(text)) {
		var proto string
		var nodes int
		var seed uint64
		if strings.HasPrefix(line, "#") {
			if faults, ok := strings.CutPrefix(line, "# Without:"); ok {
				without = strings.Fields(faults)
			}
			continue
		}
		if at++; at%every > 0 {
			continue
		}
		_, err := fmt.Sscan(line, &proto, &nodes, &seed)
		require.NoError(t, err, line)
		o := fault.Options{Seed: seed, Nodes: nodes, Without: without}
		proto, own, _ := strings.Cut(proto, "+")
		if own != "" {
			o.Own, err = setting.Parse(own)
			require.NoError(t, err, line)
		}
		o.Protocol, proto, _ = strings.Cut(proto, "/")
		instances, placement, _ := strings.Cut(proto, "/")
		if instances != "" {
			o.Instances, err = strconv.Atoi(instances)
			require.NoError(t, err, line)
		}
		place, quorums, some := strings.Cut(placement, "/")
		if o.Placement = place; some {
			o.Own = setting.MustParse("quorums=" + quorums).Over(o.Own)
		}
		if v := Run(o).Violation; v != nil {
			t.Errorf("%v\nonce: %s", v, line)
		}
		n++
	}
	require.Positive(t, n)
}

func TestSameSeedSameRun(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := uint64(1); seed <= testsize.Pick[uint64](testsize.Seeds, 2, 8, 20); seed++ {
		proto := registry.Names()[seed%2]
		var first, second bytes.Buffer
		a := Run(fault.Options{Seed: seed, Nodes: 3, Protocol: proto, Trace: &first})
		b := Run(fault.Options{Seed: seed, Nodes: 3, Protocol: proto, Trace: &second})
		require.Equal(t, a, b)
		require.Equal(t, first.String(), second.String(), "byte by byte")
		require.Equal(t, a.Hash, Run(fault.Options{Seed: seed, Nodes: 3, Protocol: proto}).Hash, "tracing changes nothing")
		seen[a.Hash] = true
	}
	require.Len(t, seen, testsize.Pick(testsize.Seeds, 2, 8, 20), "different seeds are different runs")
}

func TestTraceIsReadable(t *testing.T) {
	var b bytes.Buffer
	res := Run(fault.Options{Seed: 1, Nodes: 3, Mutant: "no-sessions", Trace: &b})
	for _, want := range []string{"seed 1: 3 nodes", "1 → 2 ", " asks ", "durable up to", "is leader of term", "applies", "FAULT"} {
		require.Contains(t, b.String(), want)
	}
	if res.Violation != nil {
		require.Contains(t, b.String(), "VIOLATION seed 1")
	}
}

func TestCampaignRefusesNonsense(t *testing.T) {
	good := Campaign{Protocol: "raft", Nodes: 3, First: 1, Last: 1}
	require.NoError(t, good.Validate())
	for _, c := range []struct {
		change func(*Campaign)
		want   string
	}{
		{func(c *Campaign) { c.Protocol = "paxos" }, `"paxos" cannot be simulated; there is: [raft craft rs-raft niagara multi-raft lcr multi-paxos iss epaxos wpaxos slotpaxos]`},
		{func(c *Campaign) { c.Nodes = 0 }, "want 1 … 9"},
		{func(c *Campaign) { c.Nodes = 10 }, "want 1 … 9"},
		{func(c *Campaign) { c.Placement = "rows" }, `placement "rows" is not for protocol raft; there is: copy, code`},
		{func(c *Campaign) { c.Protocol, c.Placement = "craft", "copy" }, "there is: code"},
		{func(c *Campaign) { c.Protocol = "rs-raft" }, "3 nodes: rs-raft has quorums for 5 and 7"},
		{func(c *Campaign) { c.Order = "iss" }, "there is: single, niagara"},
		{func(c *Campaign) { c.Protocol, c.Order = "niagara", string(order.KindSingle) }, "there is: niagara"},
		{func(c *Campaign) { c.Protocol, c.Instances = "niagara", 17 }, "17 instances: want 1 … 16"},
		{func(c *Campaign) { c.Instances = 2 }, "order single has one"},
		{func(c *Campaign) { c.First = 2 }, "the first is after the last"},
		{func(c *Campaign) { c.Mutant = "x" }, "forget-vote"},
		{func(c *Campaign) { c.Without = []string{"rain"} }, "partition"},
	} {
		bad := good
		c.change(&bad)
		_, err := bad.Run(nil)
		var wrong *fault.OptionError
		require.ErrorAs(t, err, &wrong)
		require.ErrorContains(t, err, c.want)
	}
}

func TestCampaignPrintsHowToReplay(t *testing.T) {
	testsize.Long(t)
	c := Campaign{Protocol: "raft", Nodes: 3, First: 1, Last: 50, Mutant: "truncate-always", Without: []string{"pause"}}
	sum, err := c.Run(nil)
	require.NoError(t, err)
	require.NotEmpty(t, sum.Failed)
	f := sum.Failed[0]
	require.Equal(t, fmt.Sprintf("braid sim --protocol raft --nodes 3 --seeds %d-%d --trace --mutant truncate-always --without pause", f.Seed, f.Seed), f.Replay)
	again := Run(c.Options(f.Seed))
	require.NotNil(t, again.Violation)
	require.Equal(t, f.Error, again.Violation.Error())

	less, res := Shrink(c.Options(f.Seed))
	require.NotNil(t, res.Violation)
	require.True(t, slices.Contains(less.Without, "pause"))
	require.Equal(t, res, Run(less), "the shrunk run is a run")
}

func TestCampaignStops(t *testing.T) {
	stop := make(chan struct{})
	close(stop)
	c := Campaign{Protocol: "raft", Nodes: 3, First: 1, Last: 1 << 40}
	sum, err := c.Run(stop)
	require.NoError(t, err)
	require.Zero(t, sum.Runs)
}
