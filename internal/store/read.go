package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/etcdserver/apply"
	"go.etcd.io/etcd/server/v3/etcdserver/txn"
)

// Range reads keys from this member's state. Errors: etcd's for a revision that is gone or
// not there yet, for permissions, and [ErrBadCommand] for an order that does not exist.
func (s *Store) Range(ctx context.Context, r *pb.RangeRequest) (resp *pb.RangeResponse, err error) {
	if err := checkRange(r); err != nil {
		return nil, err
	}
	asked, byValue := r, sortedByValue(r)
	if byValue {
		asked = unsorted(r)
	}
	allowed := func(user *auth.AuthInfo) error { return s.rights.auth.IsRangePermitted(user, r.Key, r.RangeEnd) }
	err = s.rights.permitted(ctx, allowed, func() error {
		if isPlainGet(asked) {
			resp, err = s.getPlain(ctx, asked)
		} else {
			resp, _, err = txn.Range(ctx, s.lg, s.kv, asked, true)
		}
		return err
	})
	if err == nil && byValue {
		err = s.values.sortRange(ctx, r, resp)
	}
	if err == nil {
		err = s.Resolve(ctx, resp.Kvs...)
	}
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// IsReadOnly reports whether a transaction writes nothing, so that [Store.Txn] can run it
// without ordering it. One that holds another transaction counts as writing.
func IsReadOnly(r *pb.TxnRequest) bool { return txn.IsTxnReadonly(r) }

// IsSerializable reports whether all reads of a transaction may be out of date.
func IsSerializable(r *pb.TxnRequest) bool { return txn.IsTxnSerializable(r) }

// Txn runs a read-only transaction on this member's state.
func (s *Store) Txn(ctx context.Context, r *pb.TxnRequest) (resp *pb.TxnResponse, err error) {
	if !IsReadOnly(r) {
		return nil, fmt.Errorf("%w: a transaction that writes has to be ordered", ErrBadCommand)
	}
	if err := checkTxn(r); err != nil {
		return nil, err
	}
	for range txnAttempts {
		resp, err = s.readTxn(ctx, r)
		if !errors.Is(err, ErrUnresolved) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// txnAttempts is how often a transaction is tried whose values change while they are compared.
const txnAttempts = 16

func (s *Store) readTxn(ctx context.Context, r *pb.TxnRequest) (resp *pb.TxnResponse, err error) {
	allowed := func(user *auth.AuthInfo) error { return apply.CheckTxnAuth(s.rights.auth, user, s.lessor, r) }
	asked := r
	j := judge{kv: s.kv, values: &s.values, concerns: comparedBeforehand}
	if slices.ContainsFunc(r.Compare, comparedBeforehand) {
		if err := s.rights.permit(ctx, allowed); err != nil {
			return nil, err
		}
		if asked, err = j.txn(ctx, r); err != nil {
			return nil, err
		}
	}
	if m := (extraction{}); m.concerns(asked) {
		asked = m.txn(asked)
	}
	err = s.rights.permitted(ctx, allowed, func() error {
		resp, _, err = txn.Txn(ctx, s.lg, asked, true, s.kv, s.lessor, false)
		return err
	})
	if err != nil {
		return nil, err
	}
	now := comparer{s.kv, s.database().refs}
	for i := range j.seen {
		if !now.holds(&j.seen[i], resp.Header.Revision) {
			return nil, ErrUnresolved
		}
	}
	if err := s.values.sortTxn(ctx, r, resp); err != nil {
		return nil, err
	}
	return resp, s.Resolve(ctx, keysOf(resp, nil)...)
}
