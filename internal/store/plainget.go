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

// getPlain answers a plain get as etcd's [txn.Range] does, and notes no steps.
func (s *Store) getPlain(ctx context.Context, r *pb.RangeRequest) (resp *pb.RangeResponse, err error) {
	began := time.Now()
	defer func() { txn.RangeSecObserve(err == nil, time.Since(began)) }()
	tx := s.kv.Read(mvcc.ConcurrentReadTxMode, noSteps)
	defer tx.End()
	got, err := tx.Range(ctx, r.Key, nil, mvcc.RangeOptions{Rev: r.Revision, WithTotalCount: true})
	if err != nil {
		return nil, err
	}
	a := &plainGot{header: pb.ResponseHeader{Revision: got.Rev}}
	a.resp.Header, a.resp.Count, a.resp.Kvs = &a.header, int64(got.Count), got.KVs
	if a.resp.Kvs == nil {
		a.resp.Kvs = []*mvccpb.KeyValue{}
	}
	return &a.resp, nil
}
