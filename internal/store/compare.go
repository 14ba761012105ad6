package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/etcdserver/apply"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// Records do not show which of two values is greater, and the bytes must not be fetched while commands are applied. So
// a transaction that compares order and finds a record has no effect. Its comparisons are then made before it is
// ordered again, with the condition that nothing that was compared changes until it is applied.

// ErrUnresolved is the result of a transaction that has to be ordered again as
// [Store.EncodeResolved] makes it. It had no effect.
var ErrUnresolved = errors.New("store: values have to be compared before the transaction is ordered")

// comparer compares the database with what commands expect.
type comparer struct {
	kv   *keys
	refs *refs
}

// prepare handles the comparisons of a command before it is applied. It makes comparisons by
// record itself, because equal values can be in the database once and in a body another time.
func (p comparer) prepare(c *command) error {
	for i := range c.unchanged {
		if !p.holds(&c.unchanged[i], 0) {
			return ErrUnresolved
		}
	}
	if c.request == nil || c.request.Txn == nil {
		return nil
	}
	return eachTxn(c.request.Txn, func(t *pb.TxnRequest) error { return p.prepareOne(c, t) })
}

// prepareOne handles those of one transaction, without the ones nested in it.
func (p comparer) prepareOne(c *command, t *pb.TxnRequest) error {
	for i, compare := range t.Compare {
		if compare.Target != pb.Compare_VALUE {
			continue
		}
		if r, ok := parseRecord(compare.GetValue()); ok && c.kind == kindLarge && comparedByRecord(compare) {
			t.Compare[i] = decided(compare, p.compareRecords(compare, r))
		}
		if comparedByOrder(compare) && p.findsRecord(compare) {
			return ErrUnresolved
		}
	}
	return nil
}

// compareRecords compares with a record as etcd compares with the value. A missing value is
// neither equal nor not equal to another one.
func (p comparer) compareRecords(c *pb.Compare, r record) bool {
	kvs := p.compared(c)
	for _, kv := range kvs {
		equal := false
		if at, ok := inBody(p.refs, kv); ok {
			equal = at.record == r
		} else {
			equal = r.verify(kv.Value)
		}
		if equal != (c.Result == pb.Compare_EQUAL) {
			return false
		}
	}
	return len(kvs) > 0
}

// findsRecord reports whether one of the values to compare is elsewhere.
func (p comparer) findsRecord(c *pb.Compare) bool {
	if p.refs.none() {
		return false
	}
	for _, kv := range p.compared(c) {
		if _, ok := inBody(p.refs, kv); ok {
			return true
		}
	}
	return false
}

// compared returns the keys that a comparison is about, as they are.
func (p comparer) compared(c *pb.Compare) []*mvccpb.KeyValue {
	tx := p.kv.WatchableKV.Read(mvcc.SharedBufReadTxMode, traceutil.TODO())
	defer tx.End()
	r, err := tx.Range(context.Background(), c.Key, rangeEnd(c.RangeEnd), mvcc.RangeOptions{})
	if err != nil {
		return nil
	}
	return r.KVs
}

// holds reports whether nothing in a range has changed, as of a revision (0: the newest). A
// key that is gone makes the count smaller, since none can have come in its place.
func (p comparer) holds(u *unchanged, at int64) bool {
	tx := p.kv.WatchableKV.Read(mvcc.SharedBufReadTxMode, traceutil.TODO())
	defer tx.End()
	r, err := tx.Range(context.Background(), u.key, rangeEnd(u.end),
		mvcc.RangeOptions{Rev: at, FastKeysOnly: true, WithTotalCount: true})
	if err != nil || int64(len(r.KVs)) != u.count {
		return false
	}
	for _, kv := range r.KVs {
		if kv.ModRevision > u.revision {
			return false
		}
	}
	return true
}

// rangeEnd translates the end of a range: a zero byte means the end of all keys.
func rangeEnd(end []byte) []byte {
	switch {
	case len(end) == 0:
		return nil
	case len(end) == 1 && end[0] == 0:
		return []byte{}
	}
	return end
}

