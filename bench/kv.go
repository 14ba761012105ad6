package bench

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/bench/workload"
)

// The protocols between clients and servers.
const (
	EtcdAPI = ""    // etcd's v3 API, by gRPC
	MapAPI  = "map" // the interface of package mapkv, by HTTP
)

// KVConfig is a load on the endpoints of a key-value service.
type KVConfig struct {
	Protocol  string // the servers' name in the result
	API       string // EtcdAPI or MapAPI
	Endpoints []string
	TLS       *tls.Config // nil: plain TCP
	Clients   int         // goroutines, each with one request at a time
	Conns     int         // connections, distributed over the endpoints
	// The run ends after Total requests (0: no limit) or Duration (0: no limit).
	Total    int64
	Duration time.Duration
	Warmup   time.Duration
	// Workload describes the clients' requests.
	Workload  workload.Spec
	KeySize   int    // bytes of a key, the prefix included
	KeyPrefix string // of all keys
	// RemoveKeys removes everything with KeyPrefix, which must not be empty, after the run.
	RemoveKeys bool
	// Load puts every key before the run.
	Load bool
	// Serializable reads are answered from the state of the member that receives them.
	Serializable bool
	// Rate, unless 0, makes an open loop: requests a second over all clients, whether or
	// not the servers keep up. Latency counts from when a request was due.
	Rate float64
	// Throttle, unless 0, bounds the requests a second over all clients.
	Throttle float64
	// Check records the results of every client and checks them, for at most CheckLimit.
	Check      bool
	CheckLimit time.Duration
	// Batch, unless 0, is how many puts a client sends in a message of braid's stream of puts, before it waits for the
	// answer. Latency is that of a message.
	Batch int
	// PutStream is the gRPC method of that stream, as in "/service/method".
	PutStream string
	// TargetLeader sends everything to the leader.
	TargetLeader bool
	// Wrote, unless nil, is called after each put, with its revision; 0: it failed, perhaps after it took effect.
	Wrote func(key []byte, revision int64)
	// Servers are the ids of the servers' processes, if they run on this machine.
	Servers []int
	// Dir is a directory in the file system of their data; "": it is not known.
	Dir      string
	Progress func(Progress)
}

const (
	requestTimeout = 10 * time.Second
	dialTimeout    = 5 * time.Second
	// removeTimeout bounds the removal of a run's keys.
	removeTimeout = 20 * time.Second
	// maxMessage is the largest message that the clients take or send, and maxKey the
	// longest key that they use.
	maxMessage, maxKey = 64 << 20, 1 << 20
)

// Validate returns an error that says what is wrong with the configuration.
func (c *KVConfig) Validate() error {
	switch {
	case c.Total < 0 || c.Duration < 0 || c.Warmup < 0:
		return errors.New("total, duration and warm-up must not be negative")
	case c.Total == 0 && c.Duration == 0:
		return errors.New("give a total or a duration: the run would never end")
	}
	return c.validateLoad()
}

// validateLoad is Validate without the length of the run.
func (c *KVConfig) validateLoad() error {
	switch {
	case c.Clients < 1:
		return fmt.Errorf("%d clients: must be at least 1", c.Clients)
	case c.Conns < 1:
		return fmt.Errorf("%d connections: must be at least 1", c.Conns)
	case c.Conns > c.Clients:
		return fmt.Errorf("%d connections for %d clients: a client uses one", c.Conns, c.Clients)
	}
	if err := c.Workload.Validate(c.Clients); err != nil {
		return err
	}
	return errors.Join(c.validateKeys(), c.validateRates(), c.validateReads(), c.validateBatch())
}

func (c *KVConfig) validateKeys() error {
	digits := c.KeySize - len(c.KeyPrefix)
	if digits < len(strconv.Itoa(c.Workload.KeySpace-1)) {
		return fmt.Errorf("keys of %d bytes: too short for %d different ones after the prefix %q", c.KeySize,
			c.Workload.KeySpace, c.KeyPrefix)
	}
	if c.KeySize > maxKey {
		return fmt.Errorf("keys of %d bytes: at most %d (1 MiB)", c.KeySize, maxKey)
	}
	if c.RemoveKeys && c.KeyPrefix == "" {
		return errors.New("remove all keys, and no prefix: that would be every key of the servers")
	}
	scan := c.Workload.ScanLimit * (c.Workload.Values.Max + c.KeySize)
	if c.Workload.Mix[workload.Scan] > 0 && scan > maxMessage {
		return fmt.Errorf("scans of %d values of %d bytes are %d MiB: at most %d MiB come in one answer; lower "+
			"the limit of scans, or the size", c.Workload.ScanLimit, c.Workload.Values.Max, scan>>20, maxMessage>>20)
	}
	if bytes := c.Clients * c.Workload.Values.Max; bytes > maxPending {
		return fmt.Errorf("%d clients with values of %d bytes are %d MiB in flight: at most %d MiB", c.Clients,
			c.Workload.Values.Max, bytes>>20, maxPending>>20)
	}
	return nil
}

