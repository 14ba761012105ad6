package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/braidlog/braid/bench/workload"
)

// WatchConfig is a load of puts on servers with many watches. Each run has the phases of [WatchPhase] on one cluster.
type WatchConfig struct {
	Contest
	Watchers int // watches of a prefix each
	Streams  int // connections of the watches, each with one stream
	Prefixes int // that the keys and the watches are spread over
	// Stalled is the number of the watches that are not read, each on a connection of its own, in the phase with such
	// watches.
	Stalled int
	Clients int // of the puts, each with one request at a time and a connection of its own
	ValSize int
	// History is the number of puts before watches that start at old revisions; 0: there are none.
	History int
	// PutTotal and PutRate, unless 0, bound the puts of a phase, warm-up included, and the puts a second.
	PutTotal int64
	PutRate  float64
	Duration time.Duration // of each phase
	Warmup   time.Duration // of each phase, in addition
	Seed     uint64
	Progress func(Progress)
}

const (
	watchPrefix = "watch/"
	// watchDigits is the number of digits of a key; the last digit is of the key in its prefix.
	watchDigits   = 8
	keysOfAPrefix = 10
)

// Validate returns an error that says what is wrong with the configuration.
func (c *WatchConfig) Validate() error {
	switch {
	case c.Watchers < 1:
		return fmt.Errorf("%d watchers: must be at least 1", c.Watchers)
	case c.Streams < 1 || c.Streams > c.Watchers:
		return fmt.Errorf("%d streams for %d watchers: must be between 1 and the watchers", c.Streams, c.Watchers)
	case c.Stalled < 1 || c.Stalled > c.Watchers:
		return fmt.Errorf("%d stalled watches of %d: must be between 1 and the watchers", c.Stalled, c.Watchers)
	case c.Prefixes < 1:
		return fmt.Errorf("%d prefixes: must be at least 1", c.Prefixes)
	case c.History < 0 || c.History == 1:
		return fmt.Errorf("a history of %d puts: must be 0, or at least 2", c.History)
	case c.Duration <= 0:
		return fmt.Errorf("duration %v: must be positive", c.Duration)
	}
	load := c.load()
	return errors.Join(c.ValidateEtcd(), load.Validate())
}

// load returns the puts of a phase, without endpoints.
func (c *WatchConfig) load() KVConfig {
	return KVConfig{Clients: c.Clients, Conns: c.Clients, Duration: c.Duration, Warmup: c.Warmup, Progress: c.Progress,
		Total: c.PutTotal, Throttle: c.PutRate,
		KeyPrefix: watchPrefix, KeySize: len(watchPrefix) + watchDigits,
		Workload: workload.Spec{Mix: workload.Ratio(1), KeySpace: c.Prefixes * keysOfAPrefix,
			Values: workload.Fixed(c.ValSize), Seed: c.Seed}}
}

// RunWatch runs the servers in rounds. When ctx ends, or a run fails, the result is of the runs before, nil if there
// are none.
func RunWatch(ctx context.Context, c WatchConfig) (*WatchContest, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	made := make([]int, len(c.Servers))
	runs, err := Alternate(ctx, len(c.Servers), c.Rounds, func(ctx context.Context, i int) (*WatchResult, error) {
		made[i]++
		return c.runOne(ctx, c.Servers[i], made[i]-1)
	})
	return newWatchContest(&c, runs), err
}

// watchRun is a run on one cluster.
type watchRun struct {
	*WatchConfig
	name    string
	servers *Servers
	kv      []etcdserverpb.KVClient // of each endpoint
	ledger  writeLedger
	events  atomic.Int64 // received by all watches
	out     *WatchResult
}

func (c *WatchConfig) runOne(ctx context.Context, name string, round int) (*WatchResult, error) {
	r := &watchRun{WatchConfig: c, name: name, out: &WatchResult{Protocol: name, Nodes: c.Nodes}}
	err := c.With(ctx, name, largeQuota, func(servers *Servers) error {
		r.servers = servers
		for _, e := range servers.Endpoints {
			t, err := newTarget(EtcdAPI, e, nil)
			if err != nil {
				return err
			}
			defer t.close()
			r.kv = append(r.kv, t.kv)
		}
		err := r.run(ctx, round)
		r.out.MemoryMB = memoryOf(servers)
		return err
	})
	return r.out, err
}

// memoryOf returns the resident memory of each server, in MiB.
func memoryOf(servers *Servers) (mb []float64) {
	for _, pid := range servers.PIDs {
		mb = append(mb, float64(residentBytes(pid))/(1<<20))
	}
	return mb
}

// ownMemoryOf returns the resident memory of each server without pages of files, in MiB.
func ownMemoryOf(servers *Servers) (mb []float64) {
	for _, pid := range servers.PIDs {
		mb = append(mb, float64(procField(procFile(pid, "status"), "RssAnon:"))/(1<<10))
	}
	return mb
}

// run runs the phases; each round begins with the next one. The history is last, because it needs a compaction.
func (r *watchRun) run(ctx context.Context, round int) error {
	phases := []func(context.Context) error{r.alone, r.watched, r.stalled}
	for i := range phases {
		if err := phases[(round+i)%len(phases)](ctx); err != nil {
			return err
		}
	}
	if r.History == 0 {
		return nil
	}
	return r.catchUp(ctx)
}

