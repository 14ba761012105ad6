package bench

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// removeKeys removes all keys of the run, within removeTimeout. It tries one connection after the other: members may
// have failed.
func (r *kvRun) removeKeys(ctx context.Context) error {
	r.report("removing the keys", 0, 0, 0)
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	remove := r.removeRange
	if r.API == MapAPI {
		remove = r.removeEach
	}
	pause := time.NewTicker(100 * time.Millisecond)
	defer pause.Stop()
	for i := 0; ; i++ {
		err := remove(ctx, r.targets[i%len(r.targets)])
		if err == nil {
			return nil
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return err
		}
	}
}

// removeRange removes everything with the prefix.
func (r *kvRun) removeRange(ctx context.Context, t *kvTarget) error {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, errLate)
	defer cancel()
	_, err := t.kv.DeleteRange(ctx, &etcdserverpb.DeleteRangeRequest{Key: []byte(r.KeyPrefix),
		RangeEnd: prefixEnd(r.KeyPrefix)})
	return err
}

// removeEach removes the keys one by one: the map service has no ranges.
func (r *kvRun) removeEach(ctx context.Context, t *kvTarget) error {
	s := &mapStore{}
	s.use(t)
	key := append([]byte(r.KeyPrefix), make([]byte, r.KeySize-len(r.KeyPrefix))...)
	for n := range r.workload.Known() {
		formatKey(key[len(r.KeyPrefix):], n)
		if _, _, err := s.remove(ctx, key); err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
	}
	return nil
}

// prefixEnd returns the first key after all keys with a prefix, which is not empty.
func prefixEnd(prefix string) []byte {
	end := []byte(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return []byte{0} // there is none: to the last key
}