// EncodeResolved is [Store.Encode] for a transaction whose result was [ErrUnresolved]. Read
// linearizably before. The result may be ErrUnresolved again if values change all the time.
func (s *Store) EncodeResolved(ctx context.Context, r *pb.InternalRaftRequest) (Encoded, error) {
	if r.Txn == nil {
		return s.Encode(ctx, r)
	}
	allowed := func(user *auth.AuthInfo) error { return apply.CheckTxnAuth(s.rights.auth, user, s.lessor, r.Txn) }
	if err := s.rights.permit(ctx, allowed); err != nil {
		return Encoded{}, err
	}
	j := judge{kv: s.kv, values: &s.values, concerns: comparedByOrder}
	t, err := j.txn(ctx, r.Txn)
	if err != nil {
		return Encoded{}, err
	}
	return s.encodeAs(ctx, &pb.InternalRaftRequest{Txn: t}, j.seen, nil)
}

// judge makes comparisons of values and puts their outcome in their place.
type judge struct {
	kv       mvcc.KV
	values   *values
	concerns func(*pb.Compare) bool
	seen     []unchanged
}

func (j *judge) txn(ctx context.Context, t *pb.TxnRequest) (*pb.TxnRequest, error) {
	return rewriteTxn(t, &judging{j, ctx})
}

// judging is a judge at work, within a context.
type judging struct {
	*judge
	ctx context.Context
}

func (j *judging) compare(c *pb.Compare) (*pb.Compare, error) {
	if !j.concerns(c) {
		return c, nil
	}
	holds, err := j.holds(j.ctx, c)
	if err != nil {
		return nil, err
	}
	return decided(c, holds), nil
}

func (j *judging) op(op *pb.RequestOp) *pb.RequestOp { return op }

// decided is a comparison with a fixed outcome. It names the same keys, so that a user who may not
// read them is still refused.
func decided(c *pb.Compare, holds bool) *pb.Compare {
	out := &pb.Compare{Key: c.Key, RangeEnd: c.RangeEnd, Target: pb.Compare_VERSION, Result: pb.Compare_LESS,
		TargetUnion: &pb.Compare_Version{Version: 0}}
	if holds {
		out.Result, out.TargetUnion = pb.Compare_GREATER, &pb.Compare_Version{Version: -1}
	}
	return out
}

// holds makes a comparison as etcd does, and records what it read.
func (j *judge) holds(ctx context.Context, c *pb.Compare) (bool, error) {
	r, err := j.kv.Range(ctx, c.Key, rangeEnd(c.RangeEnd), mvcc.RangeOptions{})
	if err != nil {
		return false, err
	}
	j.seen = append(j.seen, unchanged{c.Key, c.RangeEnd, int64(len(r.KVs)), r.Rev})
	for _, kv := range r.KVs {
		v := j.values.locate(kv)
		holds := false
		switch {
		case v.err != nil:
			err = v.err
		case c.Result == pb.Compare_EQUAL, c.Result == pb.Compare_NOT_EQUAL:
			holds = v.equals(c.GetValue()) == (c.Result == pb.Compare_EQUAL)
		default:
			var value []byte
			value, err = j.values.bytesOf(ctx, &v)
			order := bytes.Compare(value, c.GetValue())
			holds = c.Result == pb.Compare_LESS && order < 0 || c.Result == pb.Compare_GREATER && order > 0
		}
		if err != nil {
			return false, fmt.Errorf("compare key %q: %w", kv.Key, err)
		}
		if !holds {
			return false, nil
		}
	}
	return len(r.KVs) > 0, nil
}

// comparedBeforehand reports whether a transaction that is not ordered leaves a comparison to a judge: any that
// records may affect.
func comparedBeforehand(c *pb.Compare) bool { return comparedByOrder(c) || comparedByRecord(c) }