func (c *KVConfig) validateRates() error {
	wrong := func(rate float64) bool { return rate < 0 || math.IsNaN(rate) || math.IsInf(rate, 0) }
	switch {
	case wrong(c.Rate):
		return fmt.Errorf("rate %v: must be positive", c.Rate)
	case wrong(c.Throttle):
		return fmt.Errorf("throttle %v: must be positive", c.Throttle)
	case c.Rate > 0 && c.Throttle > 0:
		return errors.New("a rate makes an open loop and a throttle slows a closed one down: give one of the two")
	}
	return nil
}

func (c *KVConfig) validateReads() error {
	mix := &c.Workload.Mix
	reads := mix[workload.Read] + mix[workload.Scan] + mix[workload.ReadModifyWrite]
	switch {
	case c.API != EtcdAPI && c.API != MapAPI:
		return fmt.Errorf("unknown API %q", c.API)
	case c.API == MapAPI && mix[workload.Scan]+mix[workload.ReadModifyWrite]+mix[workload.Grant] > 0:
		return errors.New("scans, read-modify-writes and leases: the map service has none")
	case c.Serializable && reads == 0:
		return errors.New("serializable gets, but a write ratio of 1: there are no gets")
	case c.Serializable && c.Check:
		return errors.New("serializable gets may be stale, which is not linearizable: check without them")
	case c.Check && c.Workload.Values.Min < MinPayload:
		return fmt.Errorf("check with values of %d bytes: at least %d are needed, to tell them apart",
			c.Workload.Values.Min, MinPayload)
	case c.Check && c.CheckLimit <= 0:
		return fmt.Errorf("check for %v: the time must be positive", c.CheckLimit)
	}
	return nil
}

// kvRun is a run in progress.
type kvRun struct {
	KVConfig
	targets  []*kvTarget
	workload *workload.Workload
	history  *kvHistory // nil unless the run is checked
	origin   time.Time
	// loadFrom is when the clients began after the keys were put, in ns since origin.
	loadFrom int64
	pace     *workload.Pace     // of an open loop, else nil
	throttle *workload.Throttle // nil: none
	issued   atomic.Int64       // for Total
	stop     chan struct{}      // closed when the clients are to stop
	ok       atomic.Int64
	failed   atomic.Int64
	notFound atomic.Int64
	// conflicts are read-modify-writes whose key changed in between.
	conflicts atomic.Int64
	lastErr   atomic.Pointer[error]
	// refused is the reason why the run cannot succeed; the closed channel wakes wait.
	refused    atomic.Pointer[RefusedError]
	refusal    chan struct{}
	refuseOnce sync.Once
	// lastOK is when a request last succeeded, in ns since origin.
	lastOK   atomic.Int64
	from, to atomic.Int64 // bounds of the measured time
	took     [workload.Kinds]shardedHistogram
	wg       sync.WaitGroup
}

// RunKV loads the endpoints. When ctx ends during the measurement, the result covers the time until then.
func RunKV(ctx context.Context, c KVConfig) (*KVResult, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	cluster, err := probe(ctx, c.API, c.Endpoints, c.TLS)
	if err != nil {
		return nil, err
	}
	endpoints := cluster.endpoints
	if c.TargetLeader {
		if cluster.leader < 0 {
			return nil, errors.New("none of the endpoints is the leader's: give the leader's too, or do not target it")
		}
		endpoints = endpoints[cluster.leader : cluster.leader+1]
	}
	r, err := newKVRun(c)
	if err != nil {
		return nil, err
	}
	defer r.hangUp()
	if err := r.dial(ctx, endpoints); err != nil {
		return nil, err
	}
	out, err := r.run(ctx, cluster)
	if !c.RemoveKeys {
		return out, err
	}
	// Also after a failure, and after an interrupt.
	if rerr := r.removeKeys(context.WithoutCancel(ctx)); rerr != nil {
		rerr = fmt.Errorf("the keys %s… were not removed: %w", c.KeyPrefix, rerr)
		if out == nil {
			return nil, errors.Join(err, rerr)
		}
		out.KeysLeft = rerr.Error()
	}
	return out, err
}

func newKVRun(c KVConfig) (*kvRun, error) {
	r := &kvRun{KVConfig: c, origin: time.Now(), stop: make(chan struct{}), refusal: make(chan struct{})}
	var err error
	if r.workload, err = workload.New(c.Workload, c.Clients); err != nil {
		return nil, err
	}
	if c.Rate > 0 {
		r.pace = workload.NewPace(c.Rate)
	}
	if c.Throttle > 0 {
		r.throttle = workload.NewThrottle(c.Throttle)
	}
	if c.Check {
		r.history = &kvHistory{now: r.now}
		r.Total = min(historyLimit, cmp.Or(r.Total, historyLimit))
	}
	r.from.Store(math.MaxInt64)
	r.to.Store(math.MaxInt64)
	return r, nil
}

