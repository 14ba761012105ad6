package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"

	"github.com/braidlog/braid/bench"
)

// hashicorpRaft is hashicorp/raft with its own TCP transport and its own log on disk (raft-wal), with all batching
// that it offers.
type hashicorpRaft struct {
	members []*hashicorpMember
	mu      sync.RWMutex // excludes Close from proposals
	closed  bool
}

type hashicorpMember struct {
	raft      *raft.Raft
	log       *raftwal.WAL
	transport *raft.NetworkTransport
	egress    atomic.Int64
	fsyncs    atomic.Int64
	futures   chan hashicorpFuture // in the order of their proposals
	waited    chan struct{}
}

// hashicorpFuture is a command in flight.
type hashicorpFuture struct {
	future raft.ApplyFuture
	done   func(any, error)
}

func openHashicorp(c bench.ClusterConfig) (bench.Cluster, error) {
	listeners, err := bench.ListenLoopback(len(c.Machines))
	if err != nil {
		return nil, err
	}
	var servers []raft.Server
	for i, l := range listeners {
		servers = append(servers,
			raft.Server{ID: raft.ServerID(strconv.Itoa(i + 1)), Address: raft.ServerAddress(l.Addr().String())})
	}
	cl := &hashicorpRaft{}
	for i, machine := range c.Machines {
		m, err := openHashicorpMember(c, i, listeners[i], servers, machine)
		if err != nil {
			return nil, errors.Join(err, cl.Close())
		}
		cl.members = append(cl.members, m)
	}
	return cl, nil
}

// hashicorpConfig is the library's configuration with everything that helps throughput.
func hashicorpConfig(id raft.ServerID, s bench.Settings) *raft.Config {
	conf := raft.DefaultConfig()
	conf.LocalID = id
	conf.Logger = hclog.NewNullLogger()
	conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = bench.ElectionTimeout, bench.ElectionTimeout,
		bench.ElectionTimeout/2
	conf.MaxAppendEntries = 1024 // the most that it allows
	conf.BatchApplyCh = true
	// A follower that is behind is sent one batch for each new proposal or commit timeout: with the default of 50 ms a
	// full window drains at 40,000 commands/s.
	conf.CommitTimeout = time.Millisecond
	conf.NoLegacyTelemetry = true
	// A run is shorter than any realistic interval between snapshots.
	conf.SnapshotInterval, conf.SnapshotThreshold = 24*time.Hour, 1<<62
	if s.NoBatching {
		conf.MaxAppendEntries, conf.BatchApplyCh = 1, false
	}
	return conf
}

func openHashicorpMember(
	c bench.ClusterConfig, i int, l net.Listener, servers []raft.Server, machine *bench.Machine,
) (*hashicorpMember, error) {
	m := &hashicorpMember{futures: make(chan hashicorpFuture, 1<<17), waited: make(chan struct{})}
	dir := filepath.Join(c.Dir, fmt.Sprintf("member-%d", i+1))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if m.log, err = raftwal.Open(dir, raftwal.WithLogger(hclog.NewNullLogger())); err != nil {
		return nil, err
	}
	counting := &countingLog{WAL: m.log, fsyncs: &m.fsyncs}
	cache, err := raft.NewLogCache(1<<18, counting)
	if err != nil {
		return nil, err
	}
	snapshots := raft.NewDiscardSnapshotStore()
	depth := c.Settings.PipelineDepth
	if c.Settings.NoPipeline {
		depth = 1
	}
	m.transport = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: &countingStream{Listener: l, sent: &m.egress}, MaxPool: 4, MaxRPCsInFlight: depth,
		Timeout: 10 * time.Second, Logger: hclog.NewNullLogger(),
	})
	conf := hashicorpConfig(servers[i].ID, c.Settings)
	if c.Idle {
		conf.CommitTimeout = raft.DefaultConfig().CommitTimeout
	}
	if err := raft.BootstrapCluster(conf, cache, counting, snapshots, m.transport,
		raft.Configuration{Servers: servers}); err != nil {
		return nil, err
	}
	if m.raft, err = raft.NewRaft(conf, hashicorpFSM{machine}, cache, counting, snapshots, m.transport); err != nil {
		return nil, err
	}
	go m.answer()
	return m, nil
}

