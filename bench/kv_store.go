package bench

import (
	"context"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// kvStore is one client's access to a key-value service, one request at a time. Returned values are valid until the
// next request.
type kvStore interface {
	// use directs further requests to a connection.
	use(t *kvTarget)
	get(ctx context.Context, key []byte) (kvSeen, error)
	// scan returns the keys from a key on, at most a given number.
	scan(ctx context.Context, key []byte, limit int) ([]kvSeen, error)
	// put returns the revision of the write, 0 if the service has none.
	put(ctx context.Context, key, value []byte) (revision int64, err error)
	// swap puts the value if the key is unchanged since seen. If not, done is false, and now is its current state.
	swap(ctx context.Context, seen kvSeen, value []byte) (done bool, now kvSeen, err error)
	// remove returns revision 0 if there was no such key, or the service has no revisions.
	remove(ctx context.Context, key []byte) (removed bool, revision int64, err error)
	// grant grants a lease with an id of the server's choice.
	grant(ctx context.Context) error
}

// kvSeen is a key as a request read it.
type kvSeen struct {
	key, value []byte
	found      bool
	revision   int64 // of the last write of the key; 0 if there is none
}

// etcdStore uses etcd's API. Its requests reuse the same memory.
type etcdStore struct {
	kv       etcdserverpb.KVClient
	leases   etcdserverpb.LeaseClient
	range1   etcdserverpb.RangeRequest
	rangeN   etcdserverpb.RangeRequest
	putting  etcdserverpb.PutRequest
	removing etcdserverpb.DeleteRangeRequest
	guard    etcdserverpb.Compare
	expected etcdserverpb.Compare_ModRevision
	txn      etcdserverpb.TxnRequest
	granting etcdserverpb.LeaseGrantRequest
	seen     []kvSeen
}

// newEtcdStore returns the store of a client. Scans end before the key end.
func newEtcdStore(serializable bool, end []byte) *etcdStore {
	s := &etcdStore{}
	s.granting.TTL = grantedSeconds
	s.range1.Serializable = serializable
	s.rangeN.Serializable, s.rangeN.RangeEnd = serializable, end
	s.guard.Target, s.guard.Result = etcdserverpb.Compare_MOD, etcdserverpb.Compare_EQUAL
	s.guard.TargetUnion = &s.expected
	s.txn.Compare = []*etcdserverpb.Compare{&s.guard}
	s.txn.Success = []*etcdserverpb.RequestOp{{Request: &etcdserverpb.RequestOp_RequestPut{RequestPut: &s.putting}}}
	s.txn.Failure = []*etcdserverpb.RequestOp{{Request: &etcdserverpb.RequestOp_RequestRange{RequestRange: &s.range1}}}
	return s
}

func (s *etcdStore) use(t *kvTarget) { s.kv, s.leases = t.kv, t.leases }

func (s *etcdStore) get(ctx context.Context, key []byte) (kvSeen, error) {
	s.range1.Key = key
	r, err := s.kv.Range(ctx, &s.range1)
	if err != nil {
		return kvSeen{}, err
	}
	return onlyOne(key, r), nil
}

// onlyOne returns the key in the answer to a request for one key.
func onlyOne(key []byte, r *etcdserverpb.RangeResponse) kvSeen {
	if len(r.Kvs) == 0 {
		return kvSeen{key: key}
	}
	return kvSeen{key: key, value: r.Kvs[0].Value, found: true, revision: r.Kvs[0].ModRevision}
}

func (s *etcdStore) scan(ctx context.Context, key []byte, limit int) ([]kvSeen, error) {
	s.rangeN.Key, s.rangeN.Limit = key, int64(limit)
	r, err := s.kv.Range(ctx, &s.rangeN)
	if err != nil {
		return nil, err
	}
	s.seen = s.seen[:0]
	for _, kv := range r.Kvs {
		s.seen = append(s.seen, kvSeen{key: kv.Key, value: kv.Value, found: true, revision: kv.ModRevision})
	}
	return s.seen, nil
}

func (s *etcdStore) put(ctx context.Context, key, value []byte) (int64, error) {
	s.putting.Key, s.putting.Value = key, value
	r, err := s.kv.Put(ctx, &s.putting)
	return r.GetHeader().GetRevision(), err
}

func (s *etcdStore) swap(ctx context.Context, seen kvSeen, value []byte) (bool, kvSeen, error) {
	s.putting.Key, s.putting.Value = seen.key, value
	return s.guarded(ctx, &s.txn, seen, kvSeen{key: seen.key, value: value, found: true})
}

// removeIf removes the key if it is unchanged since seen. If not, done is false, and now is its current state. If there
// was no such key, the revision is 0.
func (s *etcdStore) removeIf(ctx context.Context, seen kvSeen) (done bool, now kvSeen, err error) {
	s.removing.Key = seen.key
	txn := &etcdserverpb.TxnRequest{Compare: s.txn.Compare, Failure: s.txn.Failure}
	txn.Success = []*etcdserverpb.RequestOp{{
		Request: &etcdserverpb.RequestOp_RequestDeleteRange{RequestDeleteRange: &s.removing}}}
	done, now, err = s.guarded(ctx, txn, seen, kvSeen{key: seen.key})
	if done && seen.revision == 0 {
		now.revision = 0
	}
	return done, now, err
}

// guarded makes a transaction if the key is unchanged since seen. then is the key's state after that, without the
// revision.
func (s *etcdStore) guarded(ctx context.Context, txn *etcdserverpb.TxnRequest, seen, then kvSeen) (bool, kvSeen,
	error) {
	s.guard.Key, s.expected.ModRevision, s.range1.Key = seen.key, seen.revision, seen.key
	r, err := s.kv.Txn(ctx, txn)
	switch {
	case err != nil:
		return false, kvSeen{}, err
	case r.Succeeded:
		then.revision = r.GetHeader().GetRevision()
		return true, then, nil
	case len(r.Responses) != 1:
		return false, kvSeen{key: seen.key}, nil
	}
	return false, onlyOne(seen.key, r.Responses[0].GetResponseRange()), nil
}

func (s *etcdStore) remove(ctx context.Context, key []byte) (bool, int64, error) {
	s.removing.Key = key
	r, err := s.kv.DeleteRange(ctx, &s.removing)
	if err != nil || r.Deleted == 0 {
		return false, 0, err
	}
	return true, r.GetHeader().GetRevision(), nil
}

// grantedSeconds is how long the leases of a run live: longer than it takes, and not much longer.
const grantedSeconds = 600

func (s *etcdStore) grant(ctx context.Context) error {
	_, err := s.leases.LeaseGrant(ctx, &s.granting)
	return err
}
