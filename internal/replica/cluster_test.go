package replica

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/protocol/raft"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/vfs/errorfs"
	"github.com/braidlog/braid/protocol"
)

const (
	testHeartbeat = 50 * time.Millisecond
	testElection  = 500 * time.Millisecond
	// testLimit bounds every wait, by the clock of the bubble.
	testLimit = 5 * time.Minute
)

// diskFault makes operations of a disk fail.
type diskFault struct {
	fail atomic.Pointer[func(errorfs.Op) error]
}

// set makes the disk fail with the result of f. nil: it does not fail any more.
func (d *diskFault) set(f func(errorfs.Op) error) {
	if f == nil {
		d.fail.Store(nil)
	} else {
		d.fail.Store(&f)
	}
}

// MaybeError implements errorfs.Injector.
func (d *diskFault) MaybeError(op errorfs.Op) error {
	if f := d.fail.Load(); f != nil {
		return (*f)(op)
	}
	return nil
}

// machine is a state machine in memory, with hooks for tests.
type machine struct {
	mu      sync.Mutex
	applied []string
	bodies  []protocol.BodyRef
	at      protocol.Position // of the last command
	views   int               // open views
	apply   func(command string) error
	take    func() error                    // before a view is taken
	write   func(ctx context.Context) error // before a view is written
	restore func() error                    // before a state is read
	close   func() error                    // after a view is closed
	sync    func() error
	live    func() error // before bodies are listed
	damaged error
	needed  uint8 // version of the state; its members know none
}

// StateVersion implements member.Versioned.
func (m *machine) StateVersion() (needed, known uint8) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.needed, m.needed
}

func (m *machine) Apply(commands []member.Command) error {
	for i := range commands {
		m.mu.Lock()
		apply := m.apply
		m.mu.Unlock()
		if apply != nil {
			if err := apply(string(commands[i].Data)); err != nil {
				return err
			}
		}
		m.mu.Lock()
		m.applied = append(m.applied, string(commands[i].Data))
		if commands[i].Body != nil {
			m.bodies = append(m.bodies, *commands[i].Body)
		}
		commands[i].Result, m.at = len(m.applied), commands[i].Position
		m.mu.Unlock()
	}
	return nil
}

func (m *machine) Snapshot() (member.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.take != nil {
		if err := m.take(); err != nil {
			return nil, err
		}
	}
	m.views++
	return &machineView{m: m, write: m.write, state: machineState{slices.Clone(m.applied), slices.Clone(m.bodies), m.at}},
		nil
}

type machineView struct {
	m     *machine
	state machineState
	write func(ctx context.Context) error
}

type machineState struct {
	Applied []string
	Bodies  []protocol.BodyRef
	At      protocol.Position
}

func (v *machineView) WriteTo(ctx context.Context, w io.Writer) error {
	if v.write != nil {
		if err := v.write(ctx); err != nil {
			return err
		}
	}
	return json.NewEncoder(w).Encode(v.state)
}

func (v *machineView) Close() error {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	v.m.views--
	if v.m.close != nil {
		return v.m.close()
	}
	return nil
}

func (m *machine) Restore(r io.Reader) error {
	var s machineState
	m.mu.Lock()
	restore := m.restore
	m.mu.Unlock()
	if restore != nil {
		if err := restore(); err != nil {
			return err
		}
	}
	if err := json.NewDecoder(r).Decode(&s); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, r)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied, m.bodies, m.at, m.damaged = s.Applied, s.Bodies, s.At, nil
	return err
}

// durable is a machine that keeps its state on a disk, where it may be damaged.
type durable struct{ *machine }

func (d durable) Applied() protocol.Position {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at
}

func (d durable) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sync != nil {
		return d.sync()
	}
	return d.damaged
}

func (d durable) Damaged() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.damaged
}

func (d durable) Condemn(cause error) { d.hook(func(m *machine) { m.damaged = cause }) }

// LiveBodies implements body.BodyKeeper.
func (m *machine) LiveBodies(yield func(protocol.BodyRef)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.live != nil {
		if err := m.live(); err != nil {
			return err
		}
	}
	for _, ref := range m.bodies {
		yield(ref)
	}
	return nil
}

func (m *machine) has(command string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.applied, command)
}

// hook sets hooks of a running machine.
func (m *machine) hook(f func(m *machine)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m)
}

