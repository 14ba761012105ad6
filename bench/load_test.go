package bench

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/testsize"
)

// fakeCluster applies commands in order on all its machines, in one goroutine with a little delay, with faults to be
// found.
type fakeCluster struct {
	machines []*Machine
	queue    chan fakeCommand
	stopped  sync.WaitGroup
	inFlight atomic.Int64
	most     atomic.Int64
	n        int // commands taken, by the loop

	drop, twice, swap, fail func(n int) bool // by the number of the command
	refuse                  func() error
	stall                   bool
}

type fakeCommand struct {
	data []byte
	done func(any, error)
}

func (f *fakeCluster) open(c ClusterConfig) (Cluster, error) {
	f.machines, f.queue = c.Machines, make(chan fakeCommand, 1<<17)
	f.stopped.Go(f.loop)
	return f, nil
}

func (f *fakeCluster) loop() {
	for c := range f.queue {
		f.n++
		if f.stall {
			continue
		}
		runtime.Gosched()
		var err error
		if f.fail != nil && f.fail(f.n) {
			err = errors.New("made up")
		}
		for i, m := range f.machines {
			last := i == len(f.machines)-1
			switch {
			case err != nil:
			case last && f.drop != nil && f.drop(f.n):
			case last && f.swap != nil && f.swap(f.n):
				next, ok := <-f.queue
				if ok {
					m.ApplyAll([][]byte{next.data, c.data})
					for _, other := range f.machines[:i] {
						other.ApplyAll([][]byte{next.data})
					}
					f.answer(next, nil)
				}
			case f.twice != nil && f.twice(f.n):
				m.ApplyAll([][]byte{c.data, c.data})
			default:
				m.ApplyAll([][]byte{c.data})
			}
		}
		f.answer(c, err)
	}
}

func (f *fakeCluster) answer(c fakeCommand, err error) {
	f.inFlight.Add(-1)
	c.done(nil, err)
}

func (f *fakeCluster) ProposeAsync(command []byte, done func(any, error)) error {
	if f.refuse != nil {
		if err := f.refuse(); err != nil {
			return err
		}
	}
	n := f.inFlight.Add(1)
	for {
		most := f.most.Load()
		if n <= most || f.most.CompareAndSwap(most, n) {
			break
		}
	}
	f.queue <- fakeCommand{bytes.Clone(command), done}
	return nil
}

func (f *fakeCluster) Propose(ctx context.Context, command []byte) error {
	return ProposeAndWait(ctx, f.ProposeAsync, command)
}

func (f *fakeCluster) Leader() int { return 0 }
func (f *fakeCluster) Stats() Stats {
	return Stats{EgressBytes: make([]int64, len(f.machines))}
}
func (f *fakeCluster) Close() error { close(f.queue); f.stopped.Wait(); return nil }

// every returns true for every n-th command.
func every(n int) func(int) bool { return func(i int) bool { return i%n == 0 } }

func fakeConfig(t *testing.T, l Load) LogConfig {
	l.Payload = 16
	if l.Duration == 0 {
		l.Duration = 300 * time.Millisecond
	}
	return LogConfig{Protocol: "raft", Nodes: 3, Load: l, Dir: t.TempDir()}
}

func TestLoadModes(t *testing.T) {
	testsize.Long(t)
	for _, l := range []Load{{Inflight: 1}, {Inflight: 7}, {Inflight: 1000}, {Inflight: 100_000}, {Proposers: 1},
		{Proposers: 300}, {Inflight: 1000, Rate: 2000}} {
		f := &fakeCluster{}
		r, err := RunLogOn(context.Background(), fakeConfig(t, l), f.open)
		if err != nil {
			t.Errorf("%+v: %v", l, err)
			continue
		}
		if !r.Verified || r.Commands == 0 || r.Errors != 0 || r.LatencySamples == 0 {
			t.Errorf("%+v: %d commands, %d errors, %d latencies, verified %v: %v", l, r.Commands, r.Errors, r.LatencySamples,
				r.Verified, r.Violations)
		}
		if most := f.most.Load(); most > int64(l.concurrency()) {
			t.Errorf("%+v: %d commands were in flight", l, most)
		}
	}
}

