package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/braidlog/braid/bench"
)

// errNoLeader is returned by peers while no leader is known; nothing happened.
var errNoLeader = errors.New("no leader")

// errDeposed fails the proposals that were in flight when their leader lost its leadership.
var errDeposed = errors.New("the leader changed: the command may or may not take effect")

var errClosed = errors.New("the cluster is closed")

// etcdRaft is go.etcd.io/raft as its own documentation advises to run it for throughput: asynchronous storage writes,
// so that the log is written concurrently with everything else and one fsync covers all that queued up during the
// last one; proposals in batches; etcd's own log on disk; messages marshalled and written together.
type etcdRaft struct {
	members []*etcdMember
	leader  atomic.Int64 // index of the leading member, -1 none
	// applied is the applied index of each member; entries that all have applied are dropped.
	applied []atomic.Uint64
}

// etcdTuning has the values that were fastest on loopback, and those that the settings change.
type etcdTuning struct {
	maxSizePerMsg   uint64
	maxInflightMsgs int
	packBytes       int // commands are packed into entries of this many bytes; 0: an entry each
}

func openEtcdRaft(c bench.ClusterConfig) (bench.Cluster, error) { return startEtcdRaft(c, 0) }

// openEtcdRaftPacked packs queued commands into one entry. Users of the library do not do that; it shows the best
// case for the library.
func openEtcdRaftPacked(c bench.ClusterConfig) (bench.Cluster, error) {
	return startEtcdRaft(c, 64<<10)
}

func startEtcdRaft(c bench.ClusterConfig, packBytes int) (bench.Cluster, error) {
	t := etcdTuning{maxSizePerMsg: 1 << 20, maxInflightMsgs: 4, packBytes: packBytes}
	if c.Settings.MaxBatchBytes > 0 {
		t.maxSizePerMsg = uint64(c.Settings.MaxBatchBytes)
	}
	if c.Settings.PipelineDepth > 0 {
		t.maxInflightMsgs = c.Settings.PipelineDepth
	}
	if c.Settings.NoPipeline {
		t.maxInflightMsgs = 1
	}
	if c.Settings.NoBatching {
		t.maxSizePerMsg, t.packBytes = 0, 0
	}
	cl := &etcdRaft{applied: make([]atomic.Uint64, len(c.Machines))}
	cl.leader.Store(-1)
	listeners, err := bench.ListenLoopback(len(c.Machines))
	if err != nil {
		return nil, err
	}
	for i, m := range c.Machines {
		dir := filepath.Join(c.Dir, fmt.Sprintf("member-%d", i+1))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, errors.Join(err, cl.Close())
		}
		member, err := newEtcdMember(cl, i, dir, m, listeners, t)
		if err != nil {
			return nil, errors.Join(err, cl.Close())
		}
		cl.members = append(cl.members, member)
	}
	for _, m := range cl.members {
		m.start()
	}
	return cl, nil
}

func (c *etcdRaft) Leader() int { return int(c.leader.Load()) }

func (c *etcdRaft) ProposeAsync(command []byte, done func(any, error)) error {
	l := c.leader.Load()
	if l < 0 {
		return errNoLeader
	}
	return c.members[l].propose(command, done)
}

func (c *etcdRaft) Propose(ctx context.Context, command []byte) error {
	return bench.ProposeAndWait(ctx, c.ProposeAsync, command)
}

func (c *etcdRaft) Stats() bench.Stats {
	var s bench.Stats
	for _, m := range c.members {
		s.EgressBytes = append(s.EgressBytes, m.egress.Load())
		s.Fsyncs += m.log.fsyncs.Load()
	}
	return s
}

func (c *etcdRaft) Close() error {
	var errs []error
	for _, m := range c.members {
		errs = append(errs, m.stop())
	}
	return errors.Join(errs...)
}

// appliedByAll is the last index that every member has applied.
func (c *etcdRaft) appliedByAll() uint64 {
	low := uint64(math.MaxUint64)
	for i := range c.applied {
		low = min(low, c.applied[i].Load())
	}
	return low
}

// etcdMember is one member: a loop around a RawNode.
type etcdMember struct {
	cluster *etcdRaft
	i       int
	id      uint64
	raw     *raft.RawNode
	storage *raft.MemoryStorage
	log     *etcdLog
	machine *bench.Machine
	links   []*etcdLink // by member; nil for itself
	accept  net.Listener
	egress  atomic.Int64
	tuning  etcdTuning

	mu     sync.Mutex
	queue  proposals
	inbox  []*raftpb.Message
	closed bool

	wake    chan struct{}
	quit    chan struct{}
	stopped sync.WaitGroup

	// The loop's own.
	taken     proposals // swapped with queue
	messages  []*raftpb.Message
	entries   []raftpb.Entry
	pointers  []*raftpb.Entry
	pending   ring // proposals of this member in flight, in order
	lastID    uint64
	batch     [][]byte
	scratch   []byte
	compacted uint64
	leading   bool
}

// proposals are commands that wait for the loop, copied one after the other.
type proposals struct {
	bytes []byte
	ends  []int
	dones []func(any, error)
}

func (p *proposals) reset() {
	clear(p.dones)
	p.bytes, p.ends, p.dones = p.bytes[:0], p.ends[:0], p.dones[:0]
}

