package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol/setting"
)

// Cluster is a contestant of the log benchmark: a replicated log with all its members in
// the process of the load, each with a directory of its own and loopback TCP between them. Its
// methods are safe for concurrent use.
type Cluster interface {
	// Propose replicates a command through the leader and returns when the leader has
	// applied it. The command is not kept.
	Propose(ctx context.Context, command []byte) error
	// ProposeAsync is Propose without waiting: done is called once, possibly before
	// ProposeAsync returns, and must not block. If ProposeAsync returns an error, done is
	// never called and the command is certainly not in the log.
	ProposeAsync(command []byte, done func(result any, err error)) error
	// Leader returns the number (from 0) of the member that leads, -1 while none does.
	Leader() int
	// Stats returns the members' totals since they started.
	Stats() Stats
	// Close stops all members.
	Close() error
}

// waiter waits for the answer to one command at a time.
type waiter struct {
	answered chan error
	answer   func(any, error)
}

var waiters = sync.Pool{New: func() any {
	w := &waiter{answered: make(chan error, 1)}
	w.answer = func(_ any, err error) { w.answered <- err }
	return w
}}

// ProposeAndWait proposes a command with a cluster's ProposeAsync and waits for the answer. If ctx ends earlier, it
// returns the error of ctx, and the command may take effect later. It is safe for concurrent use.
func ProposeAndWait(ctx context.Context, propose func([]byte, func(any, error)) error, command []byte) error {
	w := waiters.Get().(*waiter)
	err := propose(command, w.answer)
	if err == nil {
		select {
		case err = <-w.answered:
		case <-ctx.Done():
			return ctx.Err() // the waiter is not used again: it may get the answer later
		}
	}
	waiters.Put(w)
	return err
}

// Stats are running totals of a cluster.
type Stats struct {
	// EgressBytes is the number of bytes that each member wrote to its links.
	EgressBytes []int64
	// Fsyncs counts the syncs of all members' logs.
	Fsyncs int64
}

// ClusterConfig is the configuration that every contestant starts with.
type ClusterConfig struct {
	// Dir is an empty directory; member i keeps its files in a subdirectory.
	Dir string
	// Machines are the members' state machines: one for each, so also their number.
	Machines []*Machine
	// PendingBytes bounds the bytes of commands that the load has in flight.
	PendingBytes int
	// Concurrency bounds the number of commands that the load has in flight.
	Concurrency int
	// ClosedLoop indicates that every sender waits for its command before the next: it is a client,
	// and keeps to a member.
	ClosedLoop bool
	// Idle indicates that there are no commands.
	Idle bool
	// Settings are the optimisations, if the contestant has them.
	Settings Settings
}

// Settings are Raft's four optimisations (docs/internals/raft.md, "Replication"). The zero value is all of
// them, at their defaults.
type Settings struct {
	NoBatching       bool `json:"no_batching,omitempty"`
	NoPipeline       bool `json:"no_pipeline,omitempty"`
	NoParallelAppend bool `json:"no_parallel_append,omitempty"`
	NoAsyncApply     bool `json:"no_async_apply,omitempty"`
	// MaxBatchBytes is the size at which a batch is cut; 0 is the contestant's default.
	MaxBatchBytes int `json:"max_batch_bytes,omitempty"`
	// MaxBatchCommands is the number of commands at which a batch is cut, with braid's own protocols; 0: no limit. With
	// 1 every command is an entry, and a frame still has many entries.
	MaxBatchCommands int `json:"max_batch_commands,omitempty"`
	// PipelineDepth bounds the frames in flight to a follower; 0 is the contestant's default.
	PipelineDepth int `json:"pipeline_depth,omitempty"`
	// Values are settings of braid's own protocols, see Shape. In JSON they are members of the others.
	Values setting.Values `json:"-"`
	// Cards is the number of network cards of each member, with an address each; 0: one. Net emulates links, as
	// braid.Experiment.Net; only braid's own protocols have it.
	Cards int    `json:"cards,omitempty"`
	Net   string `json:"net,omitempty"`
}

// MarshalJSON adds the settings of protocols.
func (s Settings) MarshalJSON() ([]byte, error) {
	type plain Settings // without this method
	object, err := json.Marshal(plain(s))
	if err != nil {
		return nil, err
	}
	return s.Values.Flat(object)
}

// shape returns the Shape of one of braid's own protocols with these settings.
func (s *Settings) shape(protocol string) Shape {
	return Shape{protocol, s.Values}
}

// describe describes the settings of the protocol and of links as text: empty, or in brackets.
func (s *Settings) describe() string {
	var parts []string
	add := func(set bool, format string, v any) {
		if set {
			parts = append(parts, fmt.Sprintf(format, v))
		}
	}
	add(!s.Values.IsZero(), "%s", s.Values)
	add(s.MaxBatchCommands > 0, "batches of %d commands", s.MaxBatchCommands)
	add(s.Cards > 1, "%d network cards", s.Cards)
	add(s.Net != "", "links %s", s.Net)
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// Of returns the settings that a contestant has, for a comparison with another.
func (s Settings) Of(protocol string) Settings {
	if protocol == Limit {
		return Settings{Cards: s.Cards, Net: s.Net} // validate refuses both
	}
	s.Values = s.shape(protocol).Only().Values
	return s
}

// maxCards bounds Settings.Cards.
const maxCards = 16

// validate checks the settings of braid's own protocols.
func (s *Settings) validate(protocol string) error {
	if s.MaxBatchCommands < 0 {
		return fmt.Errorf("batches of %d commands: must not be negative", s.MaxBatchCommands)
	}
	if s.Cards < 0 || s.Cards > maxCards {
		return fmt.Errorf("%d network cards: must be between 1 and %d", s.Cards, maxCards)
	}
	if Own(protocol) {
		return s.Apply(protocol, &braid.Options{})
	}
	if s.Cards > 1 || s.Net != "" {
		return fmt.Errorf("network cards and links: those of %s are not emulated", protocol)
	}
	if protocol == Limit && *s != (Settings{}) {
		return fmt.Errorf("%s has no settings", protocol)
	}
	if s.MaxBatchCommands > 0 {
		return fmt.Errorf("batches of %d commands: %s has no such limit", s.MaxBatchCommands, protocol)
	}
	return nil
}

// Apply sets a node's options for one of braid's own protocols.
func (s *Settings) Apply(protocol string, o *braid.Options) error {
	net, err := s.net()
	if err != nil {
		return err
	}
	o.Experiment = braid.Experiment{
		NoBatching: s.NoBatching, NoPipeline: s.NoPipeline, NoParallelAppend: s.NoParallelAppend,
		NoAsyncApply:  s.NoAsyncApply,
		MaxBatchBytes: s.MaxBatchBytes, MaxBatchCommands: s.MaxBatchCommands, PipelineDepth: s.PipelineDepth, Net: net,
	}
	return s.shape(protocol).Apply(o)
}

// net is the emulation with as many cards as there are.
func (s *Settings) net() (string, error) { return CardsNet(s.Net, s.Cards) }

const (
	// Heartbeat and ElectionTimeout are those of every contestant.
	Heartbeat       = 100 * time.Millisecond
	ElectionTimeout = time.Second
	// startTimeout bounds the wait for a first leader.
	startTimeout = 30 * time.Second
)

// Opener starts a contestant's cluster; members may still be without a leader.
type Opener func(ClusterConfig) (Cluster, error)

// Protocols returns the names that the log benchmark knows, sorted: braid's own protocols
// or the rivals to compare with.
func Protocols(peers bool) []string {
	if peers {
		return slices.Clone(rivals)
	}
	return slices.Sorted(slices.Values(registry.Names()))
}

// checkContestant returns an error if no contestant has this name.
func checkContestant(name string) error {
	known := slices.Concat(Protocols(false), Protocols(true), []string{Limit})
	if slices.Contains(known, name) {
		return nil
	}
	return fmt.Errorf("unknown protocol %q: the log benchmark knows %s", name, strings.Join(known, ", "))
}

// awaitLeader returns when the cluster has a leader.
func awaitLeader(ctx context.Context, c Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for c.Leader() < 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("no leader: %w", ctx.Err())
		}
	}
	return nil
}
