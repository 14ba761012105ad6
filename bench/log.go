package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"
)

// LogConfig is one run of the log benchmark.
type LogConfig struct {
	Protocol string // one of Protocols, or Limit
	Nodes    int    // members, at least 1
	Load     Load
	Settings Settings
	// Dir is where the members' directories are made; they are removed after the run.
	Dir string
	// Rivals is the path of the program that runs the rivals, see [FindRivals]; for other protocols it may be empty.
	Rivals string `json:"-"`
	// Progress is called about once a second while the run is measured; nil: never.
	Progress func(Progress) `json:"-"`
}

// Progress is the progress of a run.
type Progress struct {
	Protocol  string
	Phase     string // "starting", "warming up", "measuring", "verifying"
	Elapsed   time.Duration
	Whole     time.Duration
	Completed int64
	PerSecond float64 // since the last report
}

// Validate returns an error that says what is wrong with the configuration.
func (c *LogConfig) Validate() error {
	if err := checkContestant(c.Protocol); err != nil {
		return err
	}
	if c.Nodes < 1 || c.Nodes > 15 {
		return fmt.Errorf("%d members: must be between 1 and 15", c.Nodes)
	}
	if c.Settings.MaxBatchBytes < 0 {
		return fmt.Errorf("batches of %d bytes: must not be negative", c.Settings.MaxBatchBytes)
	}
	if c.Settings.PipelineDepth < 0 {
		return fmt.Errorf("pipeline of %d frames: must not be negative", c.Settings.PipelineDepth)
	}
	if err := c.Settings.validate(c.Protocol); err != nil {
		return err
	}
	if c.Settings.NoPipeline && c.Settings.PipelineDepth > 1 {
		return fmt.Errorf("pipeline of %d frames and no pipeline: give one of the two", c.Settings.PipelineDepth)
	}
	return c.Load.Validate()
}

// RunLog starts a cluster, loads it, measures and verifies it. When ctx ends during the measurement, the result
// covers the time until then.
func RunLog(ctx context.Context, c LogConfig) (*LogResult, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if isRival(c.Protocol) {
		return runRival(ctx, c)
	}
	open := openBraid(c.Protocol)
	if c.Protocol == Limit {
		open = openLimit
	}
	return RunLogOn(ctx, c, open)
}

// RunLogOn is RunLog with a contestant that need not be among the known ones. Its members run in this process.
func RunLogOn(ctx context.Context, c LogConfig, open Opener) (*LogResult, error) {
	dir, err := os.MkdirTemp(c.Dir, c.Protocol+"-")
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	debug.FreeOSMemory() // the garbage of the last contestant must not slow this one

	cc := ClusterConfig{Dir: dir, PendingBytes: c.Load.pendingBytes(), Concurrency: c.Load.concurrency(),
		ClosedLoop: c.Load.Proposers > 0, Idle: c.Load.Idle, Settings: c.Settings}
	for range c.Nodes {
		cc.Machines = append(cc.Machines, NewMachine(c.Load.senders()))
	}
	cluster, err := open(cc)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Protocol, err)
	}
	r := &logRun{LogConfig: c, cluster: cluster, machines: cc.Machines, convergeIn: convergeTimeout}
	result, err := r.run(ctx)
	if cerr := cluster.Close(); cerr != nil && err == nil {
		err = fmt.Errorf("stopping %s: %w", c.Protocol, cerr)
	}
	return result, err
}

type logRun struct {
	LogConfig
	cluster  Cluster
	machines []*Machine
	g        *generator
	began    time.Time
	// convergeIn bounds the time in which the members must apply everything after the load.
	convergeIn time.Duration
	last       struct {
		at        time.Time
		completed int64
	}
}

// reading is a reading of all counters at one time.
type reading struct {
	at                         time.Time
	completed, failed, refused int64
	cpu                        time.Duration
	written                    diskBytes
	stats                      Stats
	ticks                      cpuTicks
}

func (r *logRun) read() (n reading) {
	n.completed, n.failed, n.refused = r.g.progress()
	n.at, n.cpu, n.written = time.Now(), CPUTime(), bytesWritten(r.Dir, 0)
	n.stats, n.ticks = r.cluster.Stats(), readCPUTicks()
	return n
}

