package paper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/internal/member/damage"
	"github.com/braidlog/braid/internal/ports"
	"github.com/braidlog/braid/internal/registry"
)

// Sample has the measurements of one run.
type Sample map[Metric]float64

// Target is a running cluster that does work. Its methods are not called concurrently.
type Target interface {
	// Run does the work and measures it.
	Run(ctx context.Context, w Work) (Sample, error)
	// Check reports differences between the members since the cluster began.
	Check(ctx context.Context) error
	Close() error
}

// Opener starts a cluster in an empty directory and returns when it is ready.
type Opener func(ctx context.Context, dir string, s Setup) (Target, error)

// Open starts clusters according to their setups; see [Config.Member].
func Open(command []string) Opener {
	return func(ctx context.Context, dir string, s Setup) (Target, error) {
		if s.Bare {
			return openBare(s)
		}
		if s.Protocol != "" && !bench.Own(s.Protocol) {
			return nil, fmt.Errorf("unknown protocol %q", s.Protocol)
		}
		return openBraid(ctx, dir, s, command)
	}
}

const (
	// defaultHeartbeat is longer than braid's: waiting clusters should use little CPU.
	defaultHeartbeat = 250 * time.Millisecond
	electionTimeout  = 1250 * time.Millisecond
	startTimeout     = 30 * time.Second
	// warmUp is the number of requests to a new cluster before any are measured.
	warmUp = 64
	// cacheBytes is the size of a member's cache of whole bodies.
	cacheBytes = 32 << 20
)

// braidTarget is a cluster of braid's, with all members in this process, or each in a separate one: real files, real
// fsyncs and loopback TCP.
type braidTarget struct {
	dir     string
	command []string // of a member's process
	setup   Setup
	net     string // the current link emulation
	members []*member
	sent    uint64 // commands so far
	// applied is the number of them that are known to have taken effect. Invariant: ≤ sent, and equal to it unless
	// members were stopped.
	applied uint64
	filled  bool // every key has a value
	broken  bool // a run failed: the outcome of its commands is unknown
	moments []Moment
	marks   []Mark
	wrong   []string // what contradicts the history of the commands
}

// member is one of a cluster, which can be stopped and started again.
type member struct {
	options   braid.Options
	addresses []string // one for each network card
	node      node     // nil while stopped
	door      door     // the same for clients, which run concurrently with starts and stops
	machine   *machine
	reader    reader
}

// node is the part of a running member that a cluster uses.
type node interface {
	proposer
	Propose(ctx context.Context, command []byte) (any, error)
	ProposeWith(ctx context.Context, command, body []byte, o braid.ProposeOptions) (any, error)
	Ask(ctx context.Context, to braid.MemberID, request []byte) ([]byte, error)
	TransferLeader(ctx context.Context, to braid.MemberID) error
	SetNet(net string) error
	Status() braid.Status
	Err() error
	Close() error
}

