package scale

import (
	"cmp"
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// Config is one simulated run.
type Config struct {
	// Protocol is the protocol's name in the registry. It runs in its own order. "": raft.
	Protocol  string
	Nodes     int // members
	Instances int // or groups of keys; 0: one. Only protocols with several instances have more
	// Spread distributes the leadership of merged instances over the members. Otherwise one member leads all.
	Spread bool
	// Everywhere distributes commands over all members. Otherwise the initial leaders get them.
	Everywhere bool
	// Own are the protocol's own settings.
	Own setting.Values

	// Cores is the number of cores that each member's machine has for braid. Every member that takes commands has one
	// more core for the load, as in the paper.
	Cores int
	// Shared puts all members and the load on one machine with this many cores and one disk, to compare the model with
	// measurements on this machine.
	Shared bool

	// Cards is the number of network cards of a member; 0: one. Instance i uses card i modulo Cards. Bandwidth is that
	// of each card, in bytes a second in each direction; 0: no limit.
	Cards     int
	Bandwidth float64
	// Latency is the delay of a message, in addition to the time for its bytes; 0: that of loopback.
	Latency time.Duration

	Payload int // bytes of a command
	// Rate is commands a second, of all members together. Commands that are due while Inflight wait for their results
	// are dropped. 0: Inflight commands wait at any time.
	Rate     float64
	Inflight int
	// Conflicts is the share of commands on one key that all members use. The others touch Keys keys, in groups that
	// only one member uses; 0: each has a key of its own.
	Conflicts float64
	Keys      int
	// MaxBatchCommands and MaxBatchBytes bound a batch, as in braid.Options; 0: no limit on the
	// number, and intake.DefaultBatchBytes. NoBatching is an entry for each command, and a message for each entry.
	MaxBatchCommands, MaxBatchBytes int
	NoBatching                      bool
	// Depth is the maximal number of concurrent batches of a member in an instance; 0: adaptive.
	Depth int

	// Warmup is simulated before Duration, which counts; 0: a quarter of Duration. If Commands is not 0, each of them
	// ends after that many completed commands, if that is sooner.
	Warmup, Duration time.Duration
	Commands         int64
	Seed             uint64
	Costs            Costs
}

func (c Config) withDefaults() (Config, error) {
	c.Instances, c.Cards, c.Protocol = max(1, c.Instances), max(1, c.Cards), cmp.Or(c.Protocol, "raft")
	if c.NoBatching {
		c.MaxBatchCommands = 1
	}
	if c.MaxBatchBytes == 0 {
		c.MaxBatchBytes = intake.DefaultBatchBytes
	}
	if c.Warmup == 0 {
		c.Warmup = c.Duration / 4
	}
	if c.Inflight == 0 {
		c.Inflight = 100_000
	}
	switch {
	case c.Nodes < 1 || c.Nodes > maxNodes:
		return c, &ConfigError{fmt.Sprintf("%d members", c.Nodes)}
	case c.Instances > 64 || c.Cores < 1 || c.Duration <= 0 || c.Warmup < 0 || c.Latency < 0:
		return c, &ConfigError{fmt.Sprintf("%d instances, %d cores, %v after %v, latency %v", c.Instances, c.Cores, c.Duration, c.Warmup, c.Latency)}
	case c.Payload < 1 || c.Payload > c.MaxBatchBytes || c.Inflight < 1 || c.Rate < 0 || c.Bandwidth < 0, c.MaxBatchCommands < 0 || c.Depth < 0 || c.Conflicts < 0 || c.Keys < 0 || c.Conflicts > 1:
		return c, &ConfigError{fmt.Sprintf("%d bytes, %d under way, %g a second, %g bytes a second", c.Payload, c.Inflight, c.Rate, c.Bandwidth)}
	}
	if err := c.checkProtocol(); err != nil {
		return c, err
	}
	return c, c.Costs.validate(&c)
}

// maxNodes is the maximal number of members.
const maxNodes = 128

// checkProtocol refuses options that the protocol does not have.
func (c *Config) checkProtocol() error {
	p := registry.Find(c.Protocol)
	if p == nil {
		return &ConfigError{"unknown protocol " + c.Protocol}
	}
	if p.Placements[0] != protocol.PlacementCopy {
		return &ConfigError{c.Protocol + " keeps bodies in fragments, and the model has no bodies"}
	}
	if kind, err := p.OrderOf("", c.Instances); err == nil && kind == order.KindSingle && c.Instances > 1 {
		return &ConfigError{fmt.Sprintf("%d instances: %s has one", c.Instances, c.Protocol)}
	}
	var err error
	if c.Own, err = p.Complete(c.Own); err != nil {
		return &ConfigError{err.Error()}
	}
	if _, err := registry.QuorumsOf(c.Own, c.Nodes, nil); err != nil {
		return &ConfigError{err.Error()}
	}
	return nil
}

// ConfigError reports an invalid Config.
type ConfigError struct{ Detail string }

func (e *ConfigError) Error() string { return "scale: " + e.Detail }

// Result is the outcome of a run.
type Result struct {
	// Throughput is commands a second that were applied on the member that proposed them, in the measured time. Dropped
	// is the number of commands that were due and not proposed.
	Throughput float64 `json:"throughput_per_s"`
	Commands   int64   `json:"commands"`
	Dropped    int64   `json:"dropped"`
	// The latencies are from the time at which a command was due until its result.
	P50 time.Duration `json:"p50_ns"`
	P90 time.Duration `json:"p90_ns"`
	P99 time.Duration `json:"p99_ns"`

	// Of all members, for each second: proposed batches and skips, syncs, messages and their bytes.
	Batches  float64 `json:"batches_per_s"`
	Skips    float64 `json:"skips_per_s"`
	Fsyncs   float64 `json:"fsyncs_per_s"`
	Messages float64 `json:"messages_per_s"`
	Bytes    float64 `json:"bytes_per_s"`
	// Egress is the bytes a second that the first instance's leader sends.
	Egress float64 `json:"egress_bytes_per_s"`
	// Cores is the number of cores that each machine uses on average: first the members' machines, then those of the
	// load.
	Cores []float64 `json:"cores_used"`
	// Threads is the share of a core that each thread of the first instance's leader uses.
	Threads []Use `json:"threads"`
	// CPU is the CPU time of all machines together for each command.
	CPU time.Duration `json:"cpu_ns_per_op"`
}

// Use is a thread and the share of a core that it uses.
type Use struct {
	Thread string  `json:"thread"`
	Cores  float64 `json:"cores"`
}