// testCluster has some members in one bubble of synctest, with disks and links in memory.
type testCluster struct {
	t        *testing.T
	net      *network
	members  []protocol.Member
	disks    map[protocol.MemberID]vfs.FS
	machines map[protocol.MemberID]*machine
	running  map[protocol.MemberID]*Replica
	faults   map[protocol.MemberID]*diskFault
	serving  chan struct{} // closed when nothing may block the members any more
	setting
}

// setting has a test's settings of its cluster.
type setting struct {
	size      int
	tune      func(*Options)
	placement protocol.Placement
	durable   bool // state machines keep their states on disks
	waits     bool // the test starts the members
	around    func(protocol.Core) protocol.Core
}

// inBubble runs a test of a cluster. At its end all members are closed. The bubble ends only if all of their
// goroutines have ended.
func inBubble(t *testing.T, s setting, test func(*testCluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &testCluster{
			t: t, net: newNetwork(), setting: s, disks: map[protocol.MemberID]vfs.FS{},
			machines: map[protocol.MemberID]*machine{}, running: map[protocol.MemberID]*Replica{},
			faults: map[protocol.MemberID]*diskFault{}, serving: make(chan struct{}),
		}
		for i := range s.size {
			id := protocol.MemberID(i + 1)
			c.members = append(c.members, protocol.Member{ID: id, PeerURLs: []string{fmt.Sprintf("http://member%d:1", id)}})
			c.faults[id] = &diskFault{}
			c.disks[id] = errorfs.Wrap(vfs.NewMem(), c.faults[id])
		}
		t.Cleanup(func() { // if the test failed
			for _, r := range c.running {
				_ = r.Close()
			}
		})
		for _, m := range c.members {
			if !s.waits {
				c.start(m.ID)
			}
		}
		test(c)
		for _, id := range slices.Sorted(maps.Keys(c.running)) {
			c.close(id)
		}
	})
}

func (c *testCluster) options(id protocol.MemberID) Options {
	o := Options{
		Self: id, Cluster: 42, Dir: "d", FS: c.disks[id], Members: slices.Clone(c.members), Begin: order.Begin(1, false),
		Heartbeat: testHeartbeat, ElectionTimeout: testElection, MaxBatchBytes: 1 << 20, MaxCommandBytes: 1 << 20,
		MaxPendingBytes: 8 << 20, SnapshotBytes: 1 << 20, KeepLogBytes: 1 << 30, BodyCacheBytes: 1 << 20,
		Logger: slog.New(slog.DiscardHandler), newLinks: c.net.join,
	}
	if c.tune != nil {
		c.tune(&o)
	}
	o.Program = func(p *protocol.Profile) (*Program, error) {
		if other := c.otherProgram(id, p); other != nil {
			return other, nil
		}
		return &Program{Core: c.core(id, &o), Codec: message.Codec, Merges: !o.Begin.Keyed, Grows: !o.Begin.Keyed,
			Profile: *p}, nil
	}
	return o
}

func (c *testCluster) core(
	id protocol.MemberID, o *Options,
) func(protocol.InstanceID, protocol.Session, protocol.Recovered) (protocol.Core, error) {
	return func(instance protocol.InstanceID, _ protocol.Session, rec protocol.Recovered) (protocol.Core, error) {
		core, err := raft.New(protocol.Settings{
			Self: id, Instance: instance, Heartbeat: o.Heartbeat, ElectionTimeout: o.ElectionTimeout, MaxFrameBytes: 1 << 20,
			Leaders: o.Leaders, Placement: c.placement,
		}, rec)
		if err == nil && c.around != nil {
			return c.around(core), nil
		}
		return core, err
	}
}

// start opens a member with a new machine.
func (c *testCluster) start(id protocol.MemberID) *Replica {
	c.t.Helper()
	m := &machine{}
	if old := c.machines[id]; old != nil && c.durable {
		m.applied, m.bodies, m.at = old.applied, old.bodies, old.at
	}
	sm := member.StateMachine(m)
	if c.durable {
		sm = durable{m}
	}
	r, err := Open(c.options(id), sm)
	require.NoError(c.t, err)
	c.running[id], c.machines[id] = r, m
	return r
}

// close closes a member, and checks its state after that.
func (c *testCluster) close(id protocol.MemberID) {
	c.t.Helper()
	require.NoError(c.t, c.running[id].Close())
	c.ended(id)
}

// stopped reports whether a running member has stopped by itself.
func (c *testCluster) stopped(id protocol.MemberID) bool {
	select {
	case <-c.running[id].Done():
		return true
	default:
		return false
	}
}

