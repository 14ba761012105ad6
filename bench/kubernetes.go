package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// KubernetesConfig is a load like that of a Kubernetes cluster's API servers.
type KubernetesConfig struct {
	Contest
	Objects     int           // Kubernetes' nodes, each with a Lease, a status and pods
	PodsPerNode int           // created before the measurement
	Churn       float64       // pods a second that are created, updated and deleted
	ListEvery   time.Duration // between two lists
	Rate        float64       // multiplies all rates
	Conns       int           // connections of the requests
	Duration    time.Duration
	Warmup      time.Duration
	Progress    func(Progress)
}

// Sizes and rates of the objects.
const (
	leaseBytes  = 400
	statusBytes = 10 << 10
	podBytes    = 3 << 10
	eventBytes  = 1 << 10

	leaseEvery   = 10 * time.Second
	statusEvery  = 5 * time.Minute
	compactEvery = 5 * time.Minute
	// eventsOfAPod are the Events of a pod that is created, started and deleted.
	eventsOfAPod = 4
	eventTTL     = time.Hour
	// eventsOfALease and leaseReuse bound the Events that share a lease, as in Kubernetes.
	eventsOfALease = 1000
	leaseReuse     = time.Minute
	pageLimit      = 500
	// maxUnderWay bounds the operations of a kind that are under way.
	maxUnderWay = 4096
)

// Validate returns an error that says what is wrong with the configuration.
func (c *KubernetesConfig) Validate() error {
	wrong := func(v float64) bool { return !(v > 0) || math.IsInf(v, 0) }
	switch {
	case c.Objects < 1:
		return fmt.Errorf("%d nodes: must be at least 1", c.Objects)
	case c.PodsPerNode < 0:
		return fmt.Errorf("%d pods for each node: must not be negative", c.PodsPerNode)
	case wrong(c.Churn):
		return fmt.Errorf("churn %v: must be positive", c.Churn)
	case wrong(c.Rate):
		return fmt.Errorf("rate %v: must be positive", c.Rate)
	case c.Conns < 1:
		return fmt.Errorf("%d connections: must be at least 1", c.Conns)
	case c.ListEvery <= 0 || c.Duration <= 0 || c.Warmup <= 0:
		return errors.New("the time between lists, the duration and the warm-up must be positive")
	}
	return c.ValidateEtcd()
}

// RunKubernetes runs the servers in rounds. When ctx ends, or a run fails, the result is of the runs before, nil if
// there are none.
func RunKubernetes(ctx context.Context, c KubernetesConfig) (*KubernetesContest, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	runs, err := Alternate(ctx, len(c.Servers), c.Rounds, func(ctx context.Context, i int) (*KubernetesResult, error) {
		return c.runOne(ctx, c.Servers[i])
	})
	return newKubernetesContest(&c, runs), err
}

// runOne starts a cluster, loads it and stops it.
func (c *KubernetesConfig) runOne(ctx context.Context, name string) (out *KubernetesResult, err error) {
	err = c.With(ctx, name, largeQuota, func(servers *Servers) error {
		r := &kubernetesRun{KubernetesConfig: c, name: name, servers: servers, origin: time.Now()}
		defer func() {
			for _, t := range r.targets {
				t.close()
			}
		}()
		for i := range c.Conns {
			t, err := newTarget(EtcdAPI, servers.Endpoints[i%len(servers.Endpoints)], nil)
			if err != nil {
				return err
			}
			r.targets = append(r.targets, t)
		}
		out, err = r.run(ctx)
		return err
	})
	return out, err
}

// kubernetesRun is a run on one cluster.
type kubernetesRun struct {
	*KubernetesConfig
	name     string
	servers  *Servers
	targets  []*kvTarget
	turn     atomic.Int64 // of the next request's connection
	origin   time.Time
	from, to atomic.Int64 // bounds of the measured time, in ns since origin
	kinds    []*operations
	watched  []*resourceWatch
	ledger   writeLedger
	events   atomic.Int64
	lease    eventLease
	busy     sync.WaitGroup
	failed   atomic.Int64
	conflict atomic.Int64
	lastErr  atomic.Pointer[error]
	// incomplete is the error of a list that is not complete.
	incomplete atomic.Pointer[error]
}

func (r *kubernetesRun) now() int64 { return int64(time.Since(r.origin)) + 1 }

// operations are the operations of one kind.
type operations struct {
	kind string
	rate float64      // that is asked, a second
	done atomic.Int64 // in the measured time
	took shardedHistogram
}

func (r *kubernetesRun) kind(name string, rate float64) *operations {
	o := &operations{kind: name, rate: rate}
	r.kinds = append(r.kinds, o)
	return o
}

// perform performs an operation that was due at a time, from which its latency counts.
func (r *kubernetesRun) perform(o *operations, due int64, n int, operate func() error) {
	switch err := operate(); {
	case errors.Is(err, errIncompleteList):
		r.incomplete.Store(&err)
	case err != nil:
		r.lastErr.Store(&err)
		r.failed.Add(1)
		return
	}
	if end := r.now(); end >= r.from.Load() && end < r.to.Load() {
		o.done.Add(1)
		o.took.record(n, end-due)
	}
}

// run creates the objects, and then runs and measures all operations.
func (r *kubernetesRun) run(ctx context.Context) (*KubernetesResult, error) {
	objects, err := r.create(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.openWatches(ctx); err != nil {
		return nil, err
	}
	defer r.closeWatches()
	begin := r.now()
	from := begin + int64(r.Warmup)
	r.from.Store(from)
	r.to.Store(from + int64(r.Duration))
	meter, cpu := StartCPUMeter(), r.serversCPU()
	r.start(ctx, begin, objects)
	r.busy.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	violations, err := r.ledger.settle(ctx, &r.events, r.logs())
	if err != nil {
		return nil, err
	}
	out := r.result(violations)
	out.CPUShares = meter.from.shares(readCPUTicks(), ownCPUTime()-meter.own+r.serversCPU()-cpu)
	return out, r.nothing(out)
}

// nothing returns the error of a run in which no operation succeeded.
func (r *kubernetesRun) nothing(out *KubernetesResult) error {
	for _, k := range out.Kinds {
		if k.DonePS > 0 {
			return nil
		}
	}
	if e := r.lastErr.Load(); e != nil {
		return fmt.Errorf("no operation succeeded; one failed with: %w", *e)
	}
	return errors.New("no operation succeeded in time")
}

func (r *kubernetesRun) serversCPU() (sum time.Duration) {
	for _, pid := range r.servers.PIDs {
		sum += processCPU(pid)
	}
	return sum
}