func newEtcdMember(
	c *etcdRaft, i int, dir string, machine *bench.Machine, listeners []net.Listener, t etcdTuning,
) (*etcdMember, error) {
	m := &etcdMember{
		cluster: c, i: i, id: uint64(i + 1), storage: raft.NewMemoryStorage(), machine: machine, tuning: t,
		accept: listeners[i], links: make([]*etcdLink, len(listeners)),
		wake: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	// All members begin with the same snapshot at index 1, which holds the membership.
	voters := make([]uint64, len(listeners))
	for j := range voters {
		voters[j] = uint64(j + 1)
	}
	conf := &raftpb.ConfState{Voters: voters}
	base := &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{ConfState: conf, Index: new(uint64(1)),
		Term: new(uint64(1))}}
	if err := m.storage.ApplySnapshot(base); err != nil {
		return nil, err
	}
	var err error
	if m.log, err = newEtcdLog(m, dir, conf); err != nil {
		return nil, err
	}
	m.compacted = 1
	m.cluster.applied[i].Store(1)
	m.raw, err = raft.NewRawNode(&raft.Config{
		ID: m.id, ElectionTick: int(bench.ElectionTimeout / bench.Heartbeat), HeartbeatTick: 1,
		Storage: m.storage, Applied: 1, AsyncStorageWrites: true,
		MaxSizePerMsg: t.maxSizePerMsg, MaxCommittedSizePerReady: 64 << 20, MaxInflightMsgs: t.maxInflightMsgs,
		CheckQuorum: true, PreVote: true, Logger: quietLogger{},
	})
	if err != nil {
		return nil, err
	}
	for j, l := range listeners {
		if j != i {
			m.links[j] = newEtcdLink(m, l.Addr().String())
		}
	}
	return m, nil
}

func (m *etcdMember) start() {
	m.stopped.Go(m.loop)
	m.stopped.Go(m.log.loop)
	m.stopped.Go(m.acceptLinks)
	for _, l := range m.links {
		if l != nil {
			m.stopped.Go(l.loop)
		}
	}
}

func (m *etcdMember) stop() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	close(m.quit)
	_ = m.accept.Close()
	m.stopped.Wait()
	return m.log.wal.Close()
}

// propose queues a command for the loop.
func (m *etcdMember) propose(command []byte, done func(any, error)) error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return errClosed
	}
	m.queue.bytes = append(m.queue.bytes, command...)
	m.queue.ends = append(m.queue.ends, len(m.queue.bytes))
	m.queue.dones = append(m.queue.dones, done)
	first := len(m.queue.ends) == 1
	m.mu.Unlock()
	if first {
		m.notify()
	}
	return nil
}

// receive queues messages for the loop.
func (m *etcdMember) receive(messages ...*raftpb.Message) {
	m.mu.Lock()
	m.inbox = append(m.inbox, messages...)
	m.mu.Unlock()
	m.notify()
}

func (m *etcdMember) notify() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *etcdMember) loop() {
	tick := time.NewTicker(bench.Heartbeat)
	defer tick.Stop()
	if m.i == 0 {
		_ = m.raw.Campaign()
	}
	for {
		for m.raw.HasReady() {
			m.handle(m.raw.Ready())
		}
		select {
		case <-m.wake:
		case <-tick.C:
			m.raw.Tick()
			m.compact()
		case <-m.quit:
			m.failAll()
			return
		}
		m.mu.Lock()
		m.queue, m.taken = m.taken, m.queue
		m.inbox, m.messages = m.messages, m.inbox
		m.mu.Unlock()
		for _, msg := range m.messages {
			_ = m.raw.Step(msg) // refused are messages of members that do not exist: none
		}
		clear(m.messages)
		m.messages = m.messages[:0]
		m.proposeQueued()
	}
}

// failAll answers everything that waits.
func (m *etcdMember) failAll() {
	m.pending.failAll(errClosed)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, done := range m.queue.dones {
		done(nil, errClosed)
	}
	m.queue.reset()
}

// handle processes a Ready: messages are sent at once, entries to store go to the log's goroutine, and committed
// entries are applied here.
func (m *etcdMember) handle(rd raft.Ready) {
	if rd.SoftState != nil {
		m.lead(rd.SoftState.RaftState == raft.StateLeader)
	}
	for _, msg := range rd.Messages {
		switch msg.GetTo() {
		case raft.LocalAppendThread:
			m.log.store(msg)
		case raft.LocalApplyThread:
			m.apply(msg.GetEntries())
			for _, resp := range msg.GetResponses() {
				_ = m.raw.Step(resp)
			}
		default:
			m.send(msg)
		}
	}
}

// send queues a message on the link to its receiver.
func (m *etcdMember) send(msg *raftpb.Message) { m.links[msg.GetTo()-1].send(msg) }

// lead records whether this member leads.
func (m *etcdMember) lead(now bool) {
	switch {
	case now && !m.leading:
		m.cluster.leader.Store(int64(m.i))
	case !now && m.leading:
		m.cluster.leader.CompareAndSwap(int64(m.i), -1)
	}
	m.leading = now
}

// compact drops from memory what every member has applied.
func (m *etcdMember) compact() {
	const atLeast = 10_000
	low := m.cluster.appliedByAll()
	if low >= m.compacted+atLeast {
		if m.storage.Compact(low) == nil {
			m.compacted = low
		}
	}
}

// quietLogger drops the library's log lines; a panic stays one.
type quietLogger struct{}

func (quietLogger) Debug(...any)            {}
func (quietLogger) Debugf(string, ...any)   {}
func (quietLogger) Error(...any)            {}
func (quietLogger) Errorf(string, ...any)   {}
func (quietLogger) Info(...any)             {}
func (quietLogger) Infof(string, ...any)    {}
func (quietLogger) Warning(...any)          {}
func (quietLogger) Warningf(string, ...any) {}
func (quietLogger) Fatal(v ...any)          { panic(fmt.Sprint(v...)) }
func (quietLogger) Fatalf(f string, v ...any) {
	panic(fmt.Sprintf(f, v...))
}
func (quietLogger) Panic(v ...any)            { panic(fmt.Sprint(v...)) }
func (quietLogger) Panicf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }
