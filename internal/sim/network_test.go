package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
)

const regions = "regions=us-east-1+eu-west-1+ap-northeast-1"

// far sets the latencies of a specification, without jitter.
func far(net string) func(*fault.Settings) {
	return func(s *fault.Settings) {
		spec, err := device.ParseNet(net)
		if err != nil {
			panic(err)
		}
		s.Net, s.Farthest = spec, spec.Farthest()
		s.Stretch()
	}
}

// TestWritesTakeWhatLiesBetween: the latency of a write is that of the path to the leader, from there to the nearest
// other member, and back.
func TestWritesTakeWhatLiesBetween(t *testing.T) {
	const ms = time.Millisecond
	s := newStage(t, 3, "", far(regions))
	s.elect(2)
	s.wait(2)
	for id, want := range map[protocol.MemberID]time.Duration{ // any order
		1: 140 * ms, // to the leader, from it to member 1 and back, and back to the client
		2: 70 * ms,
		3: 271 * ms,
	} {
		took := s.took(s.put(id))
		require.GreaterOrEqual(t, took, want, "member %s", id)
		require.Less(t, took, want+60*ms, "member %s", id) // disks, ticks and heartbeats
	}
	s.passes()
}

func TestTripsOfPairs(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		net      string
		from, to protocol.MemberID
		lo, hi   time.Duration
	}{
		{"", 1, 2, ms, ms},
		{"latency=20ms", 1, 2, 20 * ms, 20 * ms},
		{"latency=20ms,jitter=5ms", 1, 2, 15 * ms, 25 * ms},
		{"latency=20ms;1>2:latency=40ms", 1, 2, 40 * ms, 40 * ms},
		{"latency=20ms;1>2:latency=40ms", 2, 1, 20 * ms, 20 * ms},
		{regions, 1, 2, 35 * ms, 35 * ms},
		{regions, 4, 1, ms / 4, ms / 4}, // joined later
	} {
		s := newStage(t, 3, "", far(c.net))
		for range 100 {
			d := s.Trip(c.from, c.to)
			require.True(t, c.lo <= d && d <= c.hi && d <= s.Set.DelayMax, "%q: from %s to %s %s", c.net, c.from, c.to, d)
		}
		lo, hi := s.Net.Path(&s.Set.Distances, c.from, c.to)
		back, most := s.Net.Path(&s.Set.Distances, c.to, c.from)
		d := s.RoundTrip(c.from, c.to)
		require.True(t, lo+back <= d && d <= hi+most)
	}
}

// TestSeedsAcrossRegions: with a specification the same seeds give other runs, reproducibly, and without violations.
// Timeouts are adapted to the latencies.
func TestSeedsAcrossRegions(t *testing.T) {
	t.Parallel()
	for _, c := range []Campaign{
		{Protocol: fault.DefaultProtocol, Nodes: 3, Net: regions, Last: 30},
		{Protocol: fault.DefaultProtocol, Nodes: 5, Net: "latency=1ms;1~*:latency=80ms,jitter=20ms;2>3:latency=300ms", Last: 15},
		{Protocol: "craft", Nodes: 5, Net: "regions=us-east-1+us-west-2+eu-west-1+ap-northeast-1+sa-east-1", Last: 15},
		{Protocol: "niagara", Nodes: 3, Net: regions, Last: 15},
	} {
		c.First, c.Failures = 1, 5
		c.Last = testsize.Pick(testsize.Seeds, 1, 4, c.Last)
		sum, err := c.Run(nil)
		require.NoError(t, err)
		for _, f := range sum.Failed {
			t.Errorf("%s\nreplay: %s", f.Error, f.Replay)
		}
		require.Positive(t, sum.Acked)
		require.Equal(t, c.Net, sum.Net)
		o := c.Options(3)
		first, second := Run(o), Run(o)
		require.Equal(t, first.Hash, second.Hash)
		o.Net = ""
		require.NotEqual(t, first.Hash, Run(o).Hash)
		w := open(c.Options(3))
		require.GreaterOrEqual(t, w.Set.Election, 18*w.Set.Farthest)
		require.LessOrEqual(t, w.Set.DelayMax, w.Set.Election/8)
	}
}

func TestNetOfACampaign(t *testing.T) {
	c := Campaign{Protocol: fault.DefaultProtocol, Nodes: 3, Last: 1, Net: regions}
	require.NoError(t, c.Validate())
	require.Contains(t, c.Replay(1), " --net '"+regions+"'")
	for net, want := range map[string]string{
		"latency=5":               "missing unit",
		"regions=nowhere":         `region "nowhere" is not known`,
		"latency=1ms,loss=1%":     "latency, jitter and regions alone",
		"bandwidth=1mbit":         "latency, jitter and regions alone",
		"nics=2":                  "latency, jitter and regions alone",
		"3:bandwidth=1mbit":       "latency, jitter and regions alone",
		regions + ";1~2:loss=1%":  "latency, jitter and regions alone",
		"latency=1ms;latency=2ms": "given twice",
	} {
		c.Net = net
		var wrong *fault.OptionError
		require.ErrorAs(t, c.Validate(), &wrong, net)
		require.ErrorContains(t, wrong, want, net)
	}
}
