package paper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench"
)

// Sample is what one run measured.
type Sample map[Metric]float64

// Target is a running cluster that does work. Its methods are not called at once.
type Target interface {
	// Run does the work and measures it.
	Run(ctx context.Context, w Work) (Sample, error)
	// Check reports what the members did not agree on since the cluster began.
	Check(ctx context.Context) error
	Close() error
}

// Opener starts a cluster in an empty directory and returns when it is ready.
type Opener func(ctx context.Context, dir string, s Setup) (Target, error)

// openers are the protocols that experiments can name.
var openers = map[string]Opener{"": openBraid, "raft": openBraid}

// Open starts a cluster as its setup says.
func Open(ctx context.Context, dir string, s Setup) (Target, error) {
	open, ok := openers[s.Protocol]
	if !ok {
		return nil, fmt.Errorf("unknown protocol %q", s.Protocol)
	}
	return open(ctx, dir, s)
}

const (
	// defaultHeartbeat is longer than braid's: the clusters that wait for their turn should
	// not be heard.
	defaultHeartbeat = 250 * time.Millisecond
	electionTimeout  = 1250 * time.Millisecond
	startTimeout     = 30 * time.Second
	// warmUp is how many requests a new cluster gets before anything counts.
	warmUp = 64
	// memberBytes is the disk space that a member sets aside, a segment of its log.
	memberBytes = 64 << 20
)

// braidTarget is a cluster of braid's, with all members in this process: real files, real
// fsyncs and loopback TCP.
type braidTarget struct {
	dir      string
	nodes    []*braid.Node
	machines []*machine
	sent     uint64 // commands so far
	broken   bool   // a run failed: nobody knows what became of its commands
}

func openBraid(ctx context.Context, dir string, s Setup) (Target, error) {
	t := &braidTarget{dir: dir}
	if err := t.open(s); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if _, err := t.awaitLeader(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if _, err := t.Run(ctx, Work{Requests: warmUp}); err != nil {
		return nil, errors.Join(fmt.Errorf("warming up: %w", err), t.Close())
	}
	return t, nil
}

func (t *braidTarget) open(s Setup) error {
	var listeners []net.Listener
	var members []braid.Member
	for i := range cmp.Or(s.Members, 3) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return errors.Join(err, closeAll(listeners))
		}
		name := fmt.Sprintf("m%d", i+1)
		listeners = append(listeners, l)
		members = append(members, braid.Member{ID: braid.MemberIDOf(name, "paper"), Name: name, PeerURLs: []string{"http://" + l.Addr().String()}})
	}
	for i, m := range members {
		o := s.options()
		o.Self, o.Members, o.Cluster = m.ID, slices.Clone(members), braid.ClusterIDOf(members, "paper")
		o.Dir, o.PeerListeners = filepath.Join(t.dir, m.Name), listeners[i:i+1]
		sm := newMachine(s.ApplyCost)
		node, err := braid.Open(o, sm)
		if err != nil {
			return errors.Join(err, closeAll(listeners[i+1:]))
		}
		t.nodes, t.machines = append(t.nodes, node), append(t.machines, sm)
	}
	return nil
}

