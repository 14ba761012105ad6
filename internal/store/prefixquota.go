package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// Quotas of prefixes bound the keys of the present state, not their history. They are part of the state: a command sets
// them, and every member refuses the same requests when it applies them. Their usage follows from the keys, and is kept
// in memory: prefixcount.go counts it.

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
	// Counting: not all keys are counted yet, so more may be used. The bounds apply to the usage so far.
	Counting bool `json:"counting,omitempty"`
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
)

// prefixQuotasKey holds the quotas in the meta bucket, as JSON of []recordedQuota. It stays when there are none any
// more.
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

// recordedQuota is a quota in the database.
type recordedQuota struct {
	PrefixQuota
	// From is the key from which on keys are not counted yet; nil: all are counted.
	From []byte `json:"from,omitempty"`
}

// prefixQuotas are the quotas and their usage. The apply goroutine changes them.
type prefixQuotas struct {
	refs func() *refs // of the database now
	step int          // countedKeys, but in tests
	some atomic.Bool  // there are some
	ever atomic.Bool  // the database has or had some

	mu      sync.RWMutex
	all     []counted     // by prefix
	changed chan struct{} // closed, and replaced, when quotas are set or more of their keys are counted
	stopped chan struct{} // closed when countQuotas has returned
}

func (p *prefixQuotas) init(now func() *refs) {
	p.refs, p.step, p.changed, p.stopped = now, countedKeys, make(chan struct{}), make(chan struct{})
}

// PrefixQuotas returns the quotas, by prefix.
func (s *Store) PrefixQuotas() []PrefixUsage {
	all, _ := s.quotas.now()
	usages := make([]PrefixUsage, len(all))
	for i := range all {
		usages[i] = all[i].PrefixUsage
		usages[i].Counting = all[i].from != nil
	}
	return usages
}

// HadPrefixQuotas reports whether the state has or had quotas: the commands that set them may be in the log still.
func (s *Store) HadPrefixQuotas() bool { return s.quotas.ever.Load() }

// now returns a copy of the quotas, and a channel that is closed when they change.
func (p *prefixQuotas) now() ([]counted, <-chan struct{}) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Clone(p.all), p.changed
}

// load reads the quotas of a database and counts their usage.
func (p *prefixQuotas) load(db *database, kv mvcc.KV) error {
	quotas, ever, err := readPrefixQuotas(db.be)
	if err != nil {
		return err
	}
	all := make([]counted, len(quotas))
	for i, q := range quotas {
		if all[i], err = recount(q, kv, db.refs); err != nil {
			return err
		}
	}
	p.ever.Store(ever)
	p.set(all)
	return nil
}

func readPrefixQuotas(be backend.Backend) (quotas []recordedQuota, ever bool, err error) {
	tx := be.ReadTx()
	tx.RLock()
	defer tx.RUnlock() // values are in the map of the file
	_, values := tx.UnsafeRange(schema.Meta, prefixQuotasKey, nil, 1)
	if len(values) == 0 {
		return nil, false, nil
	}
	if err := json.Unmarshal(values[0], &quotas); err != nil {
		return nil, true, fmt.Errorf("quotas of prefixes: %w", err)
	}
	return quotas, true, nil
}

func (p *prefixQuotas) set(all []counted) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = all
	p.some.Store(len(all) > 0)
	close(p.changed)
	p.changed = make(chan struct{})
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

// applyQuota sets a quota. What was used before may be more.
func (s *Store) applyQuota(q PrefixQuota) *Result {
	all, _ := s.quotas.now()
	i, known := findQuota(all, q.Prefix)
	switch {
	case q.Bytes == 0 && q.Keys == 0 && known:
		all = slices.Delete(all, i, i+1)
	case q.Bytes == 0 && q.Keys == 0:
	case known:
		all[i].PrefixQuota = q
	case len(all) >= mostPrefixQuotas:
		return &Result{Err: fmt.Errorf("%w: more than %d quotas", ErrBadCommand, mostPrefixQuotas)}
	default:
		all = slices.Insert(all, i, counted{PrefixUsage: PrefixUsage{PrefixQuota: q}, from: []byte(q.Prefix)})
	}
	return s.setQuotas(all, q.Prefix)
}

// findQuota returns where the quota of a prefix is, or where it would be.
func findQuota(all []counted, prefix string) (at int, known bool) {
	return slices.BinarySearchFunc(all, prefix, func(u counted, p string) int { return strings.Compare(u.Prefix, p) })
}