// Violations of a cluster must be found.
func TestFaultsAreFound(t *testing.T) {
	for _, c := range []struct {
		name string
		f    *fakeCluster
		want string
	}{
		{"a member skips a command", &fakeCluster{drop: func(n int) bool { return n == 50 }}, "the members have applied"},
		{"all members apply a command twice", &fakeCluster{twice: every(50)}, "more than once"},
		{"a member swaps two commands", &fakeCluster{swap: func(n int) bool { return n == 50 }}, "not in the same order"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := &logRun{LogConfig: fakeConfig(t, Load{Inflight: 100}), convergeIn: 100 * time.Millisecond}
			for range 3 {
				r.machines = append(r.machines, NewMachine(r.Load.senders()))
			}
			r.cluster, _ = c.f.open(ClusterConfig{Machines: r.machines})
			result, err := r.run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(result.Violations, "; "); result.Verified || !strings.Contains(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

func TestErrorsAndRefusals(t *testing.T) {
	var attempts atomic.Int64
	f := &fakeCluster{
		fail: every(10),
		refuse: func() error {
			if attempts.Add(1)%100 == 0 {
				return errors.New("busy")
			}
			return nil
		},
	}
	r, err := RunLogOn(context.Background(), fakeConfig(t, Load{Inflight: 100}), f.open)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Verified {
		t.Errorf("commands that failed are held against the cluster: %v", r.Violations)
	}
	share := float64(r.Errors) / float64(r.Errors+r.Commands)
	if share < 0.05 || share > 0.15 || r.Refused == 0 || r.ErrorSample == "" {
		t.Errorf("%d of %d commands failed (want a tenth), %d refusals, for example %q", r.Errors, r.Errors+r.Commands,
			r.Refused, r.ErrorSample)
	}
}

// An open loop must count the time that a command waited to be sent.
func TestRateCountsFromWhenDue(t *testing.T) { synctest.Test(t, testRateCountsFromWhenDue) }

func testRateCountsFromWhenDue(t *testing.T) {
	var once sync.Once
	f := &fakeCluster{fail: func(int) bool {
		once.Do(func() { <-time.After(200 * time.Millisecond) })
		return false
	}}
	load := Load{Inflight: 4, Rate: 1000, Duration: 400 * time.Millisecond}
	r, err := RunLogOn(context.Background(), fakeConfig(t, load), f.open)
	if err != nil {
		t.Fatal(err)
	}
	// 200 of about 400 commands were due during the pause; only 4 of them could be sent.
	if r.LatencyMS.P50 > 190 || r.LatencyMS.P90 < 50 {
		t.Errorf("a pause of 200 ms does not show: %+v", r.LatencyMS)
	}
}

func TestInterruptKeepsWhatWasMeasured(t *testing.T) {
	testsize.Long(t)
	ctx, cancel := context.WithCancel(context.Background())
	c := fakeConfig(t, Load{Inflight: 100, Duration: time.Hour})
	c.Progress = func(p Progress) {
		if p.Phase == "measuring" {
			cancel()
		}
	}
	r, err := RunLogOn(ctx, c, (&fakeCluster{}).open)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || r.Commands == 0 || !r.Verified {
		t.Errorf("interrupted %v, %d commands, verified %v", r.Interrupted, r.Commands, r.Verified)
	}
}

func TestLoadValidate(t *testing.T) {
	good := Load{Payload: 16, Inflight: 1, Duration: time.Second}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*Load)
		want   string
	}{
		{func(l *Load) { l.Payload = 0 }, "payload of 0 bytes"},
		{func(l *Load) { l.Payload = 7 }, "at least 8"},
		{func(l *Load) { l.Duration = 0 }, "duration"},
		{func(l *Load) { l.Warmup = -1 }, "warm-up"},
		{func(l *Load) { l.Inflight = 0 }, "in flight"},
		{func(l *Load) { l.Proposers = 5 }, "either proposers or inflight"},
		{func(l *Load) { l.Inflight, l.Proposers = 0, maxSenders+1 }, "proposers"},
		{func(l *Load) { l.Rate, l.Proposers, l.Inflight = 5, 5, 0 }, "closed loop"},
		{func(l *Load) { l.Rate = -1 }, "rate"},
		{func(l *Load) { l.Payload, l.Inflight = 1<<20, 1<<20 }, "MiB"},
	} {
		l := good
		c.change(&l)
		if err := l.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", l, err, c.want)
		}
	}
}

func TestLogConfigValidate(t *testing.T) {
	good := LogConfig{Protocol: "etcd-raft", Nodes: 3, Load: Load{Payload: 16, Inflight: 1, Duration: time.Second}}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	own := slices.Sorted(slices.Values(registry.Names()))
	for _, c := range []struct {
		change func(*LogConfig)
		want   string
	}{
		{func(c *LogConfig) { c.Protocol = "raftt" }, `unknown protocol "raftt": the log benchmark knows ` +
			strings.Join(slices.Concat(own, []string{"etcd-raft", "etcd-raft-packed", "hashicorp-raft"}), ", ")},
		{func(c *LogConfig) { c.Nodes = 0 }, "0 members"},
		{func(c *LogConfig) { c.Settings.MaxBatchBytes = -1 }, "batches"},
		{func(c *LogConfig) { c.Settings.PipelineDepth = -1 }, "pipeline"},
		{func(c *LogConfig) { c.Settings.PipelineDepth, c.Settings.NoPipeline = 3, true }, "no pipeline"},
	} {
		bad := good
		c.change(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

func TestRoundsAlternate(t *testing.T) {
	var order []int
	results, err := Alternate(context.Background(), 3, 3, func(_ context.Context, i int) (int, error) {
		order = append(order, i)
		return 10*i + len(order), nil
	})
	if err != nil || len(results) != 3 || len(results[2]) != 3 {
		t.Fatalf("results %v, error %v", results, err)
	}
	for i, want := range []int{0, 1, 2, 1, 2, 0, 2, 0, 1} {
		if order[i] != want {
			t.Fatalf("the contestants ran in the order %v", order)
		}
	}
}

func TestRatios(t *testing.T) {
	r := ratios([]Figures{
		{Protocol: "a", ThroughputPS: 100, CPUMicrosOp: 1, LatencyMS: Latency{P50: 2, P99: 3}},
		{Protocol: "b", ThroughputPS: 20, CPUMicrosOp: 4, LatencyMS: Latency{P50: 3, P99: 6}},
		{Protocol: "c"},
	})
	if len(r) != 2 || r[0] != (Ratio{Protocol: "b", Throughput: 5, P50: 1.5, P99: 2, CPU: 4}) || r[1].Throughput != 0 {
		t.Errorf("ratios are %+v", r)
	}
}