// puts runs the puts of a phase and adds its figures to the result.
func (r *watchRun) puts(ctx context.Context, phase string) (*WatchPhase, error) {
	events, began := r.events.Load(), time.Now()
	kv, err := r.putOn(ctx, func(*KVConfig) {})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", phase, err)
	}
	r.out.Version = kv.Version
	return &WatchPhase{Phase: phase, Figures: kv.Figures, ThroughputSpread: kv.ThroughputSpread,
		MemoryMB: memoryOf(r.servers),
		EventsPS: float64(r.events.Load()-events) / time.Since(began).Seconds()}, nil
}

// putOn runs puts on all servers and records them.
func (r *watchRun) putOn(ctx context.Context, change func(*KVConfig)) (*KVResult, error) {
	c := r.load()
	c.Protocol, c.Endpoints, c.Servers, c.Wrote = r.name, r.servers.Endpoints, r.servers.PIDs, r.ledger.wrote
	change(&c)
	return RunKV(ctx, c)
}

func (r *watchRun) alone(ctx context.Context) error {
	p, err := r.puts(ctx, PhaseAlone)
	r.add(p, nil)
	return err
}

// watched is the phase in which all watches are read.
func (r *watchRun) watched(ctx context.Context) error {
	w := &watches{r: r}
	defer w.close()
	if err := w.openNow(ctx, r.Watchers); err != nil {
		return err
	}
	return w.measure(ctx, PhaseWatched)
}

// stalled is the phase in which some watches, of all keys, are not read. After the puts they are read, and each must
// then receive all of its events, or its cancellation.
func (r *watchRun) stalled(ctx context.Context) error {
	w := &watches{r: r}
	defer w.close()
	if err := w.openNow(ctx, r.Watchers-r.Stalled); err != nil {
		return err
	}
	now, err := currentRevision(ctx, r.kv[0])
	if err != nil {
		return err
	}
	read := len(w.streams)
	for i := range r.Stalled {
		if err := w.openStalled(ctx, r.servers.Endpoints[i%len(r.servers.Endpoints)], now+1); err != nil {
			return err
		}
	}
	p, err := r.puts(ctx, PhaseStalled)
	if err != nil {
		return err
	}
	for _, s := range w.streams[read:] {
		s.read()
	}
	return w.settle(ctx, p)
}

// openStalled opens a watch of all keys at an endpoint that nothing reads yet.
func (w *watches) openStalled(ctx context.Context, endpoint string, from int64) error {
	// With the smallest windows the server cannot send much before the watch is read.
	const window = 64 << 10
	s, err := openWatchStream(ctx, endpoint, &w.r.events, grpc.WithInitialWindowSize(window),
		grpc.WithInitialConnWindowSize(window))
	if err != nil {
		return err
	}
	w.streams = append(w.streams, s)
	log := &watchLog{prefix: watchPrefix, from: from, cancel: maybeCancelled}
	w.logs = append(w.logs, log)
	return s.watch(log)
}

// add adds a phase to the result.
func (r *watchRun) add(p *WatchPhase, violations []string) {
	if p != nil {
		r.out.Phases = append(r.out.Phases, p)
	}
	r.out.Violations = append(r.out.Violations, violations...)
}

// watches are the watches of a phase.
type watches struct {
	r       *watchRun
	streams []*watchStream
	logs    []*watchLog
	next    int // number of the next watch
}

func (w *watches) close() {
	for _, s := range w.streams {
		s.close()
	}
}

// openNow opens watches that start after the current revision.
func (w *watches) openNow(ctx context.Context, n int) error {
	now, err := currentRevision(ctx, w.r.kv[0])
	if err != nil {
		return err
	}
	var logs []*watchLog
	for range n {
		logs = append(logs, &watchLog{from: now + 1})
	}
	return w.open(ctx, logs)
}

// open opens watches, of a prefix each, and waits until the servers have confirmed them.
func (w *watches) open(ctx context.Context, logs []*watchLog) error {
	for i := len(w.streams); i < min(w.r.Streams, len(logs)); i++ {
		s, err := openWatchStream(ctx, w.r.servers.Endpoints[i%len(w.r.servers.Endpoints)], &w.r.events)
		if err != nil {
			return err
		}
		w.streams = append(w.streams, s)
		s.read()
	}
	for _, log := range logs {
		digits := make([]byte, watchDigits-1)
		formatKey(digits, uint64(w.next%w.r.Prefixes))
		log.prefix = watchPrefix + string(digits)
		if err := w.streams[w.next%len(w.streams)].watch(log); err != nil {
			return err
		}
		w.next++
	}
	w.logs = append(w.logs, logs...)
	switch ok, err := until(ctx, &w.r.events, logs, (*watchLog).isCreated); {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("the servers did not confirm %d watches within %v", len(logs), settleTimeout)
	}
	return nil
}

// measure runs the puts of a phase while the watches are read.
func (w *watches) measure(ctx context.Context, phase string) error {
	p, err := w.r.puts(ctx, phase)
	if err != nil {
		return err
	}
	return w.settle(ctx, p)
}

// settle waits for the events of a phase, checks them and adds the phase to the result.
func (w *watches) settle(ctx context.Context, p *WatchPhase) error {
	violations, err := w.r.ledger.settle(ctx, &w.r.events, w.logs)
	if err != nil {
		return err
	}
	for _, log := range w.logs {
		log.mu.Lock()
		p.Events += int64(len(log.events))
		if log.ended {
			p.Cancelled++
		}
		log.mu.Unlock()
	}
	w.r.add(p, violations)
	return nil
}