// setQuotas counts more keys of one of the quotas, and makes them those of the state.
func (s *Store) setQuotas(all []counted, prefix string) *Result {
	if i, known := findQuota(all, prefix); known {
		if err := all[i].more(s.kv, s.db.refs, s.quotas.step); err != nil {
			return &Result{Err: err}
		}
	}
	quotas := make([]recordedQuota, len(all))
	for i := range all {
		quotas[i] = recordedQuota{all[i].PrefixQuota, all[i].from}
	}
	b, err := json.Marshal(quotas)
	if err != nil {
		return &Result{Err: fmt.Errorf("%w: %w", ErrBadCommand, err)}
	}
	tx := s.db.be.BatchTx()
	tx.LockInsideApply()
	tx.UnsafePut(schema.Meta, prefixQuotasKey, b)
	tx.Unlock()
	s.quotas.ever.Store(true)
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
	return slices.ContainsFunc(p.all, func(u counted) bool {
		if end == nil {
			return bytes.HasPrefix(key, []byte(u.Prefix))
		}
		last := endOfPrefix(u.Prefix)
		return (len(end) == 0 || string(end) > u.Prefix) && (len(last) == 0 || string(key) < string(last))
	})
}

// check refuses a request that would use more than a quota. A transaction counts as the branch that uses more, without
// its deletions. A request that makes nothing larger is never refused. valueSize returns the size of a put's value.
func (p *prefixQuotas) check(kv mvcc.ReadView, r *pb.InternalRaftRequest,
	valueSize func(p *pb.PutRequest) int64) error {
	all, _ := p.now()
	for i := range all {
		u := &all[i]
		g := growth{kv: kv, refs: p.refs(), prefix: []byte(u.Prefix), valueSize: valueSize}
		size, keys := g.put(r.Put)
		if r.Txn != nil {
			size, keys = g.txn(r.Txn)
		}
		if u.Bytes > 0 && size > 0 && u.UsedBytes+size > u.Bytes || u.Keys > 0 && keys > 0 && u.UsedKeys+keys > u.Keys {
			return &PrefixQuotaError{u.PrefixUsage}
		}
	}
	return nil
}

// checks reports whether a request is to be checked.
func (p *prefixQuotas) checks(r *pb.InternalRaftRequest) bool {
	return p.some.Load() && (r.Put != nil || r.Txn != nil)
}

// checkPrefixes refuses a request, as its client sent it, that would use more than a quota.
func (s *Store) checkPrefixes(r *pb.InternalRaftRequest) error {
	if !s.quotas.checks(r) {
		return nil
	}
	return s.quotas.check(s.kv, r, func(p *pb.PutRequest) int64 { return int64(len(p.Value)) })
}

// checkPrefixesApplying is checkPrefixes of the request of a command.
func (s *Store) checkPrefixesApplying(r *pb.InternalRaftRequest) error {
	if !s.quotas.checks(r) {
		return nil
	}
	tx := s.kv.Read(mvcc.SharedBufReadTxMode, traceutil.TODO())
	defer tx.End()
	return s.quotas.check(tx, r, func(p *pb.PutRequest) int64 { return s.kv.valueSize(tx, p.Key, p.Value) })
}

// growth is by how much a request makes the keys with a prefix grow, at most.
type growth struct {
	kv        mvcc.ReadView
	refs      *refs
	prefix    []byte
	valueSize func(*pb.PutRequest) int64
}

func (g *growth) put(r *pb.PutRequest) (size, keys int64) {
	if r == nil || !bytes.HasPrefix(r.Key, g.prefix) {
		return 0, 0
	}
	before, there := present(g.kv, g.refs, r.Key)
	if r.IgnoreValue {
		return 0, 1 - there
	}
	return int64(len(r.Key)) + g.valueSize(r) - before, 1 - there
}

func (g *growth) txn(r *pb.TxnRequest) (size, keys int64) {
	s, k := g.branch(r.Success)
	t, l := g.branch(r.Failure)
	return max(s, t), max(k, l)
}

func (g *growth) branch(ops []*pb.RequestOp) (size, keys int64) {
	for _, op := range ops {
		s, k := g.put(op.GetRequestPut())
		if nested := op.GetRequestTxn(); nested != nil {
			s, k = g.txn(nested)
		}
		size, keys = size+s, keys+k
	}
	return size, keys
}
