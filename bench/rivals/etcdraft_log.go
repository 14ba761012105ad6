package main

import (
	"path/filepath"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// etcdLog writes a member's log in a goroutine of its own, with etcd's own code and format. What queues up during an
// fsync goes into the next one together.
type etcdLog struct {
	m      *etcdMember
	wal    *wal.WAL
	fsyncs atomic.Int64
	mu     sync.Mutex
	queue  []*raftpb.Message
	wake   chan struct{}
	state  *raftpb.HardState // as last saved
}

func newEtcdLog(m *etcdMember, dir string, conf *raftpb.ConfState) (*etcdLog, error) {
	w, err := wal.Create(zap.NewNop(), filepath.Join(dir, "wal"), nil)
	if err != nil {
		return nil, err
	}
	base := &walpb.Snapshot{Index: new(uint64(1)), Term: new(uint64(1)), ConfState: conf}
	if err := w.SaveSnapshot(base); err != nil {
		return nil, err
	}
	return &etcdLog{m: m, wal: w, wake: make(chan struct{}, 1), state: &raftpb.HardState{}}, nil
}

// store queues a MsgStorageAppend.
func (l *etcdLog) store(msg *raftpb.Message) {
	l.mu.Lock()
	l.queue = append(l.queue, msg)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *etcdLog) loop() {
	var batch []*raftpb.Message
	for {
		select {
		case <-l.wake:
		case <-l.m.quit:
			return
		}
		l.mu.Lock()
		batch, l.queue = l.queue, batch[:0]
		l.mu.Unlock()
		for rest := batch; len(rest) > 0; {
			n := l.save(rest)
			l.respond(rest[:n])
			rest = rest[n:]
		}
		clear(batch)
	}
}

// save makes a prefix of the queued messages durable with one write and returns its length.
// It ends where entries replace earlier ones.
func (l *etcdLog) save(batch []*raftpb.Message) int {
	var state *raftpb.HardState
	entries := batch[0].GetEntries()
	n := 0
	for ; n < len(batch); n++ {
		more := batch[n].GetEntries()
		if n > 0 && len(more) > 0 && len(entries) > 0 {
			if more[0].GetIndex() != entries[len(entries)-1].GetIndex()+1 {
				break
			}
		}
		if n > 0 {
			entries = append(entries[:len(entries):len(entries)], more...)
		}
		if batch[n].Term != nil || batch[n].Vote != nil || batch[n].Commit != nil {
			hs := &raftpb.HardState{Term: new(batch[n].GetTerm()), Vote: new(batch[n].GetVote()),
				Commit: new(batch[n].GetCommit())}
			if !raft.IsEmptyHardState(hs) {
				state = hs
			}
		}
	}
	l.write(state, entries)
	return n
}

// write appends to the log on disk and to the library's cache of it. A member that cannot write must stop; here that
// ends the benchmark.
func (l *etcdLog) write(state *raftpb.HardState, entries []*raftpb.Entry) {
	if err := l.wal.Save(state, entries); err != nil {
		panic("etcd's log: " + err.Error())
	}
	if len(entries) > 0 || (state != nil && raft.MustSync(state, l.state, 0)) {
		l.fsyncs.Add(1)
	}
	if state != nil {
		l.state = state
		_ = l.m.storage.SetHardState(state) // never fails
	}
	if err := l.m.storage.Append(entries); err != nil {
		panic("the log in memory: " + err.Error())
	}
}

// respond delivers the responses that waited for the messages to be durable.
func (l *etcdLog) respond(batch []*raftpb.Message) {
	var own []*raftpb.Message
	for _, msg := range batch {
		for _, resp := range msg.GetResponses() {
			if resp.GetTo() == l.m.id {
				own = append(own, resp)
			} else {
				l.m.send(resp)
			}
		}
	}
	if len(own) > 0 {
		l.m.receive(own...)
	}
}
