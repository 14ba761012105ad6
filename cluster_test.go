package braid_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/ports"
	"github.com/braidlog/braid/internal/testsize"
)

// counts is a state machine for tests: it counts how often each command was applied.
type counts struct {
	mu      sync.Mutex
	applied map[string]int
	last    braid.Position
	// before, if set, is called with each command before it is applied.
	before func(command string)
}

func newCounts() *counts { return &counts{applied: map[string]int{}} }

func (l *counts) Apply(commands []braid.Command) error {
	l.mu.Lock()
	before := l.before
	l.mu.Unlock()
	for i := range commands {
		if before != nil {
			before(string(commands[i].Data))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range commands {
		if commands[i].Position <= l.last {
			return fmt.Errorf("position %d after %d", commands[i].Position, l.last)
		}
		l.last = commands[i].Position
		l.applied[string(commands[i].Data)]++
		commands[i].Result = len(l.applied)
	}
	return nil
}

func (l *counts) Snapshot() (braid.Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return countsView(maps.Clone(l.applied)), nil
}

func (l *counts) Restore(r io.Reader) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.applied, l.last = map[string]int{}, 0
	return json.NewDecoder(r).Decode(&l.applied)
}

func (l *counts) count(command string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.applied[command]
}

type countsView map[string]int

func (v countsView) WriteTo(_ context.Context, w io.Writer) error {
	return json.NewEncoder(w).Encode(map[string]int(v))
}
func (v countsView) Close() error { return nil }

// testTimeout is how long a test waits for what should take a moment.
const testTimeout = time.Minute

// cluster is members in this process, on loopback, each with a directory of its own.
type cluster struct {
	t       testing.TB
	members []braid.Member
	dirs    map[braid.MemberID]string
	nodes   map[braid.MemberID]*braid.Node
	counts  map[braid.MemberID]*counts
	tune    func(*braid.Options)
	how     braid.ProposeOptions // of what fill proposes
}

func newCluster(t testing.TB, size int, tune func(*braid.Options)) *cluster {
	c := newMembers(t, size, tune)
	for _, m := range c.members {
		c.start(m, false)
	}
	return c
}

// newMembers is newCluster without a start.
func newMembers(t testing.TB, size int, tune func(*braid.Options)) *cluster {
	testsize.Long(t)
	c := &cluster{t: t, tune: tune, dirs: map[braid.MemberID]string{}, nodes: map[braid.MemberID]*braid.Node{}, counts: map[braid.MemberID]*counts{}}
	for i := range size {
		c.members = append(c.members, braid.Member{ID: braid.MemberID(i + 1), PeerURLs: []string{freeURL(t)}})
		c.dirs[braid.MemberID(i+1)] = t.TempDir()
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			n.Close()
		}
	})
	return c
}

// freeURL is an address that stays free while no member listens there: outgoing connections
// cannot take it.
func freeURL(t testing.TB) string {
	free, err := ports.Free("127.0.0.1", 1)
	require.NoError(t, err)
	return fmt.Sprintf("http://127.0.0.1:%d", free[0])
}

func (c *cluster) start(m braid.Member, join bool) {
	c.t.Helper()
	require.NoError(c.t, c.open(m, join))
}

