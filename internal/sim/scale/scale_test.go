package scale

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// typicalCosts are the costs of a machine with two cores. Tests use no other costs.
func typicalCosts() Costs {
	c := Costs{
		Factor: 2, Submit: Cost{Each: 35}, Keyed: Cost{Each: 60}, Turn: Cost{Once: 400}, Digest: Cost{Byte: 0.045}, Unpack: Cost{Byte: 0.3},
		Write: Cost{Once: 1500, Byte: 0.12}, Read: Cost{Once: 1400, Byte: 0.03},
		Record: Cost{Each: 70, Byte: 0.3}, Sync: Cost{Once: 50_000}, Command: Cost{Each: 17}, Settle: Cost{Once: 100, Each: 2}, Wake: 2000, Hop: 2000,
		Disk: []float64{90_000, 120_000, 140_000, 160_000, 250_000}, DiskShared: []float64{120_000, 200_000, 220_000, 240_000, 500_000},
		DiskByte: 0.5, Steps: map[string][]Steps{},
	}
	for _, p := range registry.All() {
		s := Steps{
			Members: 3, Propose: Cost{Once: 900}, Durable: Cost{Once: 170, Each: 300}, Tick: Cost{Once: 170}, Wake: Cost{Once: 170},
			Frame: Cost{Once: 120, Each: 20}, Decode: Cost{Once: 120, Each: 90}, Apply: Cost{Once: 130, Each: 160},
		}
		for _, t := range p.Core.Codec.Types {
			m := Cost{Once: 200, Each: 500}
			if t.Brings == protocol.BringsLog {
				m = Cost{Once: 300, Each: 250}
			}
			s.Messages = append(s.Messages, m)
		}
		for _, each := range []bool{false, true} {
			c.Steps[(&Config{Protocol: p.Name, NoBatching: each}).code()] = []Steps{s}
			if p.Core.Settings.Find("relays") != nil {
				c.Steps[(&Config{Protocol: p.Name, Own: setting.MustParse("relays=1"), NoBatching: each}).code()] = []Steps{s}
			}
		}
	}
	return c
}

// entries is the load of the paper: every command is an entry.
func entries(instances, cores int) Config {
	return Config{
		Protocol: protocolOf(instances), Nodes: 3, Instances: instances, Cores: cores, Payload: 16, Inflight: 20_000, MaxBatchCommands: 1,
		Warmup: 5 * time.Millisecond, Duration: 10 * time.Millisecond, Seed: 1, Costs: typicalCosts(),
	}
}

// protocolOf returns raft for one instance, otherwise niagara.
func protocolOf(instances int) string {
	if instances == 1 {
		return "raft"
	}
	return "niagara"
}

func run(t *testing.T, cfg Config) *Result {
	r, err := Run(cfg)
	require.NoError(t, err)
	return r
}

func TestARunIsAFunctionOfItsSettings(t *testing.T) {
	cfg := entries(4, 4)
	cfg.Spread = true
	first := run(t, cfg)
	require.Positive(t, first.Commands)
	require.Equal(t, first, run(t, cfg))
	cfg.Seed++
	require.NotEqual(t, first, run(t, cfg))
}

func TestWhatIsOfferedIsProvided(t *testing.T) {
	for _, instances := range []int{1, 4} {
		for _, spread := range []bool{false, true} {
			cfg := Config{
				Protocol: protocolOf(instances), Nodes: 3, Instances: instances, Spread: spread, Cores: 4, Payload: 16, Rate: 100_000, Inflight: 50_000,
				Duration: 100 * time.Millisecond, Costs: typicalCosts(),
			}
			r := run(t, cfg)
			require.InEpsilon(t, 100_000, r.Throughput, 0.05)
			require.Zero(t, r.Dropped)
			// Two syncs one after the other, or at most three, because another sync may be running.
			require.Greater(t, r.P50, 200*time.Microsecond)
			require.Less(t, r.P50, 1500*time.Microsecond)
			require.LessOrEqual(t, r.P50, r.P90)
			require.LessOrEqual(t, r.P90, r.P99)
			if instances == 1 {
				require.Zero(t, r.Skips)
			}
		}
	}
}

