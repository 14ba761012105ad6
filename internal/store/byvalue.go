package store

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"sort"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/etcdserver/txn"
)

// A range that is sorted by value is read without order and limit. Both are applied when the
// values are known.

// unsorted is a range without its order and without the limits that depend on the order. If no order is named, etcd
// sorts the first keys of the range, one more than the limit; braid does the same.
func unsorted(r *pb.RangeRequest) *pb.RangeRequest {
	limit := int64(0)
	if r.Limit > 0 && r.Limit < math.MaxInt64 && r.SortOrder == pb.RangeRequest_NONE && !txn.HasRevisionFilters(r) {
		limit = r.Limit + 1
	}
	return &pb.RangeRequest{
		Limit: limit,
		Key:   r.Key, RangeEnd: r.RangeEnd, Revision: r.Revision, Serializable: r.Serializable,
		MinModRevision: r.MinModRevision, MaxModRevision: r.MaxModRevision,
		MinCreateRevision: r.MinCreateRevision, MaxCreateRevision: r.MaxCreateRevision,
	}
}

// sortTxn sorts the ranges of a transaction's response that were asked for by value.
func (s *values) sortTxn(ctx context.Context, asked *pb.TxnRequest, r *pb.TxnResponse) error {
	ops := asked.Success
	if !r.Succeeded {
		ops = asked.Failure
	}
	for i, op := range ops {
		var err error
		switch o := op.Request.(type) {
		case *pb.RequestOp_RequestRange:
			if sortedByValue(o.RequestRange) {
				err = s.sortRange(ctx, o.RequestRange, r.Responses[i].GetResponseRange())
			}
		case *pb.RequestOp_RequestTxn:
			err = s.sortTxn(ctx, o.RequestTxn, r.Responses[i].GetResponseTxn())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sortedPrefix is how many bytes of a fetched value are kept to sort by. Only values with an equal prefix are fetched
// again, two at a time.
const sortedPrefix = 4 << 10

// sorted is a key that is being sorted by value.
type sorted struct {
	value
	prefix []byte // of the value; all of it unless it is longer than sortedPrefix
}

// sortRange sorts and limits the result of an unsorted range. Large values are not yet in it.
func (s *values) sortRange(ctx context.Context, asked *pb.RangeRequest, r *pb.RangeResponse) error {
	all := make([]sorted, len(r.Kvs))
	for i, kv := range r.Kvs {
		all[i].value = s.locate(kv)
		b, err := s.bytesOf(ctx, &all[i].value)
		if err != nil {
			return err
		}
		if all[i].prefix = b; all[i].elsewhere {
			all[i].prefix = bytes.Clone(b[:min(len(b), sortedPrefix)])
		}
	}
	by := &byValue{all: all, compare: func(a, b *sorted) (int, error) { return s.compareValues(ctx, a, b) }}
	if asked.SortOrder == pb.RangeRequest_DESCEND {
		sort.Sort(sort.Reverse(by))
	} else {
		sort.Sort(by)
	}
	if by.err != nil {
		return by.err
	}
	if asked.Limit > 0 && int64(len(all)) > asked.Limit {
		all, r.More = all[:asked.Limit], true
	} else {
		r.More = false
	}
	r.Kvs = make([]*mvccpb.KeyValue, len(all))
	for i := range all {
		if r.Kvs[i] = all[i].kv; asked.KeysOnly {
			r.Kvs[i].Value = nil
		}
	}
	return nil
}

// byValue is sorted by the same algorithm as in etcd, which decides in which order keys with equal values come.
type byValue struct {
	all     []sorted
	compare func(a, b *sorted) (int, error)
	err     error // the first one
}

// Len implements sort.Interface.
func (b *byValue) Len() int { return len(b.all) }

// Swap implements sort.Interface.
func (b *byValue) Swap(i, j int) { b.all[i], b.all[j] = b.all[j], b.all[i] }

// Less implements sort.Interface.
func (b *byValue) Less(i, j int) bool {
	c, err := b.compare(&b.all[i], &b.all[j])
	b.err = cmp.Or(b.err, err)
	return c < 0
}

// compareValues compares two values, by their beginnings if that is enough.
func (s *values) compareValues(ctx context.Context, a, b *sorted) (int, error) {
	n := min(len(a.prefix), len(b.prefix))
	if c := bytes.Compare(a.prefix[:n], b.prefix[:n]); c != 0 {
		return c, nil
	}
	if uint64(n) == a.size() || uint64(n) == b.size() { // one is the beginning of the other
		return cmp.Compare(a.size(), b.size()), nil
	}
	if a.elsewhere && b.elsewhere && a.place.record == b.place.record {
		return 0, nil
	}
	left, err := s.bytesOf(ctx, &a.value)
	if err != nil {
		return 0, err
	}
	right, err := s.bytesOf(ctx, &b.value)
	return bytes.Compare(left, right), err
}
