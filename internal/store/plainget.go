package store

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/etcdserver/txn"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// isPlainGet reports whether a request reads one key, with nothing that filters or sorts.
func isPlainGet(r *pb.RangeRequest) bool {
	return len(r.RangeEnd) == 0 && !r.KeysOnly && !r.CountOnly && !txn.HasRevisionFilters(r) &&
		txn.IsDefaultOrdering(r.SortTarget, r.SortOrder)
}

// plainGot is the answer to a plain get, in one allocation.
type plainGot struct {
	resp   pb.RangeResponse
	header pb.ResponseHeader
}

// recentGot is the answer to a get of a key that was read before, in one allocation.
type recentGot struct {
	plainGot
	kv  mvccpb.KeyValue
	kvs [1]*mvccpb.KeyValue
}

// getRecent answers a plain get of the newest revision if the key was read before, and not written since; nil: it was
// not. state is that of the recent gets.
func (s *Store) getRecent(key []byte, state uint64) *pb.RangeResponse {
	revision := s.kv.readable.Load() // if it is 0, no key is found
	kv := s.kv.recent.find(key, revision, state)
	if kv == nil {
		return nil
	}
	countedRanges.Inc()
	a := &recentGot{}
	a.kv.Key, a.kv.Value, a.kv.Lease, a.kv.Version = kv.Key, kv.Value, kv.Lease, kv.Version
	a.kv.CreateRevision, a.kv.ModRevision = kv.CreateRevision, kv.ModRevision
	a.kvs[0], a.header.Revision = &a.kv, revision
	a.resp.Header, a.resp.Count, a.resp.Kvs = &a.header, 1, a.kvs[:]
	return &a.resp
}

// getPlain answers a plain get as etcd's [txn.Range] does, and notes no steps.
func (s *Store) getPlain(ctx context.Context, r *pb.RangeRequest) (resp *pb.RangeResponse, err error) {
	began := time.Now()
	defer func() { txn.RangeSecObserve(err == nil, time.Since(began)) }()
	state := s.kv.recent.state.Load()
	if r.Revision <= 0 {
		if resp := s.getRecent(r.Key, state); resp != nil {
			return resp, nil
		}
	}
	tx := s.kv.Read(mvcc.ConcurrentReadTxMode, noSteps)
	defer tx.End()
	got, err := tx.Range(ctx, r.Key, nil, mvcc.RangeOptions{Rev: r.Revision, WithTotalCount: true})
	if err != nil {
		return nil, err
	}
	if r.Revision <= 0 && len(got.KVs) == 1 {
		s.kv.recent.keep(got.KVs[0], got.Rev, state)
	}
	a := &plainGot{header: pb.ResponseHeader{Revision: got.Rev}}
	a.resp.Header, a.resp.Count, a.resp.Kvs = &a.header, int64(got.Count), got.KVs
	if a.resp.Kvs == nil {
		a.resp.Kvs = []*mvccpb.KeyValue{}
	}
	return &a.resp, nil
}