func openBraid(ctx context.Context, dir string, s Setup, command []string) (Target, error) {
	t := &braidTarget{dir: dir, command: command, setup: s, net: s.Net}
	if err := t.open(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if _, err := t.awaitLeader(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if err := t.warmUp(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("warming up: %w", err), t.Close())
	}
	return t, nil
}

// warmUp has the cluster apply some commands.
func (t *braidTarget) warmUp(ctx context.Context) error {
	if t.setup.Processes { // their state machines have no bells
		return errors.Join(t.reconnect(ctx), t.converge(ctx))
	}
	for try := 1; ; try++ {
		_, err := t.run(ctx, Work{Requests: warmUp, Payload: numberBytes}) // a map ignores such commands
		if !errors.Is(err, errLeaderChanged) || try == attempts {
			return err
		}
	}
}

func (t *braidTarget) open() error {
	n, cards := cmp.Or(t.setup.Members, 3), max(1, t.setup.Cards)
	// While a member is stopped its ports must not be taken by outgoing connections.
	free, err := ports.Free("127.0.0.1", n*cards)
	if err != nil {
		return err
	}
	var list []braid.Member
	for i := range n {
		name := fmt.Sprintf("m%d", i+1)
		l, m := braid.Member{ID: braid.MemberIDOf(name, "paper"), Name: name, Learner: i >= n-t.setup.Learners}, &member{}
		for card := range cards {
			address := fmt.Sprintf("127.0.0.1:%d", free[i*cards+card])
			l.PeerURLs, m.addresses = append(l.PeerURLs, "http://"+address), append(m.addresses, address)
		}
		list, t.members = append(list, l), append(t.members, m)
	}
	for i, m := range t.members {
		o, err := t.setup.options()
		if err != nil {
			return err
		}
		o.Self, o.Members, o.Cluster = list[i].ID, slices.Clone(list), braid.ClusterIDOf(list, "paper")
		o.Dir, o.Listen, o.Answer = filepath.Join(t.dir, list[i].Name), m.addresses, m.reader.answer
		m.options = o
		if err := t.start(m); err != nil {
			return err
		}
	}
	return nil
}

// start starts a member, or starts it again where it was stopped.
func (t *braidTarget) start(m *member) error {
	start := m.start
	if t.setup.Processes {
		start = func(s Setup) error { return m.startProcess(s, t.command) }
	}
	if err := start(t.setup); err != nil {
		return err
	}
	m.door.set(m.node)
	return nil
}

func (m *member) start(s Setup) error {
	m.machine = newMachine(s.ApplyCost)
	m.machine.positions = s.Positions
	m.machine.store.values = make([][]byte, s.Keys)
	if s.HTTP {
		n, err := m.machine.openWeb(m.options, s)
		if err == nil {
			m.node = n // never a typed nil
			m.reader.serve(n.log, m.machine)
		}
		return err
	}
	n, err := m.machine.open(m.options, s)
	if err != nil {
		return err
	}
	m.node = n
	if s.keyed() {
		m.node = keyed{n}
	}
	m.reader.serve(n, m.machine)
	return nil
}

func (m *member) stop() error {
	if m.node == nil {
		return nil
	}
	n := m.node
	m.node = nil
	m.door.set(nil)
	return errors.Join(n.Err(), n.Close())
}

// options are the options that all members share.
func (s Setup) options() (braid.Options, error) {
	heartbeat := cmp.Or(s.Heartbeat, defaultHeartbeat)
	o := braid.Options{
		Heartbeat: heartbeat, ElectionTimeout: max(electionTimeout, 5*heartbeat),
		Limits: braid.Limits{SnapshotBytes: s.SnapshotBytes, BodyCacheBytes: cacheBytes},
		Logger: slog.New(slog.DiscardHandler),
	}
	how := bench.Settings{
		NoBatching: s.NoBatching, NoPipeline: s.NoPipeline, NoParallelAppend: s.NoParallelAppend,
		NoAsyncApply:     s.NoAsyncApply,
		MaxBatchCommands: s.BatchCommands, PipelineDepth: s.Depth, Values: s.Values, Cards: s.Cards, Net: s.Net,
	}
	err := how.Apply(s.shape().Protocol, &o)
	if d := time.Duration(s.Haste); d > 1 {
		x := &o.Experiment
		x.FitLasts, x.FitWaits, x.FitAvoids = 10*time.Second/d, 30*time.Second/d, 10*time.Minute/d
	}
	return o, err
}

// shape is the Shape with the setup's protocol.
func (s *Setup) shape() bench.Shape {
	return bench.Shape{Protocol: cmp.Or(s.Protocol, "raft"), Values: s.Values}
}

// groups is the number of groups of keys; 0: there is one order.
func (s *Setup) groups() int {
	shape := s.shape()
	return shape.Groups(cmp.Or(s.Members, 3))
}

// byKey reports whether members order only commands with a common key.
func (s *Setup) byKey() bool { return registry.Find(s.shape().Protocol).Core.Judged.ByKey }

// roams reports whether leaders move to the members that ask for them.
func (s *Setup) roams() bool { return registry.Find(s.shape().Protocol).Moves() }

// keyed reports whether commands must have the keys that they touch.
func (s *Setup) keyed() bool { return s.groups() > 0 || s.byKey() }

// proposers are the members at which clients propose, by Place.
func (t *braidTarget) proposers(leader *member, at Place) (out []proposer) {
	if shape := t.setup.shape(); at == AtLeader && !shape.Spread() {
		return []proposer{leader.node}
	}
	for _, m := range t.members {
		if m.node != nil && (at != AtFollowers || m != leader) {
			out = append(out, m.node)
		}
	}
	return out
}

// awaitLeader returns the member that reports itself as leader: of the first instance, if there are several. Then all
// instances have the intended leaders.
func (t *braidTarget) awaitLeader(ctx context.Context) (*member, error) {
	return t.await(ctx, func(*member) bool { return true })
}

// await returns the member that leads, if it is a wanted one.
func (t *braidTarget) await(ctx context.Context, want func(*member) bool) (*member, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	shape := t.setup.shape()
	for {
		for _, m := range t.members {
			if m.node == nil {
				continue
			}
			if s := m.node.Status(); s.IsLeader() && t.settled(&shape, &s) && want(m) {
				return m, nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("no leader: %w", ctx.Err())
		}
	}
}

// settled reports whether every instance has the leader that its setup wants. While members are stopped, any leader
// counts.
func (t *braidTarget) settled(shape *bench.Shape, s *braid.Status) bool {
	for _, m := range t.members {
		if m.node == nil {
			return true
		}
	}
	return shape.LeadersInPlace(s)
}

// Check implements [Target]: all members applied all commands, in the same order. After a
// run that failed there is nothing to compare with.
func (t *braidTarget) Check(context.Context) error {
	if t.broken {
		return nil
	}
	if n := len(t.wrong); n > 0 {
		return fmt.Errorf("%d contradictions to the history: %s …", n, strings.Join(t.wrong[:min(n, 3)], "; "))
	}
	digests, err := t.digests()
	if err != nil {
		return err
	}
	count, hash := digests[0].Count, digests[0].Hash
	if count < t.applied || count > t.sent {
		return fmt.Errorf("member 1 applied %d commands: %d were sent, of which %d took effect", count, t.sent, t.applied)
	}
	for i, d := range digests {
		if d.Count != count {
			return fmt.Errorf("member %d applied %d of %d commands", i+1, d.Count, count)
		}
		if d.Hash != hash {
			return fmt.Errorf("members 1 and %d applied %d commands in different orders", i+1, count)
		}
	}
	return nil
}

// digests are the digests of the members' applied commands.
func (t *braidTarget) digests() ([]Digest, error) {
	all := make([]Digest, len(t.members))
	var err error
	for i, m := range t.members {
		if p, ok := m.node.(*process); ok {
			if all[i], err = call[Digest](context.Background(), p, "Digest", struct{}{}); err != nil {
				return nil, fmt.Errorf("what member %d applied: %w", i+1, err)
			}
			continue
		}
		all[i].Count, all[i].Hash = m.machine.m.Digest()
	}
	return all, nil
}

// Close implements [Target] and removes the members' files.
func (t *braidTarget) Close() error {
	return errors.Join(stopAll(t.members), os.RemoveAll(t.dir))
}

func stopAll(members []*member) error {
	errs := make([]error, len(members))
	var stopping sync.WaitGroup
	for i, m := range members {
		stopping.Go(func() { errs[i] = m.stop() })
	}
	stopping.Wait()
	return errors.Join(errs...)
}

// checkSpace refuses to start if the file system of dir has no space for the clusters of these
// cases, in a given number of rounds.
func checkSpace(dir string, cases []Case, rounds int) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	clusters, need := spaceFor(cases, rounds)
	if free := int64(fs.Bavail) * int64(fs.Bsize); free < need {
		return fmt.Errorf("%d clusters need %d MiB in %s, and only %d MiB are free: give another directory", clusters,
			need>>20, dir, free>>20)
	}
	return nil
}

// spaceFor is the number of clusters of the cases, and the maximal disk space that they need.
func spaceFor(cases []Case, rounds int) (clusters int, need int64) {
	bodies := map[Setup]int64{} // bytes that are written
	logs := map[Setup]bool{}    // of cases that write for a time, with an unknown number of bytes
	for i := range cases {
		c := &cases[i]
		n := int64(c.Work.Requests) * int64(c.Work.Body) * int64(rounds*max(1, c.Times))
		if c.Work.For > 0 && c.Work.Body > 0 {
			n = math.MaxInt32
		}
		bodies[c.Setup] += n
		logs[c.Setup] = logs[c.Setup] || c.Work.For > 0 && c.Work.Body == 0
	}
	for s, bytes := range bodies {
		snapshot := cmp.Or(int64(s.SnapshotBytes), 256<<20)
		segment := damage.SegmentBytes(snapshot) // a member reserves one for its log, and one for bodies if it gets any
		each, kept := segment, 2*snapshot        // older data is removed
		if bytes > 0 {
			each += segment + min(bytes, kept)
		}
		if logs[s] {
			each += kept
		}
		need += int64(cmp.Or(s.Members, 3)) * each * 5 / 4
	}
	return len(bodies), need
}
