package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// Quotas of prefixes bound the keys of the present state, not their history. They are part of the state: a command sets
// them, and every member refuses the same requests when it applies them. What is used follows from the keys, so it is
// counted when a database is opened, and kept in memory.

// PrefixQuota bounds the keys with a prefix. A bound of 0 is none.
type PrefixQuota struct {
	Prefix string `json:"prefix"`
	// Bytes of keys and values.
	Bytes int64 `json:"bytes,omitempty"`
	Keys  int64 `json:"keys,omitempty"`
}

// PrefixUsage is a quota and what is used of it.
type PrefixUsage struct {
	PrefixQuota
	UsedBytes int64 `json:"used_bytes"`
	UsedKeys  int64 `json:"used_keys"`
}

// PrefixQuotaError refuses a request that would use more than the quota of a prefix. Nothing happened. A retry may
// succeed after keys were deleted or the quota was changed.
type PrefixQuotaError struct{ PrefixUsage }

func (e *PrefixQuotaError) Error() string {
	return fmt.Sprintf("quota of prefix %q exceeded: %d bytes and %d keys are used, of %d and %d (0: no bound)", e.Prefix,
		e.UsedBytes, e.UsedKeys, e.Bytes, e.Keys)
}

const (
	// mostPrefixQuotas bounds the quotas, because each is looked at by each write.
	mostPrefixQuotas = 256
	// longestPrefix bounds the prefix of a quota.
	longestPrefix = 4 << 10
	// countedAtOnce is how many keys are read at once to count them.
	countedAtOnce = 1000
)

// prefixQuotasKey holds the quotas in the meta bucket, as JSON.
var prefixQuotasKey = []byte("braidPrefixQuotas")

// Check reports why a quota cannot be set.
func (q PrefixQuota) Check() error {
	if q.Prefix == "" || len(q.Prefix) > longestPrefix || !utf8.ValidString(q.Prefix) || q.Bytes < 0 || q.Keys < 0 {
		return fmt.Errorf("a quota has a prefix of 1 to %d bytes, which is text, and no negative bound", longestPrefix)
	}
	return nil
}

// QuotaCommand returns the command that sets the quota of a prefix; without bounds it removes it.
func QuotaCommand(q PrefixQuota) ([]byte, error) {
	b, err := json.Marshal(q)
	return append([]byte{kindQuota}, b...), err
}

// decodeQuota reads a quota. It is strict: what it accepts, all members must.
func decodeQuota(data []byte) (q PrefixQuota, err error) {
	if err = json.Unmarshal(data, &q); err == nil {
		err = q.Check()
	}
	if err != nil {
		return q, fmt.Errorf("%w: quota: %w", ErrBadCommand, err)
	}
	return q, nil
}

// prefixQuotas are the quotas and what is used of them. The apply goroutine changes them.
type prefixQuotas struct {
	some atomic.Bool // there are some

	mu  sync.RWMutex
	all []PrefixUsage // by prefix
}

// PrefixQuotas returns the quotas, by prefix.
func (s *Store) PrefixQuotas() []PrefixUsage {
	s.quotas.mu.RLock()
	defer s.quotas.mu.RUnlock()
	return slices.Clone(s.quotas.all)
}

// load counts what is used of the quotas of a database.
func (p *prefixQuotas) load(be backend.Backend, kv mvcc.ReadView) error {
	quotas, err := readPrefixQuotas(be)
	if err != nil {
		return err
	}
	all := make([]PrefixUsage, len(quotas))
	for i, q := range quotas {
		if all[i], err = count(q, kv); err != nil {
			return err
		}
	}
	p.set(all)
	return nil
}

func readPrefixQuotas(be backend.Backend) (quotas []PrefixQuota, err error) {
	tx := be.ReadTx()
	tx.RLock()
	defer tx.RUnlock() // values are in the map of the file
	_, values := tx.UnsafeRange(schema.Meta, prefixQuotasKey, nil, 1)
	if len(values) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(values[0], &quotas); err != nil {
		return nil, fmt.Errorf("quotas of prefixes: %w", err)
	}
	return quotas, nil
}

func (p *prefixQuotas) set(all []PrefixUsage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = all
	p.some.Store(len(all) > 0)
}

// count counts the keys with a prefix.
func count(q PrefixQuota, kv mvcc.ReadView) (PrefixUsage, error) {
	u := PrefixUsage{PrefixQuota: q}
	for from, end := []byte(q.Prefix), endOfPrefix(q.Prefix); ; {
		r, err := kv.Range(context.Background(), from, end, mvcc.RangeOptions{Limit: countedAtOnce})
		if err != nil {
			return u, err
		}
		for _, kv := range r.KVs {
			u.UsedBytes, u.UsedKeys = u.UsedBytes+sizeOf(kv.Key, kv.Value), u.UsedKeys+1
		}
		if len(r.KVs) < countedAtOnce {
			return u, nil
		}
		from = append(bytes.Clone(r.KVs[len(r.KVs)-1].Key), 0)
	}
}