// One client uses one instance. The other instances skip for it, but rarely.
func TestInstancesThatAreNotUsedSkip(t *testing.T) {
	cfg := Config{
		Protocol: "niagara", Nodes: 3, Instances: 4, Cores: 4, Payload: 16, Inflight: 1, Warmup: 20 * time.Millisecond, Duration: 300 * time.Millisecond,
		Costs: typicalCosts(),
	}
	woven := run(t, cfg)
	require.Positive(t, woven.Skips)
	require.Less(t, woven.Skips, 3*woven.Batches/30+4/cfg.Duration.Seconds())
	cfg.Instances, cfg.Protocol = 1, "raft"
	alone := run(t, cfg)
	require.InEpsilon(t, float64(alone.P50), float64(woven.P50), 0.1, "nobody waits for a skip")
}

// TestInstancesThatAreNotNeededCostNothing: as long as one instance carries the load, several do what one does.
func TestInstancesThatAreNotNeededCostNothing(t *testing.T) {
	for _, load := range []Config{{Inflight: 100}, {Inflight: 1000}, {Rate: 10_000, Inflight: 50_000}} {
		load.Protocol, load.Nodes, load.Instances, load.Cores, load.Payload = "raft", 3, 1, 2, 16
		load.Warmup, load.Duration, load.Costs = 20*time.Millisecond, 100*time.Millisecond, typicalCosts()
		raft := run(t, load)
		load.Protocol, load.Instances = "niagara", 4
		woven := run(t, load)
		require.Greater(t, woven.Throughput, 0.97*raft.Throughput)
		for _, c := range []struct {
			what      string
			one, four float64
		}{
			{"batches", raft.Batches, woven.Batches}, {"messages", raft.Messages, woven.Messages},
			{"syncs", raft.Fsyncs, woven.Fsyncs}, {"bytes", raft.Bytes, woven.Bytes},
			{"CPU", float64(raft.CPU), float64(woven.CPU)},
		} {
			require.Less(t, c.four, 1.03*c.one, c.what)
		}
		require.Less(t, woven.Skips, 0.02*woven.Batches)
	}
}

// Commands for which the CPU has no time are dropped. No machine uses more cores than it has.
func TestWhatIsTooMuchIsDropped(t *testing.T) {
	cfg := entries(1, 1)
	cfg.Rate = 5_000_000
	r := run(t, cfg)
	require.Less(t, r.Throughput, 1_000_000.)
	require.Positive(t, r.Dropped)
	require.InEpsilon(t, cfg.Rate*cfg.Duration.Seconds(), float64(r.Commands+r.Dropped), 0.2)
	for _, used := range r.Cores {
		require.LessOrEqual(t, used, 1.1, "a turn may reach into the time that counts")
	}
	sum := 0.
	for _, use := range r.Threads {
		sum += use.Cores
	}
	require.InDelta(t, r.Cores[0]+r.Cores[3], sum, 0.05, "the load has a core of its own")
}

// The paper's figure 3: raft gains nothing from more cores than its threads can use. Several
// instances use more.
func TestInstancesUseCores(t *testing.T) {
	raft, more := run(t, entries(1, 4)), run(t, entries(1, 8))
	require.InEpsilon(t, raft.Throughput, more.Throughput, 0.1)
	last := raft.Throughput
	for _, n := range []int{2, 4, 8} {
		woven := run(t, entries(n, 8))
		require.Greater(t, woven.Throughput, 1.2*last, "%d instances", n)
		last = woven.Throughput
	}
	require.Greater(t, last, 3*raft.Throughput)
}

