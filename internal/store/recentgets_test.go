package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// revisions are the revisions of a key, ascending, and whether the key was deleted at each.
type revisions struct {
	at      []int64
	deleted []bool
}

// newest returns the newest revision up to another one; 0: the key did not exist.
func (r *revisions) newest(to int64) int64 {
	for i := len(r.at) - 1; i >= 0; i-- {
		if r.at[i] <= to {
			if r.deleted[i] {
				return 0
			}
			return r.at[i]
		}
	}
	return 0
}

// seen is an answer: a key's revision, 0 if it was not there, at a revision of the store, which was readable before.
type seen struct {
	key                 int
	before, mod, header int64
}

// While keys are written and deleted, alone and together, every get has the newest value at the revision of its answer,
// which is no older than what could be read before.
func TestGetsOfKeysThatAreWritten(t *testing.T) {
	const keys, readers = 8, 4
	n := open(t, testOptions(t.TempDir()))
	defer n.Close()
	written := make([]revisions, keys)
	var ended atomic.Bool
	var wg sync.WaitGroup
	all := make([][]seen, readers)
	for i := range readers {
		wg.Go(func() {
			for r := rand.New(rand.NewPCG(1, uint64(i))); !ended.Load(); {
				s := seen{key: r.IntN(keys), before: n.Revision()}
				resp, err := n.Range(context.Background(), get(fmt.Sprint(s.key)))
				if err != nil {
					t.Errorf("a get: %v", err)
					return
				}
				if s.header = resp.Header.Revision; len(resp.Kvs) > 0 {
					s.mod = resp.Kvs[0].ModRevision
				}
				all[i] = append(all[i], s)
			}
		})
	}
	r := rand.New(rand.NewPCG(2, 2))
	for range 3000 {
		writeSome(t, n, r, written)
	}
	ended.Store(true)
	wg.Wait()
	for _, s := range all {
		require.NotEmpty(t, s)
		for _, s := range s {
			require.Equal(t, written[s.key].newest(s.header), s.mod, "key %d at %d", s.key, s.header)
			require.GreaterOrEqual(t, s.header, s.before)
		}
	}
}

func get(key string) *pb.RangeRequest { return &pb.RangeRequest{Key: []byte(key)} }

// writeSome puts or deletes a key, or puts two of them in a transaction, and notes the revision.
func writeSome(t *testing.T, n *node, r *rand.Rand, written []revisions) {
	key, other := r.IntN(len(written)), r.IntN(len(written))
	note := func(deleted bool, keys ...int) {
		for _, k := range keys {
			written[k].at = append(written[k].at, n.Revision())
			written[k].deleted = append(written[k].deleted, deleted)
		}
	}
	switch r.IntN(4) {
	case 0:
		before := n.Revision()
		n.raw(n.encode(&pb.InternalRaftRequest{DeleteRange: &pb.DeleteRangeRequest{Key: []byte(fmt.Sprint(key))}}))
		if n.Revision() > before {
			note(true, key)
		}
	case 1:
		if key == other {
			return
		}
		var txn pb.TxnRequest
		for _, k := range []int{key, other} {
			txn.Success = append(txn.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
				RequestPut: &pb.PutRequest{Key: []byte(fmt.Sprint(k)), Value: []byte("two")}}})
		}
		n.raw(n.encode(&pb.InternalRaftRequest{Txn: &txn}))
		note(false, key, other)
	default:
		n.raw(n.encode(put(fmt.Sprint(key), "one")))
		note(false, key)
	}
}

// A read that was under way while a key was written, or the state was replaced, is not kept.
func TestLateReadsAreNotKept(t *testing.T) {
	var g recentGets
	g.init()
	kv := &mvccpb.KeyValue{Key: []byte("a"), Value: []byte("1"), ModRevision: 5}
	state := g.state.Load()
	g.keep(kv, 6, state)
	require.NotNil(t, g.find(kv.Key, 6, state))
	require.Nil(t, g.find(kv.Key, 4, state), "it was written later")
	require.Nil(t, g.find(kv.Key, 0, state))

	g.wrote([]*mvccpb.KeyValue{{Key: []byte("a")}}, 7)
	require.Nil(t, g.find(kv.Key, 7, state))
	g.keep(kv, 6, state)
	require.Nil(t, g.find(kv.Key, 7, state), "it was read before the write")
	kv.ModRevision = 7
	g.keep(kv, 7, state)
	require.NotNil(t, g.find(kv.Key, 8, state))

	require.NoError(t, g.restore(func() error {
		require.Nil(t, g.find(kv.Key, 8, g.state.Load()))
		g.keep(kv, 8, g.state.Load())
		return nil
	}))
	require.Nil(t, g.find(kv.Key, 8, g.state.Load()), "it is of the state before")
	g.keep(kv, 8, state)
	require.Nil(t, g.find(kv.Key, 8, g.state.Load()), "it was read in the state before")
}

// What is kept is bounded, and large values are not kept.
func TestRecentGetsAreBounded(t *testing.T) {
	var g recentGets
	g.init()
	for i := range 200_000 {
		g.keep(&mvccpb.KeyValue{Key: fmt.Append(nil, i), Value: make([]byte, 100), ModRevision: 1}, 1, 0)
	}
	count := 0
	for i := range g.shards {
		s := &g.shards[i]
		require.LessOrEqual(t, s.bytes, shardBytes)
		bytes := 0
		for k, kv := range s.kvs {
			bytes += keptGet + 2*len(k) + len(kv.Value)
		}
		require.Equal(t, bytes, s.bytes)
		count += len(s.kvs)
	}
	require.Greater(t, count, 10_000)
	large := &mvccpb.KeyValue{Key: []byte("large"), Value: make([]byte, largestGet), ModRevision: 1}
	g.keep(large, 1, 0)
	require.Nil(t, g.find(large.Key, 1, 0))
}
