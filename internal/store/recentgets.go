package store

import (
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// recentGets are keys that were read and not written since. The index and the database are not searched for them.
//
//  1. A write transaction removes its keys before its revision can be read. So a key that is here, and was when a
//     revision was the newest one or later, has no newer value at that revision.
//  2. What was read at a revision is kept only if no key of the same shard was written at a later one: the write may
//     have come between the read and this.
//  3. While Restore puts another state in place, nothing is found or kept. Then nothing of the state before is here.
type recentGets struct {
	// state counts the beginnings and ends of restores: it is odd during one.
	state  atomic.Uint64
	seed   maphash.Seed
	shards [64]getShard
}

type getShard struct {
	mu     sync.Mutex
	newest int64 // revision of the last write of a key of the shard
	bytes  int   // of kvs, with keptGet for each
	kvs    map[string]*mvccpb.KeyValue
}

const (
	// shardBytes bounds a shard, so that all are at most 16 MiB. largestGet bounds a key and value that are kept.
	shardBytes = 256 << 10
	largestGet = 4 << 10
	// keptGet is about what the map and the struct need in addition to key and value.
	keptGet = 200
)

func (g *recentGets) init() { g.seed = maphash.MakeSeed() }

func (g *recentGets) shard(key []byte) *getShard {
	return &g.shards[maphash.Bytes(g.seed, key)%uint64(len(g.shards))]
}

// sizeKept is about how many bytes a key takes that is kept: it is the map's key too.
func sizeKept(kv *mvccpb.KeyValue) int { return keptGet + 2*len(kv.Key) + len(kv.Value) }

// find returns a key at a revision, which was the newest one after state was read; nil: it is not here. It is not to be
// changed.
func (g *recentGets) find(key []byte, revision int64, state uint64) *mvccpb.KeyValue {
	s := g.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	kv := s.kvs[string(key)]
	if kv == nil || kv.ModRevision > revision || state%2 == 1 || g.state.Load() != state {
		return nil
	}
	return kv
}

// keep keeps what was read at a revision, after state was read.
func (g *recentGets) keep(kv *mvccpb.KeyValue, revision int64, state uint64) {
	n := sizeKept(kv)
	if n > largestGet || marked(kv.Value) {
		return
	}
	s := g.shard(kv.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest > revision || state%2 == 1 || g.state.Load() != state || s.kvs[string(kv.Key)] != nil {
		return
	}
	if s.bytes+n > shardBytes || s.kvs == nil {
		s.kvs, s.bytes = map[string]*mvccpb.KeyValue{}, 0 // those that are read again come back
	}
	s.kvs[string(kv.Key)] = &mvccpb.KeyValue{Key: kv.Key, Value: kv.Value, CreateRevision: kv.CreateRevision,
		ModRevision: kv.ModRevision, Version: kv.Version, Lease: kv.Lease}
	s.bytes += n
}

// wrote removes keys that a transaction writes at a revision, before this can be read.
func (g *recentGets) wrote(changes []*mvccpb.KeyValue, revision int64) {
	for _, c := range changes {
		s := g.shard(c.Key)
		s.mu.Lock()
		s.newest = max(s.newest, revision)
		if kv := s.kvs[string(c.Key)]; kv != nil {
			s.bytes -= sizeKept(kv)
			delete(s.kvs, string(c.Key))
		}
		s.mu.Unlock()
	}
}

// restore runs a function that puts another state in place.
func (g *recentGets) restore(f func() error) error {
	g.state.Add(1)
	defer g.state.Add(1)
	err := f()
	for i := range g.shards {
		s := &g.shards[i]
		s.mu.Lock()
		s.kvs, s.bytes, s.newest = nil, 0, 0
		s.mu.Unlock()
	}
	return err
}

// countedRanges is etcd's counter of ranges, which also counts those that etcd's code does not see.
var countedRanges = func() prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "etcd", Subsystem: "mvcc", Name: "range_total",
		Help: "Total number of ranges seen by this member."})
	var known prometheus.AlreadyRegisteredError
	if errors.As(prometheus.Register(c), &known) {
		if counter, ok := known.ExistingCollector.(prometheus.Counter); ok {
			return counter
		}
	}
	return c
}()