// fails waits until a member has stopped by itself, and returns its error.
func (c *testCluster) fails(id protocol.MemberID) error {
	c.t.Helper()
	r := c.running[id]
	c.until("the member stops", func() bool { return c.stopped(id) })
	c.ended(id)
	require.Error(c.t, r.Err())
	require.Equal(c.t, r.Err(), r.Close(), "Close says the same")
	return r.Err()
}

// ended checks the state of a stopped member: nothing is counted, open or waiting any more.
func (c *testCluster) ended(id protocol.MemberID) {
	c.t.Helper()
	r := c.running[id]
	<-r.Done()
	delete(c.running, id)
	require.Zero(c.t, r.proposer.pendingBytes(), "bytes of proposals")
	require.Zero(c.t, r.inbox.bytes.Load(), "bytes of messages")
	require.Zero(c.t, r.apply.known.Watched(), "those who wait for memberships")
	require.Zero(c.t, r.operations.Open(), "operations")
	require.Zero(c.t, c.machines[id].views, "views of the state")
	lock, err := c.disks[id].Lock("d/LOCK")
	require.NoError(c.t, err, "the directory is free")
	require.NoError(c.t, lock.Close())
}

// gate returns a channel that is closed by open, or at the end of the test if that failed before.
func (c *testCluster) gate() (gate <-chan struct{}, open func()) {
	g := make(chan struct{})
	open = sync.OnceFunc(func() { close(g) })
	c.t.Cleanup(open)
	return g, open
}

// restart stops all members, and starts them again.
func (c *testCluster) restart() {
	for _, m := range c.members {
		c.close(m.ID)
	}
	for _, m := range c.members {
		c.start(m.ID)
	}
}

// until waits for a condition, by the clock of the bubble.
func (c *testCluster) until(what string, ok func() bool) {
	c.t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for began := time.Now(); !ok(); <-ticker.C {
		require.Less(c.t, time.Since(began), testLimit, what)
		synctest.Wait()
	}
}

// leader waits until all running members know the same leader, and that one runs.
func (c *testCluster) leader() protocol.MemberID {
	c.t.Helper()
	leader := protocol.MemberID(0)
	c.until("a leader", func() bool {
		leader = 0
		for _, r := range c.running {
			for _, l := range r.all() {
				at := l.status.Load().Leader
				if c.running[at] == nil || leader != 0 && at != leader {
					return false
				}
				leader = at
			}
		}
		return true
	})
	return leader
}

// follower returns a member that does not lead.
func (c *testCluster) follower() protocol.MemberID {
	c.t.Helper()
	leader := c.leader()
	for _, m := range c.members {
		if m.ID != leader && c.running[m.ID] != nil {
			return m.ID
		}
	}
	c.t.Fatal("no follower")
	return 0
}

// fill proposes some commands at a member and waits until they are applied there.
func (c *testCluster) fill(id protocol.MemberID, name string, count int) {
	c.t.Helper()
	for i := range count {
		_, err := c.running[id].Propose(c.t.Context(), fmt.Appendf(nil, "%s %d", name, i), nil)
		require.NoError(c.t, err)
	}
}

// answers counts the answers to proposals, reads and requests. Each gets exactly one.
type answers struct {
	mu   sync.Mutex
	told map[string][]error
	owed int
}

func newAnswers() *answers { return &answers{told: map[string][]error{}} }

func (a *answers) tell(name string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.told[name] = append(a.told[name], err)
}

// owe records an expected answer.
func (a *answers) owe() {
	a.mu.Lock()
	a.owed++
	a.mu.Unlock()
}

// ask runs f, which waits for an answer, in a goroutine.
func (a *answers) ask(name string, f func() error) {
	a.owe()
	go func() { a.tell(name, f()) }()
}

// propose proposes without waiting. It returns the reason if the command was refused.
func (a *answers) propose(r interface {
	ProposeAsync(command, body []byte, done intake.Done) error
}, command string, body []byte) error {
	err := r.ProposeAsync([]byte(command), body, func(_ any, err error) { a.tell(command, err) })
	if err == nil {
		a.owe()
	}
	return err
}

// all reports whether all were answered.
func (a *answers) all() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.told) == a.owed
}

// complete checks that all were answered once, and returns the answers.
func (a *answers) complete(t *testing.T) map[string]error {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]error{}
	for name, errs := range a.told {
		require.Len(t, errs, 1, "%s is told once", name)
		out[name] = errs[0]
	}
	require.Len(t, out, a.owed, "everybody is told")
	return out
}