func (r *logRun) run(ctx context.Context) (*LogResult, error) {
	r.began = time.Now()
	r.report("starting")
	if err := awaitLeader(ctx, r.cluster); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Protocol, err)
	}
	if r.Load.Idle {
		return r.idle(ctx)
	}
	// The load outlives an interrupt, to be drained; it stops on its own when it stalls.
	loadCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r.g = newGenerator(r.cluster, r.Load)
	r.g.start(loadCtx)
	r.began = time.Now()
	interrupted := r.sleep(ctx, r.Load.Warmup, "warming up") != nil
	from := r.read()
	r.g.from.Store(r.g.now())
	if !interrupted {
		interrupted = r.sleep(ctx, r.Load.Duration, "measuring") != nil
	}
	r.g.to.Store(r.g.now())
	to := r.read()
	leader := r.cluster.Leader()
	if err := r.g.finish(); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Protocol, r.explain(err))
	}
	if to.completed-to.failed == from.completed-from.failed {
		if interrupted {
			return nil, fmt.Errorf("%s: interrupted before anything was measured", r.Protocol)
		}
		return nil, fmt.Errorf("%s: %w", r.Protocol, r.explain(errors.New("no command completed")))
	}
	result := r.result(from, to, leader)
	result.Interrupted = interrupted
	r.report("verifying")
	result.Violations = r.verify(context.WithoutCancel(ctx))
	result.Verified = len(result.Violations) == 0
	return result, nil
}

// explain adds the error of a command to err, if one failed.
func (r *logRun) explain(err error) error {
	if sample := r.g.errorSample(); sample != nil {
		return fmt.Errorf("%w (a command failed: %w)", err, sample)
	}
	return err
}

// sleep waits and reports the progress; it returns ctx's error if that ends first.
func (r *logRun) sleep(ctx context.Context, d time.Duration, phase string) error {
	end := time.NewTimer(d)
	defer end.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-end.C:
			return nil
		case <-tick.C:
			r.report(phase)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *logRun) report(phase string) {
	if r.Progress == nil {
		return
	}
	p := Progress{
		Protocol: r.Protocol, Phase: phase, Elapsed: time.Since(r.began), Whole: r.Load.Warmup + r.Load.Duration,
	}
	if r.g != nil {
		p.Completed, _, _ = r.g.progress()
		now := time.Now()
		if !r.last.at.IsZero() {
			p.PerSecond = float64(p.Completed-r.last.completed) / now.Sub(r.last.at).Seconds()
		}
		r.last.at, r.last.completed = now, p.Completed
	}
	r.Progress(p)
}

// result computes the figures from two readings.
func (r *logRun) result(from, to reading, leader int) *LogResult {
	commands := (to.completed - to.failed) - (from.completed - from.failed)
	seconds := to.at.Sub(from.at).Seconds()
	hist := r.g.latencies()
	perOp := func(v float64) float64 { return v / float64(commands) }
	out := &LogResult{
		Figures: Figures{
			Protocol: r.Protocol, Nodes: r.Nodes, Payload: r.Load.Payload,
			ThroughputPS: float64(commands) / seconds,
			LatencyMS:    latencyOf(hist),
			Errors:       to.failed - from.failed,
			CPUMicrosOp:  perOp(float64((to.cpu - from.cpu).Nanoseconds()) / 1000),
			DiskBytesOp:  perOp(to.written.since(from.written)),
			FsyncsPS:     float64(to.stats.Fsyncs-from.stats.Fsyncs) / seconds,
			DurationS:    seconds,
			Commands:     commands,
			CPUShares:    from.ticks.shares(to.ticks, to.cpu-from.cpu),
		},
		Mode: r.Load.Mode(), Inflight: r.Load.Inflight, Proposers: r.Load.Proposers, RatePS: r.Load.Rate,
		WarmupS: r.Load.Warmup.Seconds(), Refused: to.refused - from.refused, LatencySamples: hist.TotalCount(),
		Settings: r.Settings, DataDir: filepath.Clean(r.Dir), Machine: DescribeMachine(r.Dir),
		Date: from.at.UTC().Truncate(time.Second),
	}
	if leader >= 0 {
		out.LeaderEgress = perOp(float64(to.stats.EgressBytes[leader] - from.stats.EgressBytes[leader]))
	}
	out.ThroughputSpread = [2]float64{out.ThroughputPS, out.ThroughputPS}
	if err := r.g.errorSample(); err != nil {
		out.ErrorSample = err.Error()
	}
	return out
}