// open starts a member, if that is possible.
func (c *cluster) open(m braid.Member, join bool) error {
	o := braid.Options{
		Self: m.ID, Cluster: 42, Dir: c.dirs[m.ID], Members: append([]braid.Member(nil), c.members...), Join: join,
		Listen:    []string{m.PeerURLs[0][len("http://"):]},
		Heartbeat: 50 * time.Millisecond, ElectionTimeout: 500 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(testWriter{c.t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if c.tune != nil {
		c.tune(&o)
	}
	sm := newCounts()
	n, err := braid.Open(o, sm)
	if err == nil {
		c.nodes[m.ID], c.counts[m.ID] = n, sm
	}
	return err
}

// testWriter logs to the test; lines after its end are dropped.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	defer func() { _ = recover() }()
	w.t.Log(string(bytes.TrimSpace(b)))
	return len(b), nil
}

func (c *cluster) stop(id braid.MemberID) {
	require.NoError(c.t, c.nodes[id].Close())
	delete(c.nodes, id)
}

// leader waits until every running member knows the same running leader.
func (c *cluster) leader() braid.MemberID {
	c.t.Helper()
	var leader braid.MemberID
	require.Eventually(c.t, func() bool {
		leader = 0
		for _, n := range c.nodes {
			st := n.Status()
			if c.nodes[st.Leader()] == nil || leader != 0 && st.Leader() != leader {
				return false
			}
			leader = st.Leader()
		}
		return true
	}, testTimeout, 5*time.Millisecond, "no common leader")
	return leader
}

func (c *cluster) any() *braid.Node {
	for _, m := range c.members {
		if n := c.nodes[m.ID]; n != nil {
			return n
		}
	}
	c.t.Fatal("no member runs")
	return nil
}

func (c *cluster) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	c.t.Cleanup(cancel)
	return ctx
}

// unlinked waits until the members that run know that their links with one that was stopped are down.
func (c *cluster) unlinked(id braid.MemberID) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		for _, n := range c.nodes {
			linked := func(p braid.PeerStats) bool { return p.ID == id && p.Connected }
			if slices.ContainsFunc(n.Status().Links.Peers, linked) {
				return false
			}
		}
		return true
	}, testTimeout, 5*time.Millisecond, "the link is down")
}

// changed asks a member for a membership change until it is active. A refusal that lets the same
// be tried again is one: after a burst of commands members may be behind for a moment.
func changed(t testing.TB, n *braid.Node, changes ...braid.Change) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	var err error
	require.Eventually(t, func() bool {
		err = n.ChangeMembers(ctx, changes...)
		var refused *braid.RefusedError
		return !errors.As(err, &refused) || !refused.Retryable()
	}, testTimeout, 20*time.Millisecond, "the membership is not changed")
	require.NoError(t, err)
}

// fill proposes commands through all members at once and returns those acknowledged.
func (c *cluster) fill(name string, count int) []string {
	c.t.Helper()
	var mu sync.Mutex
	var acked []string
	var wg sync.WaitGroup
	for id, n := range c.nodes {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range count {
				command := fmt.Sprintf("%s-%d-%d", name, id, i)
				if _, err := n.ProposeWith(c.ctx(), []byte(command), nil, c.how); err == nil {
					mu.Lock()
					acked = append(acked, command)
					mu.Unlock()
				}
			}
		}()
	}
	wg.Wait()
	return acked
}

// fillPast proposes until a member's log is cut behind what another one had when it stopped. The
// leader keeps log for a member as long as it seems to be there, and cuts when there is a snapshot.
func (c *cluster) fillPast(leader braid.MemberID, has braid.Index, name string) (acked []string) {
	c.t.Helper()
	ctx := c.ctx()
	for i := 0; c.nodes[leader].Status().Instances[0].First <= has+1; i++ {
		require.NoError(c.t, ctx.Err(), "the log was not cut")
		acked = append(acked, c.fill(fmt.Sprintf("%s %d", name, i), 100)...)
	}
	return acked
}

// verify demands that every member has every acknowledged command exactly once.
func (c *cluster) verify(acked []string) {
	c.t.Helper()
	for id, n := range c.nodes {
		require.NoError(c.t, n.Read(c.ctx(), braid.ReadOptions{Barrier: c.how.Mode == braid.ModeAccepted}), "member %s", id)
		for _, command := range acked {
			require.Equal(c.t, 1, c.counts[id].count(command), "member %s, command %s", id, command)
		}
	}
}

func TestEveryMemberTakesProposalsAndReads(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.leader()
	acked := c.fill("x", 50)
	require.Len(t, acked, 150)
	c.verify(acked)
}

func TestTheFourOptimisationsCanBeTurnedOff(t *testing.T) {
	t.Parallel()
	for name, tune := range map[string]func(*braid.Options){
		"batching":        func(o *braid.Options) { o.Experiment.NoBatching = true },
		"pipeline":        func(o *braid.Options) { o.Experiment.NoPipeline = true },
		"parallel append": func(o *braid.Options) { o.Experiment.NoParallelAppend = true },
		"asynchronous":    func(o *braid.Options) { o.Experiment.NoAsyncApply = true },
		"all": func(o *braid.Options) {
			o.Experiment.NoBatching, o.Experiment.NoPipeline, o.Experiment.NoParallelAppend, o.Experiment.NoAsyncApply = true, true, true, true
		},
		"all, with woven instances": woven(3, func(o *braid.Options) {
			o.Experiment.NoBatching, o.Experiment.NoPipeline, o.Experiment.NoParallelAppend, o.Experiment.NoAsyncApply = true, true, true, true
		}),
		"woven, with a lease": woven(3, func(o *braid.Options) { o.LeaseReads = true }),
		"tiny frames":         func(o *braid.Options) { o.Experiment.MaxFrameBytes, o.Experiment.MaxBatchBytes = 64, 32 },
		"fixed depth":         func(o *braid.Options) { o.Experiment.PipelineDepth = 4 },
		"reads by a lease":    func(o *braid.Options) { o.LeaseReads = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, tune)
			c.leader()
			c.verify(c.fill("x", 30))
		})
	}
}

func TestNothingIsLostWhenTheLeaderStops(t *testing.T) {
	t.Parallel()
	nothingIsLostWhenTheLeaderStops(newCluster(t, 3, nil))
}

func nothingIsLostWhenTheLeaderStops(c *cluster) {
	leader := c.leader()
	acked := c.fill("before", 20)
	c.stop(leader)
	acked = append(acked, c.fill("after", 20)...)
	require.Len(c.t, acked, 100, "proposals at the others survive the change of leader")
	c.verify(acked)
	c.start(c.members[leader-1], false)
	c.leader()
	c.verify(acked)
}

// restart stops all members and starts them again.
func (c *cluster) restart() {
	c.t.Helper()
	for _, m := range c.members {
		c.stop(m.ID)
	}
	for _, m := range c.members {
		c.start(m, false)
	}
}

func TestEverythingIsThereAfterAFullRestart(t *testing.T) {
	t.Parallel()
	everythingIsThereAfterAFullRestart(newCluster(t, 3, nil))
}

func everythingIsThereAfterAFullRestart(c *cluster) {
	c.leader()
	acked := c.fill("x", 50)
	c.restart()
	c.leader()
	c.verify(acked)
	c.verify(c.fill("y", 10))
}

func TestARestartedMemberServesReadsInAnIdleCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	leader := c.leader()
	acked := c.fill("x", 3)
	follower := leader%3 + 1
	c.stop(follower) // before it could note what is committed
	c.start(c.members[follower-1], false)
	c.verify(acked)
}

func TestALaggardCatchesUpBySnapshot(t *testing.T) {
	t.Parallel()
	aLaggardCatchesUpBySnapshot(newCluster(t, 3, func(o *braid.Options) { o.Limits.SnapshotBytes = 4 << 10 }))
}

func aLaggardCatchesUpBySnapshot(c *cluster) {
	leader := c.leader()
	behind := leader%3 + 1
	has := c.nodes[behind].Status().Instances[0].Last
	c.stop(behind)
	acked := c.fillPast(leader, has, "x")
	c.start(c.members[behind-1], false)
	c.leader()
	c.verify(acked)
	for _, m := range c.members { // and all recover from snapshots
		c.stop(m.ID)
	}
	for _, m := range c.members {
		c.start(m, false)
	}
	c.leader()
	c.verify(acked)
}

func TestMembershipChanges(t *testing.T) {
	t.Parallel()
	testMembershipChanges(newCluster(t, 3, nil))
}

func testMembershipChanges(c *cluster) {
	t := c.t
	c.led()
	acked := c.fill("x", 20)
	fourth := braid.Member{ID: 4, PeerURLs: []string{freeURL(t)}}
	c.dirs[4] = t.TempDir()
	c.members = append(c.members, fourth)

	learner := fourth
	learner.Learner = true
	changed(t, c.any(), braid.Change{Kind: braid.AddLearner, Member: learner})
	c.start(fourth, true)
	changed(t, c.any(), braid.Change{Kind: braid.AddVoter, Member: fourth})
	acked = append(acked, c.fill("y", 20)...)
	c.verify(acked)

	leader := c.leader()
	changed(t, c.nodes[leader], braid.Change{Kind: braid.RemoveMember, Member: braid.Member{ID: leader}})
	c.stop(leader)
	c.leader()
	acked = append(acked, c.fill("z", 20)...)
	c.verify(acked)
	require.Len(t, c.any().Status().Members, 3)

	err := c.any().ChangeMembers(c.ctx(), braid.Change{Kind: braid.AddVoter, Member: braid.Member{ID: leader, PeerURLs: []string{freeURL(t)}}})
	var refused *braid.RefusedError
	require.ErrorAs(t, err, &refused, "ids never come back")
}

// TestAMemberThatWasAwayAnswersALeaderThatItDoesNotKnow: the leader joined meanwhile, and says where
// it is to be found.
func TestAMemberThatWasAwayAnswersALeaderThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.led()
	c.stop(3)
	fourth := braid.Member{ID: 4, PeerURLs: []string{freeURL(t)}}
	c.dirs[4] = t.TempDir()
	first := c.members
	c.members = append(append([]braid.Member(nil), first...), fourth)
	changed(t, c.any(), braid.Change{Kind: braid.AddVoter, Member: fourth})
	c.start(fourth, true)
	require.Eventually(t, func() bool {
		return c.any().TransferLeader(c.ctx(), 4) == nil && c.leader() == 4
	}, testTimeout, 20*time.Millisecond, "the new member leads")
	acked := c.fill("x", 5)
	c.members = first
	c.start(first[2], false)
	c.verify(acked)
}

func TestLeadershipIsHandedOver(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	leader := c.leader()
	to := leader%3 + 1
	deadline := time.Now().Add(testTimeout)
	for err := c.any().TransferLeader(c.ctx(), to); err != nil || c.leader() != to; err = c.any().TransferLeader(c.ctx(), to) {
		// On a busy machine another may be elected meanwhile.
		require.True(t, time.Now().Before(deadline), "leadership did not come to the member that was asked for: %v", err)
	}
	err := c.any().TransferLeader(c.ctx(), 9)
	var refused *braid.RefusedError
	require.ErrorAs(t, err, &refused)
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, func(o *braid.Options) { o.Limits.CommandBytes, o.Limits.PendingBytes = 100, 1000 })
	c.leader()
	_, err := c.any().Propose(c.ctx(), make([]byte, 101))
	require.ErrorIs(t, err, braid.ErrTooLarge)

	dir := c.dirs[1]
	open := func(o braid.Options) error {
		o.Logger = slog.New(slog.DiscardHandler)
		n, err := braid.Open(o, newCounts())
		if err == nil {
			n.Close()
		}
		return err
	}
	require.ErrorContains(t, open(braid.Options{Self: 1, Cluster: 42, Dir: dir, Members: c.members}), "in use")
	c.stop(1)
	require.ErrorContains(t, open(braid.Options{Self: 1, Cluster: 43, Dir: dir, Members: c.members}), "belongs to cluster 2a")
	require.ErrorContains(t, open(braid.Options{Self: 2, Cluster: 42, Dir: dir, Members: []braid.Member{{ID: 2}}}), "belongs to member 1")
	require.ErrorContains(t, open(braid.Options{Self: 2, Cluster: 42, Dir: t.TempDir(), Members: c.members, Listen: []string{"127.0.0.1:0"}}), "do not include")
	require.ErrorContains(t, open(braid.Options{Cluster: 42, Dir: t.TempDir()}), "Self")
	require.ErrorContains(t, open(braid.Options{Self: 1, Cluster: 42, Dir: dir, Members: c.members, Heartbeat: time.Second, ElectionTimeout: time.Second}), "heartbeats")
}