func closeAll(listeners []net.Listener) error {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// options are the options that all members share.
func (s Setup) options() braid.Options {
	heartbeat := cmp.Or(s.Heartbeat, defaultHeartbeat)
	return braid.Options{
		Heartbeat: heartbeat, ElectionTimeout: max(electionTimeout, 5*heartbeat),
		NoBatching: s.NoBatching, NoPipeline: s.NoPipeline, NoParallelAppend: s.NoParallelAppend, NoAsyncApply: s.NoAsyncApply,
		MaxBatchCommands: s.BatchCommands, PipelineDepth: s.Depth, Net: s.Net,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// awaitLeader returns the member that leads, as it says itself.
func (t *braidTarget) awaitLeader(ctx context.Context) (*braid.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, n := range t.nodes {
			if s := n.Status(); s.IsLeader() {
				return n, nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("no leader: %w", ctx.Err())
		}
	}
}

// Run implements [Target].
func (t *braidTarget) Run(ctx context.Context, w Work) (Sample, error) {
	s, err := t.run(ctx, w)
	t.broken = t.broken || err != nil
	return s, err
}

func (t *braidTarget) run(ctx context.Context, w Work) (Sample, error) {
	leader, err := t.awaitLeader(ctx)
	if err != nil {
		return nil, err
	}
	b := newBurst(w, leader, t.sent)
	t.sent += uint64(w.Requests)
	for _, m := range t.machines {
		m.ringAt(t.sent)
	}
	before, cpu, syncs := leader.Status(), bench.CPUTime(), t.syncTime()
	commits := watchCommits(leader)
	err = b.run(ctx)
	if err != nil {
		commits.stop()
		return nil, err
	}
	last, err := t.awaitBells(ctx)
	if err != nil {
		commits.stop()
		return nil, err
	}
	after := leader.Status()
	s := sampleOf(b, last, &before, &after, bench.CPUTime()-cpu)
	s[MemberSync] = ms(t.syncTime()-syncs) / float64(len(t.nodes))
	s[Replicated] = ms(commits.stop().Sub(b.began))
	if after.Instances[0].Term != before.Instances[0].Term || !after.IsLeader() {
		return nil, errors.New("the leader changed during the run")
	}
	return s, nil
}

// syncTime is how long all members together have taken to make their logs durable.
func (t *braidTarget) syncTime() (sum time.Duration) {
	for _, n := range t.nodes {
		s := n.Status()
		sum += s.Log.SyncTime
	}
	return sum
}

// sampleOf turns what was read into figures.
func sampleOf(b *burst, last time.Time, before, after *braid.Status, cpu time.Duration) Sample {
	latencies := b.latencies()
	n, runtime := float64(b.work.Requests), last.Sub(b.began)
	s := Sample{
		Runtime: ms(runtime), Throughput: n / runtime.Seconds(),
		P50: ms(quantile(latencies, 0.5)), P99: ms(quantile(latencies, 0.99)),
		Syncs:    float64(after.Log.Syncs - before.Log.Syncs),
		SyncTime: ms(after.Log.SyncTime - before.Log.SyncTime),
		CPU:      float64(cpu.Microseconds()) / n,
	}
	if entries := after.Commits - before.Commits; entries > 0 {
		s[PerEntry] = n / float64(entries)
	}
	if s[Syncs] > 0 {
		s[SyncMean] = s[SyncTime] / s[Syncs]
	}
	return s
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// awaitBells returns when the last member had applied everything.
func (t *braidTarget) awaitBells(ctx context.Context) (last time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, stallTimeout)
	defer cancel()
	for i, m := range t.machines {
		select {
		case at := <-m.bell:
			if at.After(last) {
				last = at
			}
		case <-ctx.Done():
			return last, fmt.Errorf("member %d has not applied everything: %w", i+1, ctx.Err())
		}
	}
	return last, nil
}

// commitWatch notes when a member's count of committed entries rose last.
type commitWatch struct {
	quit chan struct{}
	done sync.WaitGroup
	last time.Time
}

// watchInterval is how exactly a commitWatch knows.
const watchInterval = 250 * time.Microsecond

func watchCommits(n *braid.Node) *commitWatch {
	w := &commitWatch{quit: make(chan struct{}), last: time.Now()}
	s := n.Status()
	seen := s.Commits
	w.done.Go(func() {
		tick := time.NewTicker(watchInterval)
		defer tick.Stop()
		for ended := false; !ended; {
			select {
			case <-tick.C:
			case <-w.quit:
				ended = true
			}
			if s := n.Status(); s.Commits != seen {
				seen, w.last = s.Commits, time.Now()
			}
		}
	})
	return w
}

// stop ends the watch and returns when the count rose last.
func (w *commitWatch) stop() time.Time {
	close(w.quit)
	w.done.Wait()
	return w.last
}

// Check implements [Target]: all members applied all commands, in the same order. After a
// run that failed there is nothing to compare with.
func (t *braidTarget) Check(context.Context) error {
	if t.broken {
		return nil
	}
	_, want := t.machines[0].m.Digest()
	for i, m := range t.machines {
		count, hash := m.m.Digest()
		if count != t.sent {
			return fmt.Errorf("member %d applied %d of %d commands", i+1, count, t.sent)
		}
		if hash != want {
			return fmt.Errorf("members 1 and %d applied %d commands in different orders", i+1, count)
		}
	}
	return nil
}

// Close implements [Target] and removes the members' files.
func (t *braidTarget) Close() error {
	errs := make([]error, len(t.nodes))
	var closing sync.WaitGroup
	for i, n := range t.nodes {
		closing.Go(func() { errs[i] = errors.Join(n.Err(), n.Close()) })
	}
	closing.Wait()
	return errors.Join(errors.Join(errs...), os.RemoveAll(t.dir))
}

// checkSpace refuses to start if the file system of dir has no room for clusters of these
// setups.
func checkSpace(dir string, setups []Setup) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	need := int64(0)
	for _, s := range setups {
		need += int64(cmp.Or(s.Members, 3)) * memberBytes * 5 / 4
	}
	if free := int64(fs.Bavail) * fs.Bsize; free < need {
		return fmt.Errorf("%d clusters need %d MiB in %s, and only %d MiB are free: give another directory", len(setups), need>>20, dir, free>>20)
	}
	return nil
}
