package server

import (
	"maps"
	"math"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
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
// the budget of the ones around them. What it costs is linear in the operations, of which there are few.
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
// transaction exclude each other, so they may put the same key.
func writesOf(ops []*pb.RequestOp) (map[string]struct{}, *ranges, error) {
	puts, deletes := map[string]struct{}{}, &ranges{}
	for _, op := range ops {
		if r := op.GetRequestDeleteRange(); r != nil {
			deletes.add(r.Key, r.RangeEnd)
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
		deletes.addAll(thenDeletes)
		deletes.addAll(elseDeletes)
	}
	for _, op := range ops {
		if r := op.GetRequestPut(); r != nil {
			if err := addPut(puts, deletes, string(r.Key)); err != nil {
				return nil, nil, err
			}
		}
	}
	return puts, deletes, nil
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
func addPuts(puts map[string]struct{}, deletes *ranges, nested map[string]struct{}) (map[string]struct{}, error) {
	if len(deletes.list) > 0 {
		for key := range nested {
			if deletes.contain(key) {
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

func addPut(puts map[string]struct{}, deletes *ranges, key string) error {
	if _, twice := puts[key]; twice || deletes.contain(key) {
		return rpctypes.ErrGRPCDuplicateKey
	}
	puts[key] = struct{}{}
	return nil
}

// keyRange is [from, to); to == "" means the end of all keys.
type keyRange struct{ from, to string }

// ranges is a set of key ranges that is sorted and merged when it is asked.
type ranges struct {
	list []keyRange
	// tidy: list is sorted by from, and ranges neither overlap nor touch.
	tidy bool
}

// add adds the range of a delete request: a single key if end is empty, everything from
// key on if end is a zero byte.
func (s *ranges) add(key, end []byte) {
	r := keyRange{string(key), string(end)}
	switch {
	case len(end) == 0:
		r.to = r.from + "\x00"
	case len(end) == 1 && end[0] == 0:
		r.to = ""
	case r.to <= r.from:
		return
	}
	s.list, s.tidy = append(s.list, r), false
}

func (s *ranges) addAll(o *ranges) {
	if len(o.list) > 0 {
		s.list, s.tidy = append(s.list, o.list...), false
	}
}

func (s *ranges) contain(key string) bool {
	s.merge()
	i, found := slices.BinarySearchFunc(s.list, key, func(r keyRange, key string) int {
		return strings.Compare(r.from, key)
	})
	if found {
		return true
	}
	return i > 0 && (s.list[i-1].to == "" || key < s.list[i-1].to)
}

func (s *ranges) merge() {
	if s.tidy {
		return
	}
	slices.SortFunc(s.list, func(a, b keyRange) int { return strings.Compare(a.from, b.from) })
	out := s.list[:0]
	for _, r := range s.list {
		if n := len(out); n > 0 && (out[n-1].to == "" || r.from <= out[n-1].to) {
			if last := &out[n-1]; last.to != "" && (r.to == "" || r.to > last.to) {
				last.to = r.to
			}
			continue
		}
		out = append(out, r)
	}
	s.list, s.tidy = out, true
}