// The paper's figure 5b: values of 2 KiB over cards of 250 Mbit/s.
func TestInstancesUseCards(t *testing.T) {
	cfg := Config{
		Nodes: 3, Instances: 1, Cores: 4, Payload: 2048, Inflight: 2000,
		Cards: 4, Bandwidth: 250e6 / 8, Warmup: 500 * time.Millisecond, Duration: time.Second, Costs: typicalCosts(),
	}
	raft := run(t, cfg)
	require.InEpsilon(t, cfg.Bandwidth, raft.Egress, 0.05, "one card, and it is full")
	cfg.Instances, cfg.Protocol = 4, "niagara"
	woven := run(t, cfg)
	require.InEpsilon(t, 4*cfg.Bandwidth, woven.Egress, 0.1)
	require.Greater(t, woven.Throughput, 3.5*raft.Throughput)
}

// A run may end after enough commands. Its result is for the time that it took.
func TestEnoughCommands(t *testing.T) {
	cfg := entries(2, 2)
	long := run(t, cfg)
	cfg.Warmup, cfg.Duration, cfg.Commands = time.Second, time.Second, long.Commands/2
	short := run(t, cfg)
	require.InEpsilon(t, long.Throughput, short.Throughput, 0.2)
	require.GreaterOrEqual(t, short.Commands, cfg.Commands)
	require.Less(t, short.Commands, long.Commands)
	require.InEpsilon(t, long.Cores[0], short.Cores[0], 0.2)
}

// If all members share one machine, each has less of it.
func TestOneMachineForAll(t *testing.T) {
	cfg := entries(1, 2)
	apart := run(t, cfg)
	cfg.Shared = true
	shared := run(t, cfg)
	require.Less(t, shared.Throughput, apart.Throughput)
	require.Len(t, shared.Cores, 1)
	require.LessOrEqual(t, shared.Cores[0], 2.05)
}

func TestTheFactorIsFound(t *testing.T) {
	testsize.Long(t)
	c := typicalCosts()
	var measured []Measurement
	for _, instances := range []int{1, 2} {
		cfg := entries(instances, 2)
		cfg.Shared, cfg.MaxBatchCommands, cfg.Duration = true, 0, 50*time.Millisecond
		r := run(t, cfg)
		measured = append(measured, Measurement{Name: fmt.Sprint(instances), Config: cfg, CPU: r.CPU, P50: r.P50})
	}
	c.Factor = 1
	before, err := Compare(c, measured)
	require.NoError(t, err)
	require.Less(t, before[0].CPUOff, 0.9, "the model does too little")
	require.Zero(t, before[0].ThroughputOff, "not measured")
	c, err = Fit(c, measured)
	require.NoError(t, err)
	require.InEpsilon(t, 2, c.Factor, 0.1)
	after, err := Compare(c, measured)
	require.NoError(t, err)
	for _, a := range after {
		require.InEpsilon(t, 1, a.CPUOff, 0.1)
		require.InEpsilon(t, 1, a.P50Off, 0.1)
	}
}

// The model runs with measured costs, whatever else the machine does. They survive encoding and decoding.
func TestCalibrate(t *testing.T) {
	testsize.Long(t)
	cfg := entries(2, 2)
	c, err := Calibrate(t.Context(), t.TempDir(), []Config{cfg})
	require.NoError(t, err)
	require.NoError(t, c.validate(&cfg))
	for _, v := range []float64{c.Submit.Each, c.Keyed.Once, c.Turn.Once, c.Write.Once, c.Read.Once, c.Sync.Once, c.Disk[10], c.DiskShared[10]} {
		require.Positive(t, v)
	}
	steps, ok := c.stepsOf(&cfg)
	require.True(t, ok)
	for _, v := range []Cost{
		steps.Propose, steps.message(message.Append), steps.message(message.AppendResp), steps.Durable, steps.Tick, steps.Frame, steps.Decode, steps.Apply,
	} {
		require.Positive(t, v.Once+v.Each)
	}
	stored, err := json.Marshal(c)
	require.NoError(t, err)
	var again Costs
	require.NoError(t, json.Unmarshal(stored, &again))
	require.Equal(t, c, again)
	cfg.Costs = again
	require.Positive(t, run(t, cfg).Throughput)
}

