package scale

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// everywhere has load at all members of a protocol, with a message for each command.
func everywhere(name string, members int) Config {
	cfg := Config{
		Protocol: name, Nodes: members, Everywhere: true, Cores: 8, Payload: 16, Inflight: 8 * members, NoBatching: true, Depth: 64,
		Warmup: 5 * time.Millisecond, Duration: 10 * time.Millisecond, Seed: 1, Costs: typicalCosts(),
	}
	if registry.Find(name).Several() {
		cfg.Instances = 4
	}
	return cfg
}

// Every protocol with whole copies runs, with all its features. All proposed commands are applied, on all members.
func TestEveryProtocolRuns(t *testing.T) {
	for _, p := range registry.All() {
		if p.Placements[0] != protocol.PlacementCopy {
			continue
		}
		variants := []Config{everywhere(p.Name, 3)}
		if p.Core.Settings.Find("relays") != nil {
			v := everywhere(p.Name, 5)
			v.Own = setting.MustParse("relays=2")
			variants = append(variants, v)
		}
		if p.Core.Settings.Find("quorums") != nil {
			v := everywhere(p.Name, 4)
			v.Own = setting.MustParse("quorums=grid:2")
			variants = append(variants, v)
		}
		if p.Core.Judged.ByKey || p.Keyed("") {
			v := everywhere(p.Name, 3)
			v.Conflicts = 0.5
			variants = append(variants, v)
		}
		for i := range variants {
			r := drained(t, variants[i])
			require.Positive(t, r.Commands, p.Name)
			require.Equal(t, r, run(t, variants[i]), "%s: the seed decides all", p.Name)
		}
	}
}

// drained runs until the load ends: then every member has applied every command.
func drained(t *testing.T, cfg Config) *Result {
	w, err := newWorld(cfg, nil)
	require.NoError(t, err)
	w.simulate()
	r := w.result()
	for _, m := range w.members {
		m.load.inflight = 0
	}
	w.run(w.now + 4*heartbeat)
	require.NoError(t, w.check())
	for _, m := range w.members {
		require.Zero(t, m.load.under, "%s: commands without an answer", cfg.Protocol)
		require.Equal(t, w.members[0].apply.commands, m.apply.commands, "%s: members have not applied the same", cfg.Protocol)
	}
	require.GreaterOrEqual(t, w.members[0].apply.commands, r.Commands)
	return r
}

// atRate returns the cost of each command at a low rate, beyond that of an idle cluster.
func atRate(t *testing.T, cfg Config, rate float64) (messages, fsyncs float64) {
	cfg.Rate, cfg.Warmup, cfg.Duration = rate, 100*time.Millisecond, 100*time.Millisecond
	busy := run(t, cfg)
	cfg.Rate = 1e-3
	idle := run(t, cfg)
	return (busy.Messages - idle.Messages) / busy.Throughput, (busy.Fsyncs - idle.Fsyncs) / busy.Throughput
}

// The cost of a single command follows from the protocol.
func TestMessagesOfACommand(t *testing.T) {
	for _, n := range []int{3, 5} {
		others := float64(n - 1)
		for _, c := range []struct {
			protocol   string
			everywhere bool
			messages   float64
		}{
			{"raft", false, 3 * others},                  // append, response, and the commit index
			{"raft", true, 3*others + others/(others+1)}, // and most commands go to the leader first
			{"epaxos", true, 3 * others},                 // pre-accept, response, commit
			{"multi-raft", true, 3 * others},             // a member's commands are of groups that it leads
			{"wpaxos", true, 3 * others},
		} {
			cfg := everywhere(c.protocol, n)
			cfg.Everywhere = c.everywhere
			if cfg.Instances > 1 {
				cfg.Instances = 2 * n
			}
			messages, fsyncs := atRate(t, cfg, 1000)
			require.InEpsilon(t, c.messages, messages, 0.05, "%s, %d members", c.protocol, n)
			require.Greater(t, fsyncs, 1., c.protocol)
			require.Less(t, fsyncs, 2*float64(n)+1, c.protocol)
		}
	}
}

// Under load one response acknowledges many messages, and the next message has the decision. With relays the leader
// sends fewer messages.
func TestLoadSharesMessages(t *testing.T) {
	for _, name := range []string{"raft", "multi-paxos", "iss"} {
		cfg := everywhere(name, 5)
		cfg.Inflight = 200 * cfg.Nodes
		r := run(t, cfg)
		require.Less(t, r.Messages/r.Throughput, 10., name)
	}
	cfg := everywhere("multi-paxos", 9)
	cfg.Everywhere, cfg.Inflight = false, 1000
	direct := run(t, cfg)
	cfg.Own = setting.MustParse("relays=2")
	relayed := run(t, cfg)
	require.Less(t, relayed.Egress/relayed.Throughput, 0.6*direct.Egress/direct.Throughput)
}

// Commands that conflict depend on each other.
func TestConflictsCost(t *testing.T) {
	cfg := everywhere("epaxos", 5)
	apart := run(t, cfg)
	cfg.Conflicts = 1
	same := run(t, cfg)
	require.Greater(t, same.Messages/same.Throughput, 1.1*apart.Messages/apart.Throughput, "an accept and its answers")
	require.Less(t, same.Throughput, apart.Throughput)
}

func TestCostsBetweenMeasurements(t *testing.T) {
	cost := func(v float64) Steps { return Steps{Propose: Cost{Once: v}, Messages: []Cost{{Each: 2 * v}}} }
	c := Costs{Steps: map[string][]Steps{"raft": {cost(100), cost(200), cost(1000)}}}
	for i, n := range []int{3, 5, 9} {
		c.Steps["raft"][i].Members = n
	}
	for members, want := range map[int]float64{2: 100, 3: 100, 4: 150, 5: 200, 7: 600, 9: 1000, 10: 1200} {
		s, ok := c.stepsOf(&Config{Protocol: "raft", Nodes: members})
		require.True(t, ok)
		require.InDelta(t, want, s.Propose.Once, 1e-6, "%d members", members)
		require.InDelta(t, 2*want, s.message(protocol.FirstOwnType).Each, 1e-6)
	}
	require.Equal(t, cost(100).Propose, c.Steps["raft"][0].Propose, "nothing was changed")
	_, ok := c.stepsOf(&Config{Protocol: "raft", NoBatching: true})
	require.False(t, ok)
	require.Zero(t, c.Steps["raft"][0].message(protocol.MsgTail))
}

// Calibration selects the fewest members, the most, and some between.
func TestSizesThatAreMeasured(t *testing.T) {
	var runs []Config
	for _, n := range []int{3, 128, 6, 6, 16, 32, 64} {
		runs = append(runs, Config{Protocol: "epaxos", Nodes: n}, Config{Protocol: "iss", Nodes: 3})
	}
	var members []int
	for _, i := range sizes(runs, "epaxos") {
		members = append(members, runs[i].Nodes)
	}
	require.Equal(t, []int{3, 16, 128}, members)
	require.Len(t, sizes(runs, "iss"), 1)
}
