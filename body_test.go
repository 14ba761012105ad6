package braid_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/testsize"
)

// shelf is a state machine that keeps bodies under names: a command is a name, and its body
// replaces what stood there. A name without a body is taken off the shelf.
type shelf struct {
	mu   sync.Mutex
	refs map[string]braid.BodyRef
	// replaced are bodies that no one refers to any more.
	replaced []braid.BodyRef
}

func (s *shelf) Apply(commands []braid.Command) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range commands {
		c := &commands[i]
		if old, ok := s.refs[string(c.Data)]; ok {
			s.replaced = append(s.replaced, old)
		}
		if c.Body == nil {
			delete(s.refs, string(c.Data))
			continue
		}
		s.refs[string(c.Data)] = *c.Body
		c.Result = *c.Body
	}
	return nil
}

func (s *shelf) Snapshot() (braid.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return shelfView(maps.Clone(s.refs)), nil
}

func (s *shelf) Restore(r io.Reader) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refs, s.replaced = map[string]braid.BodyRef{}, nil
	return json.NewDecoder(r).Decode(&s.refs)
}

func (s *shelf) LiveBodies(yield func(braid.BodyRef)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.refs)) {
		yield(s.refs[name])
	}
	return nil
}

func (s *shelf) find(name string) (braid.BodyRef, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ref, ok := s.refs[name]
	return ref, ok
}

type shelfView map[string]braid.BodyRef

func (v shelfView) WriteTo(_ context.Context, w io.Writer) error {
	return json.NewEncoder(w).Encode(map[string]braid.BodyRef(v))
}
func (v shelfView) Close() error { return nil }

// library is members in this process that keep shelves.
type library struct {
	t       testing.TB
	members []braid.Member
	dirs    map[braid.MemberID]string
	nodes   map[braid.MemberID]*braid.Node
	shelves map[braid.MemberID]*shelf
	tune    func(*braid.Options)
	how     braid.ProposeOptions
	bodies  map[string][]byte // what every shelf must hold
}

func newLibrary(t testing.TB, size int, tune func(*braid.Options)) *library {
	l := &library{
		t: t, tune: tune, dirs: map[braid.MemberID]string{}, nodes: map[braid.MemberID]*braid.Node{},
		shelves: map[braid.MemberID]*shelf{}, bodies: map[string][]byte{},
	}
	for i := range size {
		l.members = append(l.members, braid.Member{ID: braid.MemberID(i + 1), PeerURLs: []string{freeURL(t)}})
		l.dirs[braid.MemberID(i+1)] = t.TempDir()
	}
	for _, m := range l.members {
		l.start(m, false)
	}
	t.Cleanup(func() {
		for _, n := range l.nodes {
			n.Close()
		}
	})
	return l
}