func TestWhatCannotBeIsRefused(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.Nodes = 0 },
		func(c *Config) { c.Nodes = 200 },
		func(c *Config) { c.Protocol = "raft" },
		func(c *Config) { c.Protocol = "craft" },
		func(c *Config) { c.Protocol = "paxi" },
		func(c *Config) { c.Own = setting.MustParse("relays=2") },
		func(c *Config) { c.Own = setting.MustParse("quorums=grid:2") },
		func(c *Config) { c.Conflicts = 2 },
		func(c *Config) { c.Cores = 0 },
		func(c *Config) { c.Duration = 0 },
		func(c *Config) { c.Payload = 0 },
		func(c *Config) { c.Rate = -1 },
		func(c *Config) { c.Costs = Costs{} },
		func(c *Config) { c.Costs.Steps["niagara"][0].Durable.Each = -1 },
	} {
		cfg := entries(2, 2)
		change(&cfg)
		_, err := Run(cfg)
		var refused *ConfigError
		require.ErrorAs(t, err, &refused)
	}
}

func TestFit(t *testing.T) {
	var samples []sample
	for i := range 1000 {
		samples = append(samples, sample{i % 2, 300 + 50*float64(i%2)}, sample{40 + i%20, 300 + 50*float64(40+i%20)})
	}
	samples = append(samples, sample{1, 1e9}) // an interruption
	c := fit(samples)
	require.InEpsilon(t, 300, c.Once, 0.01)
	require.InEpsilon(t, 50, c.Each, 0.01)
	require.Equal(t, Cost{Once: 7}, fit([]sample{{0, 7}, {0, 7}}), "all alike")
	require.Equal(t, Cost{Once: 8}, fit([]sample{{1, 9}, {2, 7}}), "no part saves anything")
	require.Zero(t, fit(nil))
}

func TestAFileInMemory(t *testing.T) {
	f := memoryFile{}
	text := bytes.Repeat([]byte("abcdefg"), 10_000)
	for _, at := range []int64{10 * pageBytes, pageBytes - 3} {
		n, err := f.WriteAt(text[:pageBytes+100], at)
		require.NoError(t, err)
		require.Equal(t, pageBytes+100, n)
	}
	got := make([]byte, 12*pageBytes)
	n, err := f.ReadAt(got, 0)
	require.Equal(t, io.EOF, err)
	require.Equal(t, 11*pageBytes+100, n)
	want := make([]byte, n)
	copy(want[pageBytes-3:], text[:pageBytes+100])
	copy(want[10*pageBytes:], text[:pageBytes+100])
	require.Equal(t, want, got[:n])
	n, err = f.ReadAt(got[:9], 10*pageBytes)
	require.NoError(t, err)
	require.Equal(t, text[:n], got[:9])
	_, err = f.ReadAt(got, 100*pageBytes)
	require.Equal(t, io.EOF, err)
	require.Nil(t, f.pages[5], "nothing was written there")
}

// Parts of a group's commands are due at the same times as in the whole.
func TestAGroupInParts(t *testing.T) {
	g := group{11, 100, 1100}
	require.Equal(t, group{4, 100, 400}, g.part(0, 4))
	require.Equal(t, group{7, 500, 1100}, g.part(4, 11))
	require.Equal(t, group{1, 7, 7}, group{1, 7, 7}.part(0, 1))
}

func TestLatenciesAreCounted(t *testing.T) {
	var l tally
	l.commands = 1000
	l.note(group{900, 0, 0}, time.Millisecond)
	l.note(group{100, 0, 8 * time.Millisecond}, 10*time.Millisecond) // 2 … 10 ms
	require.InEpsilon(t, time.Millisecond, l.quantile(0.5), 0.05)
	require.InEpsilon(t, 9.5*float64(time.Millisecond), float64(l.quantile(0.99)), 0.1)
	require.Zero(t, new(tally).quantile(0.5))
}