// endOfPrefix is the end of the range of keys with a prefix, as etcd's store expects it.
func endOfPrefix(prefix string) []byte {
	end := []byte(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return []byte{} // of all keys
}

// sizeOf is how much a key counts. A record counts as the value that it stands for, on every member.
func sizeOf(key, value []byte) int64 {
	if r, ok := parseRecord(value); ok {
		return int64(len(key)) + int64(min(r.size, 1<<40))
	}
	return int64(len(key)) + int64(len(value))
}

// applyQuota sets a quota. What was used before may be more.
func (s *Store) applyQuota(q PrefixQuota) *Result {
	all := slices.DeleteFunc(s.PrefixQuotas(), func(u PrefixUsage) bool { return u.Prefix == q.Prefix })
	if q.Bytes > 0 || q.Keys > 0 {
		if len(all) >= mostPrefixQuotas {
			return &Result{Err: fmt.Errorf("%w: more than %d quotas", ErrBadCommand, mostPrefixQuotas)}
		}
		u, err := count(q, s.kv)
		if err != nil {
			return &Result{Err: err}
		}
		all = append(all, u)
		slices.SortFunc(all, func(a, b PrefixUsage) int { return strings.Compare(a.Prefix, b.Prefix) })
	}
	quotas := make([]PrefixQuota, len(all))
	for i := range all {
		quotas[i] = all[i].PrefixQuota
	}
	b, err := json.Marshal(quotas)
	if err != nil {
		return &Result{Err: fmt.Errorf("%w: %w", ErrBadCommand, err)}
	}
	tx := s.db.be.BatchTx()
	tx.LockInsideApply()
	tx.UnsafePut(schema.Meta, prefixQuotasKey, b)
	tx.Unlock()
	s.quotas.set(all)
	return &Result{}
}

// concerns reports whether a range has keys with a prefix of a quota. end is what the store expects.
func (p *prefixQuotas) concerns(key, end []byte) bool {
	if !p.some.Load() {
		return false
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.ContainsFunc(p.all, func(u PrefixUsage) bool {
		if end == nil {
			return bytes.HasPrefix(key, []byte(u.Prefix))
		}
		last := endOfPrefix(u.Prefix)
		return (len(end) == 0 || string(end) > u.Prefix) && (len(last) == 0 || string(key) < string(last))
	})
}

// add counts a key that was written or deleted.
func (p *prefixQuotas) add(key []byte, size, keys int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.all {
		if u := &p.all[i]; bytes.HasPrefix(key, []byte(u.Prefix)) {
			u.UsedBytes, u.UsedKeys = u.UsedBytes+size, u.UsedKeys+keys
		}
	}
}

// put counts a put in a transaction, before it.
func (p *prefixQuotas) put(tx mvcc.ReadView, key, value []byte) {
	if p.concerns(key, nil) {
		before, keys := present(tx, key)
		p.add(key, sizeOf(key, value)-before, 1-keys)
	}
}

// delete counts the deletion of a range in a transaction, before it.
func (p *prefixQuotas) delete(tx mvcc.ReadView, key, end []byte) {
	if !p.concerns(key, end) {
		return
	}
	r, err := tx.Range(context.Background(), key, end, mvcc.RangeOptions{})
	if err != nil {
		return // deleting fails as well
	}
	for _, kv := range r.KVs {
		p.add(kv.Key, -sizeOf(kv.Key, kv.Value), -1)
	}
}

// present is the size of a key, and 1 if there is one.
func present(kv mvcc.ReadView, key []byte) (size, keys int64) {
	r, err := kv.Range(context.Background(), key, nil, mvcc.RangeOptions{})
	if err != nil || len(r.KVs) == 0 {
		return 0, 0
	}
	return sizeOf(key, r.KVs[0].Value), 1
}

// check refuses a request that would use more than a quota. Of a transaction the branch counts that uses more, without
// what it deletes. What makes nothing larger is never refused.
func (p *prefixQuotas) check(kv mvcc.ReadView, r *pb.InternalRaftRequest) error {
	if !p.some.Load() || r.Put == nil && r.Txn == nil {
		return nil
	}
	p.mu.RLock()
	all := slices.Clone(p.all)
	p.mu.RUnlock()
	for _, u := range all {
		g := growth{kv: kv, prefix: []byte(u.Prefix)}
		size, keys := g.put(r.Put)
		if r.Txn != nil {
			size, keys = g.txn(r.Txn)
		}
		if u.Bytes > 0 && size > 0 && u.UsedBytes+size > u.Bytes || u.Keys > 0 && keys > 0 && u.UsedKeys+keys > u.Keys {
			return &PrefixQuotaError{u}
		}
	}
	return nil
}

// growth is by how much a request makes the keys with a prefix grow, at most.
type growth struct {
	kv     mvcc.ReadView
	prefix []byte
}

func (g growth) put(r *pb.PutRequest) (size, keys int64) {
	if r == nil || !bytes.HasPrefix(r.Key, g.prefix) {
		return 0, 0
	}
	before, there := present(g.kv, r.Key)
	if r.IgnoreValue {
		return 0, 1 - there
	}
	return sizeOf(r.Key, r.Value) - before, 1 - there
}

func (g growth) txn(r *pb.TxnRequest) (size, keys int64) {
	s, k := g.branch(r.Success)
	t, l := g.branch(r.Failure)
	return max(s, t), max(k, l)
}

func (g growth) branch(ops []*pb.RequestOp) (size, keys int64) {
	for _, op := range ops {
		s, k := g.put(op.GetRequestPut())
		if nested := op.GetRequestTxn(); nested != nil {
			s, k = g.txn(nested)
		}
		size, keys = size+s, keys+k
	}
	return size, keys
}