// answer answers the commands in order, as they are applied.
func (m *hashicorpMember) answer() {
	defer close(m.waited)
	for f := range m.futures {
		f.done(nil, f.future.Error())
	}
}

func (c *hashicorpRaft) Leader() int {
	for i, m := range c.members {
		if m.raft.State() == raft.Leader {
			return i
		}
	}
	return -1
}

// Propose ignores ctx: the library answers every proposal that it accepted, at the latest at its shutdown.
func (c *hashicorpRaft) Propose(_ context.Context, command []byte) error {
	l := c.Leader()
	if l < 0 {
		return errNoLeader
	}
	return c.members[l].raft.Apply(bytes.Clone(command), 0).Error()
}

func (c *hashicorpRaft) ProposeAsync(command []byte, done func(any, error)) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return errClosed
	}
	l := c.Leader()
	if l < 0 {
		return errNoLeader
	}
	m := c.members[l]
	m.futures <- hashicorpFuture{m.raft.Apply(bytes.Clone(command), 0), done}
	return nil
}

func (c *hashicorpRaft) Stats() bench.Stats {
	var s bench.Stats
	for _, m := range c.members {
		s.EgressBytes = append(s.EgressBytes, m.egress.Load())
		s.Fsyncs += m.fsyncs.Load()
	}
	return s
}

func (c *hashicorpRaft) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	var errs []error
	for _, m := range c.members {
		errs = append(errs, m.raft.Shutdown().Error())
	}
	for _, m := range c.members {
		close(m.futures)
		<-m.waited
		errs = append(errs, m.transport.Close(), m.log.Close())
	}
	return errors.Join(errs...)
}

// hashicorpFSM drives a Machine.
type hashicorpFSM struct{ m *bench.Machine }

func (f hashicorpFSM) Apply(l *raft.Log) any { f.m.ApplyAll([][]byte{l.Data}); return nil }

// ApplyBatch implements raft.BatchingFSM.
func (f hashicorpFSM) ApplyBatch(logs []*raft.Log) []any {
	commands := make([][]byte, 0, len(logs))
	for _, l := range logs {
		if l.Type == raft.LogCommand {
			commands = append(commands, l.Data)
		}
	}
	f.m.ApplyAll(commands)
	return make([]any, len(logs))
}

// Snapshot implements raft.FSM; snapshots are not taken during a run.
func (f hashicorpFSM) Snapshot() (raft.FSMSnapshot, error) {
	return nil, errors.New("the benchmark takes no snapshots of this contestant")
}

func (f hashicorpFSM) Restore(r io.ReadCloser) error {
	defer func() { _ = r.Close() }()
	return f.m.Restore(r)
}

// countingLog counts the writes to a log, each of which ends with an fsync.
type countingLog struct {
	*raftwal.WAL
	fsyncs *atomic.Int64
}

func (l *countingLog) StoreLog(e *raft.Log) error {
	l.fsyncs.Add(1)
	return l.WAL.StoreLog(e)
}

func (l *countingLog) StoreLogs(es []*raft.Log) error {
	l.fsyncs.Add(1)
	return l.WAL.StoreLogs(es)
}

// countingStream is a TCP stream layer that counts what is sent.
type countingStream struct {
	net.Listener
	sent *atomic.Int64
}

func (s *countingStream) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", string(addr), timeout)
	if err != nil {
		return nil, err
	}
	return &countingConn{c, s.sent}, nil
}

func (s *countingStream) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countingConn{c, s.sent}, nil
}

type countingConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c *countingConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}