func (l *library) start(m braid.Member, join bool) {
	testsize.Long(l.t)
	o := braid.Options{
		Self: m.ID, Cluster: 43, Dir: l.dirs[m.ID], Members: l.members, Join: join,
		Listen:    []string{m.PeerURLs[0][len("http://"):]},
		Protocol:  braid.CRaft{K: min(len(l.members)-1, 2)}, // by default three members would not code
		Heartbeat: 50 * time.Millisecond, ElectionTimeout: 500 * time.Millisecond, Limits: braid.Limits{BodyCacheBytes: 1},
		Logger: slog.New(slog.NewTextHandler(testWriter{l.t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if l.tune != nil {
		l.tune(&o)
	}
	sm := &shelf{refs: map[string]braid.BodyRef{}}
	n, err := braid.Open(o, sm)
	require.NoError(l.t, err)
	l.nodes[m.ID], l.shelves[m.ID] = n, sm
}

func (l *library) stop(id braid.MemberID) {
	require.NoError(l.t, l.nodes[id].Close())
	delete(l.nodes, id)
}

// left stops a member that was removed. It may have stopped before, as it learned of that.
func (l *library) left(id braid.MemberID) {
	if err := l.nodes[id].Close(); err != nil {
		var expelled *braid.ExpelledError
		require.ErrorAs(l.t, err, &expelled)
	}
	delete(l.nodes, id)
}

func (l *library) restart(id braid.MemberID) { l.start(l.members[id-1], false) }

func (l *library) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	l.t.Cleanup(cancel)
	return ctx
}

func (l *library) leader() braid.MemberID {
	l.t.Helper()
	var leader braid.MemberID
	require.Eventually(l.t, func() bool {
		leader = 0
		for _, n := range l.nodes {
			st := n.Status()
			if l.nodes[st.Leader()] == nil || leader != 0 && st.Leader() != leader {
				return false
			}
			leader = st.Leader()
		}
		return true
	}, testTimeout, 5*time.Millisecond, "no common leader")
	return leader
}

// put writes bodies of these sizes, each through another member.
func (l *library) put(name string, sizes ...int) {
	l.t.Helper()
	ids := slices.Sorted(maps.Keys(l.nodes))
	var wg sync.WaitGroup
	for i, size := range sizes {
		key := fmt.Sprintf("%s-%d", name, i)
		body := randomBody(key, size)
		l.bodies[key] = body
		node := l.nodes[ids[i%len(ids)]]
		wg.Go(func() {
			result, err := node.ProposeWith(l.ctx(), []byte(key), body, l.how)
			if _, early := result.(*braid.Accepted); early && l.how.Mode == braid.ModeAccepted && err == nil {
				return
			}
			if ref, ok := result.(braid.BodyRef); err != nil || !ok || int(ref.Size) != size {
				l.t.Errorf("%s of %d bytes: %v, %v", key, size, result, err)
			}
		})
	}
	wg.Wait()
}

func randomBody(name string, size int) []byte {
	b := make([]byte, size)
	rng := rand.NewChaCha8(sha256.Sum256([]byte(name)))
	rng.Read(b)
	return b
}

// coded writes bodies until one is coded with k, which takes that the leader has heard from all
// members.
func (l *library) coded(size int, k uint8) (name string, ref braid.BodyRef) {
	l.t.Helper()
	tries := 0
	require.Eventually(l.t, func() bool {
		tries++
		l.put(fmt.Sprintf("try %d", tries), size)
		name = fmt.Sprintf("try %d-0", tries)
		ref, _ = l.shelves[slices.Min(slices.Collect(maps.Keys(l.nodes)))].find(name)
		return ref.K == k
	}, testTimeout, 10*time.Millisecond, "no body is coded with k=%d", k)
	l.verify()
	return name, ref
}

// verify demands that every running member can read every body.
func (l *library) verify() {
	l.t.Helper()
	for id, n := range l.nodes {
		require.NoError(l.t, l.see(n), "member %s", id)
		for name, want := range l.bodies {
			ref, ok := l.shelves[id].find(name)
			require.True(l.t, ok, "member %s does not know %s", id, name)
			got := l.read(id, ref)
			require.True(l.t, bytes.Equal(want, got), "member %s reads other bytes as %s", id, name)
		}
	}
}

// see waits until a member has applied all that was put.
func (l *library) see(n *braid.Node) error {
	if l.how.Mode == braid.ModeAccepted {
		return n.Read(l.ctx(), braid.ReadOptions{Barrier: true})
	}
	return n.ReadBarrier(l.ctx())
}

// read reads a body; while members come and go, enough of them may be out of reach.
func (l *library) read(id braid.MemberID, ref braid.BodyRef) (got []byte) {
	l.t.Helper()
	var err error
	require.Eventually(l.t, func() bool {
		got, err = l.nodes[id].Body(l.ctx(), ref)
		return err == nil
	}, testTimeout, 10*time.Millisecond, "member %s cannot read entry %d", id, ref.Index)
	return got
}

// sizes are bodies of all kinds, from one byte on.
var sizes = []int{1, 2, 3, 100, 4095, 65_537, 1 << 20, 4<<20 - 1, 4 << 20}

func TestBodiesAreWrittenAndReadEverywhere(t *testing.T) {
	t.Parallel()
	for placement, tune := range map[string]func(*braid.Options){"copy": func(o *braid.Options) { o.Protocol = braid.Raft{} }, "code": nil} {
		for _, members := range []int{1, 3, 5} {
			t.Run(fmt.Sprintf("%s, %d members", placement, members), func(t *testing.T) {
				t.Parallel()
				l := newLibrary(t, members, tune)
				l.leader()
				l.put("x", sizes...)
				l.verify()
				for _, m := range l.members {
					l.stop(m.ID)
				}
				for _, m := range l.members {
					l.restart(m.ID)
				}
				l.leader()
				l.verify()
			})
		}
	}
}

func TestBodiesSurviveTheirLeaders(t *testing.T) {
	t.Parallel()
	for name, tune := range map[string]func(*braid.Options){"one instance": nil, "three": woven(3)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testBodiesSurviveTheirLeaders(newLibrary(t, 3, tune))
		})
	}
}

func testBodiesSurviveTheirLeaders(l *library) {
	for i := range 3 {
		leader := l.leader()
		l.put(fmt.Sprintf("round %d", i), sizes...)
		l.stop(leader)
		l.leader()
		l.put(fmt.Sprintf("round %d without a leader", i), 1, 5000, 1<<20)
		l.verify()
		l.restart(leader)
	}
	l.leader()
	l.verify()
}

func TestBodiesAreThereWithTwoOfFiveMembersDown(t *testing.T) {
	t.Parallel()
	l := newLibrary(t, 5, nil)
	leader := l.leader()
	l.put("all", sizes...)
	other := leader%5 + 1
	l.stop(leader)
	l.stop(other)
	l.leader()
	l.verify()
	l.put("three", sizes...)
	l.verify()
	l.restart(leader)
	l.restart(other)
	l.leader()
	l.put("again", 1, 1<<20)
	l.verify()
}

func TestALaggardFetchesTheBodiesOfASnapshot(t *testing.T) {
	t.Parallel()
	short := func(o *braid.Options) { o.Limits.SnapshotBytes = 64 << 10 }
	for name, tune := range map[string]func(*braid.Options){"one instance": short, "three": woven(3, short)} {
		t.Run(name, func(t *testing.T) { testALaggardFetchesBodies(newLibrary(t, 3, tune)) })
	}
}

func testALaggardFetchesBodies(l *library) {
	leader := l.leader()
	l.put("early", sizes...)
	behind := leader%3 + 1
	has := l.nodes[behind].Status().Instances[0].Last
	l.stop(behind)
	// The leader keeps log for a member as long as it seems to be there, and cuts when there is
	// a snapshot: so this takes as many writes as an election timeout and a snapshot take.
	ctx := l.ctx()
	for i := 0; l.nodes[leader].Status().Instances[0].First <= has+1; i++ {
		require.NoError(l.t, ctx.Err(), "the log was not cut")
		l.put(fmt.Sprintf("late %d", i), 1, 5000, 100_000, 300_000)
	}
	l.restart(behind)
	l.verify()
	l.complete()
	for id := range l.nodes { // it does not depend on the others now more than they on it
		if id != behind {
			l.stop(id)
			l.verify()
			l.restart(id)
			l.leader()
		}
	}
}

// complete waits until no member misses a body, or has less of one than it is to have.
func (l *library) complete() {
	l.t.Helper()
	require.Eventually(l.t, func() bool {
		for _, n := range l.nodes {
			if b := n.Status().Bodies; b.Missing > 0 || b.Short > 0 {
				return false
			}
		}
		return true
	}, testTimeout, 10*time.Millisecond, "bodies stay missing")
}

func TestDamagedBodiesAreFoundAndRepaired(t *testing.T) {
	t.Parallel()
	l := newLibrary(t, 3, func(o *braid.Options) { o.Limits.ScrubBytesPerSecond, o.Limits.SnapshotBytes = 1<<30, 64<<10 })
	leader := l.leader()
	name, _ := l.coded(1<<20, 2)
	l.put("x", 1<<20, 5000)
	victim := braid.MemberID(1) // its row is a piece of the body
	if leader == victim {
		victim = 2
	}
	for i := 0; l.nodes[victim].Status().Instances[0].First <= 10; i++ { // they are not the log's any more
		l.put(fmt.Sprintf("y %d", i), 5000, 100_000)
	}
	l.verify()
	l.stop(victim)
	damaged := damage(t, filepath.Join(l.dirs[victim], "bodies"), l.bodies[name])
	require.Positive(t, damaged)
	l.restart(victim)
	l.leader()
	require.Eventually(t, func() bool {
		st := l.nodes[victim].Status().Bodies
		return st.Corrupt > 0 && st.Repaired > 0 && st.Missing == 0
	}, testTimeout, 10*time.Millisecond, "nothing was repaired")
	l.verify()
	l.stop(leader)
	l.leader()
	l.verify()
}

// damage flips bits of what stands in the files of a directory and is part of body.
func damage(t *testing.T, dir string, body []byte) (found int) {
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, name := range names {
		path := filepath.Join(dir, name.Name())
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, from := range []int{len(body) / 8, len(body) * 7 / 8} { // in a row or another
			at := bytes.Index(content, body[from:from+32])
			if at < 0 {
				continue
			}
			content[at] ^= 1
			require.NoError(t, os.WriteFile(path, content, 0o600))
			found++
		}
	}
	return found
}

func TestLargeBodiesOnSlowLinksDoNotCostTheLeaderItsOffice(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	l := newLibrary(t, 3, func(o *braid.Options) { o.Experiment.Net = "latency=1ms,bandwidth=40mbit" })
	l.leader()
	for i := range 2 { // each takes several election timeouts
		l.put(fmt.Sprintf("x %d", i), 6<<20)
	}
	l.verify()
}

func TestBodiesAreNotCopiedOnTheirWay(t *testing.T) {
	const size, count = 16 << 20, 4
	l := newLibrary(t, 3, func(o *braid.Options) { o.Protocol = braid.Raft{} })
	leader := l.leader()
	l.put("warm", 1<<20)
	body := randomBody("x", size)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range count {
		_, err := l.nodes[leader].ProposeBody(l.ctx(), fmt.Appendf(nil, "x %d", i), body)
		require.NoError(t, err)
		l.bodies[fmt.Sprintf("x %d", i)] = body
	}
	for _, n := range l.nodes {
		require.NoError(t, n.ReadBarrier(l.ctx()))
	}
	runtime.ReadMemStats(&after)
	copies := float64(after.TotalAlloc-before.TotalAlloc) / size / count
	t.Logf("%.2f times the body's bytes were allocated on three members together", copies)
	require.Less(t, copies, 2.5, "one buffer for each of two followers to receive it into")
	l.verify()
}

func TestWholeCopiesAreTrimmedWhereFragmentsDo(t *testing.T) {
	t.Parallel()
	l := newLibrary(t, 5, func(o *braid.Options) {
		o.Limits.ScrubBytesPerSecond, o.Limits.SnapshotBytes = 1<<30, 64<<10
		o.Protocol = braid.With(o.Protocol, "trim-whole=true")
	})
	leader := l.leader()
	_, ref := l.coded(1<<20, 2)
	for i := 0; l.nodes[leader].Status().Instances[0].First <= ref.Index; i++ {
		l.put(fmt.Sprintf("y %d", i), 5000, 100_000)
	}
	require.Eventually(t, func() bool { return l.nodes[leader].Status().Bodies.Trimmed > 0 }, testTimeout, 10*time.Millisecond,
		"the leader keeps its whole copies")
	l.verify()
	l.stop(leader)
	l.stop(leader%5 + 1)
	l.leader()
	l.verify()
}

func TestReleasedBodiesMakeRoom(t *testing.T) {
	t.Parallel()
	l := newLibrary(t, 3, func(o *braid.Options) { o.Limits.SnapshotBytes = 1 << 20 })
	l.leader()
	for range 60 { // 60 MiB under the same names
		l.put("x", 1<<20)
		l.release()
	}
	require.Eventually(t, func() bool {
		l.put("y", 200_000)
		l.release()
		for _, n := range l.nodes {
			if n.Status().Bodies.LiveBytes > 20<<20 {
				return false
			}
		}
		return true
	}, testTimeout, 10*time.Millisecond, "what nobody refers to stays")
	l.verify()
	l.complete()
}

// release lets go of what was replaced on the shelves.
func (l *library) release() {
	for id, s := range l.shelves {
		s.mu.Lock()
		replaced := s.replaced
		s.replaced = nil
		s.mu.Unlock()
		for _, ref := range replaced {
			l.nodes[id].ReleaseBody(ref)
		}
	}
}

func TestANewMemberGetsItsFragments(t *testing.T) {
	t.Parallel()
	for name, snapshotBytes := range map[string]int{"from the log": 1 << 30, "from a snapshot": 64 << 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLibrary(t, 3, func(o *braid.Options) { o.Limits.SnapshotBytes = snapshotBytes })
			old := l.leader()
			l.coded(1<<20, 2)
			l.put("x", sizes...)
			fourth := braid.Member{ID: 4, PeerURLs: []string{freeURL(t)}, Learner: true}
			l.dirs[4] = t.TempDir()
			changed(t, l.nodes[old], braid.Change{Kind: braid.AddLearner, Member: fourth})
			l.members = append(l.members, fourth)
			l.start(fourth, true)
			fourth.Learner = false
			changed(t, l.nodes[old], braid.Change{Kind: braid.AddVoter, Member: fourth})
			l.complete()
			l.verify()
			l.stop(old%3 + 1) // what it held others must hold
			l.leader()
			l.verify()
			l.put("y", 1, 1<<20)
			l.verify()
		})
	}
}

