package store

import (
	"bytes"
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// What is used of a quota is counted in steps, in the order of the keys. A command makes each step, so all members have
// counted the same keys at each place in the order, and refuse the same requests. A step is bounded, because nothing
// else is applied meanwhile. The key at which the next step begins is recorded with the quota. A write changes the
// usage if its key is counted; if not, a later step will find the key as it is then.
//
// The primary lessor orders the steps, one after the other. Where there is none, or a command is lost, they continue
// later.

const (
	// countedKeys and countedBytes bound the keys that a step counts, and the bytes of values that it reads.
	countedKeys, countedBytes = 2000, 4 << 20
	// walkedAtOnce is how many keys are read at once.
	walkedAtOnce = 32
	// countRetry is the time after which a step is ordered again.
	countRetry = time.Second
)

// counted is a quota with its usage.
type counted struct {
	PrefixUsage
	// from is the key from which on keys are not counted; nil: all are counted.
	from []byte
}

// has reports whether a key counts.
func (u *counted) has(key []byte) bool {
	return bytes.HasPrefix(key, []byte(u.Prefix)) && (u.from == nil || bytes.Compare(key, u.from) < 0)
}

// more counts the next keys, at most that many, if not all are counted.
func (u *counted) more(kv mvcc.KV, r *refs, most int) (err error) {
	if u.from == nil {
		return nil
	}
	tx := kv.Read(mvcc.SharedBufReadTxMode, traceutil.TODO())
	defer tx.End()
	keys, read := 0, 0
	u.from, err = walk(tx, u.from, endOfPrefix(u.Prefix), func(kv *mvccpb.KeyValue) bool {
		if keys == most || read >= countedBytes {
			return false
		}
		keys, read = keys+1, read+len(kv.Value)
		u.UsedBytes, u.UsedKeys = u.UsedBytes+sizeOf(r, kv), u.UsedKeys+1
		return true
	})
	return err
}

// recount counts again what was counted of a quota.
func recount(q recordedQuota, kv mvcc.KV, r *refs) (u counted, err error) {
	u = counted{PrefixUsage: PrefixUsage{PrefixQuota: q.PrefixQuota}, from: q.From}
	end := endOfPrefix(q.Prefix)
	if q.From != nil {
		end = q.From
	}
	tx := kv.Read(mvcc.SharedBufReadTxMode, traceutil.TODO())
	defer tx.End()
	_, err = walk(tx, []byte(q.Prefix), end, func(kv *mvccpb.KeyValue) bool {
		u.UsedBytes, u.UsedKeys = u.UsedBytes+sizeOf(r, kv), u.UsedKeys+1
		return true
	})
	return u, err
}

// walk visits the keys of a range in their order, until visit returns false: next is the key that it refused, nil if it
// refused none. end is what the store expects.
func walk(view mvcc.ReadView, from, end []byte, visit func(*mvccpb.KeyValue) bool) (next []byte, err error) {
	for {
		r, err := view.Range(context.Background(), from, end, mvcc.RangeOptions{Limit: walkedAtOnce})
		if err != nil {
			return from, err
		}
		for _, kv := range r.KVs {
			if !visit(kv) {
				return kv.Key, nil
			}
		}
		if len(r.KVs) < walkedAtOnce || end == nil {
			return nil, nil
		}
		from = append(bytes.Clone(r.KVs[len(r.KVs)-1].Key), 0)
	}
}

// sizeOf returns the bytes of a key and of its value, which may be in a body. It is equal on every member.
func sizeOf(r *refs, kv *mvccpb.KeyValue) int64 {
	if p, ok := inBody(r, kv); ok {
		return int64(len(kv.Key)) + int64(p.record.size)
	}
	return int64(len(kv.Key)) + int64(len(kv.Value))
}

// present is the size of a key, and 1 if there is one.
func present(kv mvcc.ReadView, r *refs, key []byte) (size, keys int64) {
	_, _ = walk(kv, key, nil, func(kv *mvccpb.KeyValue) bool {
		size, keys = sizeOf(r, kv), 1
		return true
	})
	return size, keys
}

// add counts a key that is written or deleted.
func (p *prefixQuotas) add(key []byte, size, keys int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.all {
		if u := &p.all[i]; u.has(key) {
			u.UsedBytes, u.UsedKeys = u.UsedBytes+size, u.UsedKeys+keys
		}
	}
}

// put counts a put in a transaction, before it. valueSize is the size of the value that it stands for.
func (p *prefixQuotas) put(tx mvcc.ReadView, key []byte, valueSize int64) {
	if p.concerns(key, nil) {
		before, keys := present(tx, p.refs(), key)
		p.add(key, int64(len(key))+valueSize-before, 1-keys)
	}
}

// delete counts the deletion of a range in a transaction, before it.
func (p *prefixQuotas) delete(tx mvcc.ReadView, key, end []byte) {
	if !p.concerns(key, end) {
		return
	}
	r := p.refs()
	_, _ = walk(tx, key, end, func(kv *mvccpb.KeyValue) bool { // if it fails, deleting does as well
		p.add(kv.Key, -sizeOf(r, kv), -1)
		return true
	})
}

// countCommand returns the command for a step of counting the keys of the quota of a prefix.
func countCommand(prefix string) []byte { return append([]byte{kindCount}, prefix...) }

// applyCount is a step of counting the keys of a quota, if not all are counted.
func (s *Store) applyCount(prefix string) *Result {
	all, _ := s.quotas.now()
	if i, known := findQuota(all, prefix); !known || all[i].from == nil {
		return &Result{}
	}
	return s.setQuotas(all, prefix)
}

// uncounted returns a prefix whose keys are not all counted, and a channel that is closed when that may have changed.
func (p *prefixQuotas) uncounted() (prefix string, some bool, changed <-chan struct{}) {
	all, changed := p.now()
	for i := range all {
		if all[i].from != nil {
			return all[i].Prefix, true, changed
		}
	}
	return "", false, changed
}

// countQuotas orders the steps of counting while this member is the primary lessor.
func (s *Store) countQuotas() {
	defer close(s.quotas.stopped)
	for {
		var again <-chan time.Time
		prefix, some, changed := s.quotas.uncounted()
		if some {
			again = time.After(countRetry)
			if s.leases.IsPrimary() {
				s.wanted.add(countCommand(prefix))
			}
		}
		select {
		case <-changed:
		case <-again:
		case <-s.latch.failed:
			return
		case <-s.stop:
			return
		}
	}
}

// AwaitCounted returns when all keys of the quota of a prefix are counted here, or there is no such quota.
func (s *Store) AwaitCounted(ctx context.Context, prefix string) error {
	for {
		all, changed := s.quotas.now()
		if i, known := findQuota(all, prefix); !known || all[i].from == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.latch.failed:
			return s.latch.get()
		case <-s.stop:
			return ErrClosed
		}
	}
}