func (r *kvRun) now() int64 { return int64(time.Since(r.origin)) + 1 }

// kvReading is a reading of all counters at one time.
type kvReading struct {
	at         time.Time
	ok, failed int64
	client     time.Duration
	servers    time.Duration
	written    diskBytes
	metrics    serverMetrics
	ticks      cpuTicks
}

func (r *kvRun) read() (n kvReading) {
	n.at, n.ok, n.failed, n.client, n.ticks = time.Now(), r.ok.Load(), r.failed.Load(), CPUTime(), readCPUTicks()
	for _, pid := range r.Servers {
		n.servers += processCPU(pid)
	}
	n.written = bytesWritten(r.Dir, r.Servers...)
	return n
}

// begin takes the first reading. The servers' metrics take some time, so they come first.
func (r *kvRun) begin(cluster *kvCluster) kvReading {
	metrics := cluster.readMetrics(cluster, r.TLS)
	n := r.read()
	n.metrics = metrics
	r.from.Store(r.now())
	return n
}

// end takes the last reading.
func (r *kvRun) end(cluster *kvCluster) kvReading {
	r.to.Store(r.now())
	n := r.read()
	n.metrics = cluster.readMetrics(cluster, r.TLS)
	return n
}

func (r *kvRun) run(ctx context.Context, cluster *kvCluster) (*KVResult, error) {
	// Requests outlive an interrupt; each has a deadline of its own.
	loadCtx := context.WithoutCancel(ctx)
	clients := r.newClients()
	if r.Load {
		if err := r.loadKeys(ctx, clients); err != nil {
			return nil, err
		}
	}
	finished := make(chan struct{})
	var from kvReading
	if r.Warmup == 0 {
		from = r.begin(cluster)
	}
	// After the reading, which takes some time: nothing is due before the clients begin.
	r.loadFrom = r.now()
	r.lastOK.Store(r.loadFrom)
	for _, c := range clients {
		r.wg.Go(func() { c.start(loadCtx) })
	}
	go func() { r.wg.Wait(); close(finished) }()
	var err error
	if r.Warmup > 0 {
		err = r.wait(ctx, r.Warmup, "warming up", finished)
		from = r.begin(cluster)
	}
	if err == nil {
		limit := r.Duration
		if limit == 0 {
			limit = math.MaxInt64
		}
		err = r.wait(ctx, limit, "measuring", finished)
	}
	to := r.end(cluster)
	close(r.stop)
	<-finished
	if err := r.nothing(from, to, err); err != nil {
		return nil, err
	}
	out := r.result(from, to, cluster)
	out.Interrupted = err != nil
	if r.history != nil {
		r.report("checking", 0, 0, 0)
		out.judged(r.history.judge(r.CheckLimit))
	}
	return out, nil
}

// nothing returns the error of a run in which nothing could be measured, or which failed.
func (r *kvRun) nothing(from, to kvReading, err error) error {
	interrupted := errors.Is(err, context.Canceled)
	switch {
	case r.refused.Load() != nil:
		return r.refused.Load()
	case to.ok > from.ok && interrupted:
		return nil
	case to.ok > from.ok:
		return err
	case interrupted:
		return errors.New("interrupted before anything was measured")
	case r.lastErr.Load() != nil:
		return fmt.Errorf("no request succeeded; one failed with: %w", *r.lastErr.Load())
	}
	return errors.New("all requests were over before the measurement began: give more of them, or a shorter warm-up")
}

func (r *kvRun) report(phase string, elapsed, whole time.Duration, perSecond float64) {
	if r.Progress != nil {
		r.Progress(Progress{Protocol: r.Protocol, Phase: phase, Elapsed: elapsed, Whole: whole, Completed: r.ok.Load(),
			PerSecond: perSecond})
	}
}

// wait waits for a duration, the end of the requests or of ctx, or until nothing succeeded for too long.
func (r *kvRun) wait(ctx context.Context, d time.Duration, phase string, finished <-chan struct{}) error {
	end := time.NewTimer(d)
	defer end.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	began, last := time.Now(), r.ok.Load()
	for {
		select {
		case <-end.C:
			return nil
		case <-finished:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-r.refusal:
			return r.refused.Load()
		case <-tick.C:
			ok := r.ok.Load()
			r.report(phase, time.Since(began), d, float64(ok-last))
			last = ok
			if since := time.Duration(r.now() - r.lastOK.Load()); since > stallTimeout {
				if e := r.lastErr.Load(); e != nil {
					return fmt.Errorf("gave up: no request succeeded for %v; one failed with: %w", stallTimeout, *e)
				}
				return fmt.Errorf("gave up: no request was answered for %v", stallTimeout)
			}
		}
	}
}