// TestSevenMembersBecomeThree: three of seven are not enough for rows of three. Those who stay
// make whole copies, and with one of them down everything is there.
func TestSevenMembersBecomeThree(t *testing.T) {
	t.Parallel()
	for name, snapshotBytes := range map[string]int{"in the log": 1 << 30, "behind the log": 64 << 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLibrary(t, 7, func(o *braid.Options) { o.Limits.SnapshotBytes, o.Protocol = snapshotBytes, braid.CRaft{K: 3} })
			l.leader()
			l.coded(1<<20, 3)
			l.put("x", 1<<20, 1<<20, 1<<20, 1<<20, 100)
			leader := l.leader()
			var leave []braid.Change
			for _, m := range l.members {
				if m.ID != leader && len(leave) < 4 {
					leave = append(leave, braid.Change{Kind: braid.RemoveMember, Member: braid.Member{ID: m.ID}})
				}
			}
			changed(t, l.nodes[leader], leave...)
			for _, c := range leave {
				l.left(c.Member.ID)
			}
			l.complete()
			l.put("y", 1<<20, 1<<20)
			l.verify()
			for id := range l.nodes {
				for _, m := range l.nodes[id].Status().Instances[0].Config.Members {
					require.EqualValues(t, 2, m.WholeAbove)
				}
			}
			l.stop(leader)
			l.leader()
			l.verify()
			l.put("z", 1, 1<<20)
			l.verify()
		})
	}
}

func TestTooFewFragmentsAreReported(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	l := newLibrary(t, 3, nil)
	leader := l.leader()
	_, ref := l.coded(1<<20, 2)
	follower := leader%3 + 1
	for _, m := range l.members {
		if m.ID != follower {
			l.stop(m.ID)
		}
	}
	_, err := l.nodes[follower].Body(l.ctx(), ref)
	var e *braid.BodyError
	require.ErrorAs(t, err, &e)
	require.Equal(t, 2, e.Need)
	require.Less(t, e.Found, 2)
}
