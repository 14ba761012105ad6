package server

import (
	"maps"
	"math"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/pkg/v3/adt"
)

// Checks that need nothing but the request. They come before a request is ordered, because a write
// transaction that fails in the middle would stop the state machine on every member (docs/internals/etcd.md,
// rule 7).

func checkRange(r *pb.RangeRequest) error {
	if len(r.Key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	if r.SortOrder < pb.RangeRequest_NONE || r.SortOrder > pb.RangeRequest_DESCEND ||
		r.SortTarget < pb.RangeRequest_KEY || r.SortTarget > pb.RangeRequest_VALUE {
		return rpctypes.ErrGRPCInvalidSortOption
	}
	return nil
}

// checkRangeStream adds what a stream of chunks in key order cannot do.
func checkRangeStream(r *pb.RangeRequest) error {
	if err := checkRange(r); err != nil {
		return err
	}
	byKey := r.SortTarget == pb.RangeRequest_KEY && r.SortOrder == pb.RangeRequest_ASCEND
	if r.SortOrder != pb.RangeRequest_NONE && !byKey {
		return status.Error(codes.Unimplemented, "RangeStream returns keys in ascending order only")
	}
	if r.MinModRevision != 0 || r.MaxModRevision != 0 || r.MinCreateRevision != 0 || r.MaxCreateRevision != 0 {
		return status.Error(codes.Unimplemented, "RangeStream does not filter by revision")
	}
	return nil
}

func checkPut(r *pb.PutRequest) error {
	switch {
	case len(r.Key) == 0:
		return rpctypes.ErrGRPCEmptyKey
	case r.IgnoreValue && len(r.Value) != 0:
		return rpctypes.ErrGRPCValueProvided
	case r.IgnoreLease && r.Lease != 0:
		return rpctypes.ErrGRPCLeaseProvided
	}
	return nil
}

func checkDelete(r *pb.DeleteRangeRequest) error {
	if len(r.Key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	return nil
}

// Bounds of nested transactions, besides MaxTxnOps, which bounds the operations of one level: txnLevels is how deep
// they may be nested, and txnOpsInAll how many times MaxTxnOps comparisons and operations all levels may have
// together. No client needs that many. Without a bound, a request of some megabytes has millions.
const (
	txnLevels   = 32
	txnOpsInAll = 128
)

// txnBudget is the rest of the bounds while a transaction is checked.
type txnBudget struct{ ops int }

// checkTxn checks a transaction of at most maxOps operations. Nested transactions share
// the budget of the ones around them. What it costs grows with the operations and the levels, which are bounded.
func checkTxn(r *pb.TxnRequest, maxOps int) error {
	left := &txnBudget{ops: min(maxOps, math.MaxInt/txnOpsInAll) * txnOpsInAll}
	if err := left.checkTxn(r, maxOps, 1); err != nil {
		return err
	}
	for _, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
		if _, _, err := writesOf(ops); err != nil {
			return err
		}
	}
	return nil
}

// checkTxn checks no operation of a transaction that has too many.
func (b *txnBudget) checkTxn(r *pb.TxnRequest, maxOps, level int) error {
	if r == nil {
		return rpctypes.ErrGRPCKeyNotFound
	}
	ops := max(len(r.Compare), len(r.Success), len(r.Failure))
	b.ops -= len(r.Compare) + len(r.Success) + len(r.Failure)
	if ops > maxOps || b.ops < 0 || level > txnLevels {
		return rpctypes.ErrGRPCTooManyOps
	}
	for _, c := range r.Compare {
		if c == nil || len(c.Key) == 0 {
			return rpctypes.ErrGRPCEmptyKey
		}
	}
	for _, branch := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range branch {
			if err := b.checkOp(op, maxOps-ops, level); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkOp also refuses operations that are missing where the message says which kind
// they are: nothing in the state machine expects them.
func (b *txnBudget) checkOp(op *pb.RequestOp, maxOps, level int) error {
	switch r := op.GetRequest().(type) {
	case *pb.RequestOp_RequestRange:
		if r.RequestRange != nil {
			return checkRange(r.RequestRange)
		}
	case *pb.RequestOp_RequestPut:
		if r.RequestPut != nil {
			return checkPut(r.RequestPut)
		}
	case *pb.RequestOp_RequestDeleteRange:
		if r.RequestDeleteRange != nil {
			return checkDelete(r.RequestDeleteRange)
		}
	case *pb.RequestOp_RequestTxn:
		return b.checkTxn(r.RequestTxn, maxOps, level+1)
	}
	return rpctypes.ErrGRPCKeyNotFound
}

// writesOf returns the keys that a branch may put and the ranges that it may delete, or
// ErrGRPCDuplicateKey if it could change a key twice. The two branches of a nested
// transaction exclude each other, so they may put the same key. As in etcd, a range up to the end of all keys, which a
// zero byte stands for, counts as empty.
func writesOf(ops []*pb.RequestOp) (map[string]struct{}, adt.IntervalTree, error) {
	puts, deletes := map[string]struct{}{}, adt.NewIntervalTree()
	for _, op := range ops {
		if r := op.GetRequestDeleteRange(); r != nil {
			deletes.Insert(deleted(r), struct{}{})
		}
	}
	for _, op := range ops {
		r := op.GetRequestTxn()
		if r == nil {
			continue
		}
		thenPuts, thenDeletes, err := writesOf(r.Success)
		if err != nil {
			return nil, nil, err
		}
		elsePuts, elseDeletes, err := writesOf(r.Failure)
		if err != nil {
			return nil, nil, err
		}
		if puts, err = addPuts(puts, deletes, union(thenPuts, elsePuts)); err != nil {
			return nil, nil, err
		}
		deletes.Union(thenDeletes, allKeys)
		deletes.Union(elseDeletes, allKeys)
	}
	for _, op := range ops {
		if r := op.GetRequestPut(); r != nil {
			key := string(r.Key)
			if _, twice := puts[key]; twice || deletes.Intersects(adt.NewStringAffinePoint(key)) {
				return nil, nil, rpctypes.ErrGRPCDuplicateKey
			}
			puts[key] = struct{}{}
		}
	}
	return puts, deletes, nil
}

var allKeys = adt.NewStringAffineInterval("\x00", "")

// deleted is the range of a request.
func deleted(r *pb.DeleteRangeRequest) adt.Interval {
	if len(r.RangeEnd) == 0 {
		return adt.NewStringAffinePoint(string(r.Key))
	}
	return adt.NewStringAffineInterval(string(r.Key), string(r.RangeEnd))
}

// union uses up both sets. It adds the smaller one to the larger one.
func union(a, b map[string]struct{}) map[string]struct{} {
	if len(a) < len(b) {
		a, b = b, a
	}
	maps.Copy(a, b)
	return a
}

// addPuts adds the keys of a nested transaction, and returns the set of both. It uses up both.
func addPuts(puts map[string]struct{}, deletes adt.IntervalTree,
	nested map[string]struct{}) (map[string]struct{}, error) {
	if deletes.Len() > 0 {
		for key := range nested {
			if deletes.Intersects(adt.NewStringAffinePoint(key)) {
				return nil, rpctypes.ErrGRPCDuplicateKey
			}
		}
	}
	small, large := puts, nested
	if len(small) > len(large) {
		small, large = large, small
	}
	for key := range small {
		if _, twice := large[key]; twice {
			return nil, rpctypes.ErrGRPCDuplicateKey
		}
	}
	return union(puts, nested), nil
}
