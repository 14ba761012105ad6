package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Prefixes of the resources.
const (
	leasePrefix = "/registry/leases/"
	nodePrefix  = "/registry/minions/"
	podPrefix   = "/registry/pods/"
	eventPrefix = "/registry/events/"
)

// resources are the resources that are listed and watched.
var resources = []string{nodePrefix, podPrefix, leasePrefix, eventPrefix}

// object is an object that the API servers store.
type object struct {
	key      []byte
	size     int
	mu       sync.Mutex // held by a request
	revision int64      // of the last write; 0: there is none
}

func newObject(key string, size int) *object { return &object{key: []byte(key), size: size} }

// clusterObjects are the objects that exist during the whole run.
type clusterObjects struct{ leases, statuses []*object }

// objectBytes are the bytes of all values.
var objectBytes = sync.OnceValue(func() []byte {
	random, b := rand.NewChaCha8([32]byte{}), make([]byte, statusBytes)
	_, _ = random.Read(b)
	return b
})

// value returns a value with the current time, from which the delay of its event counts.
func (r *kubernetesRun) value(size int) []byte {
	v := append([]byte(nil), objectBytes()[:size]...)
	binary.LittleEndian.PutUint64(v, uint64(r.now()))
	return v
}

// create creates the objects that exist during the whole run.
func (r *kubernetesRun) create(ctx context.Context) (*clusterObjects, error) {
	var o clusterObjects
	var all []*object
	for i := range r.Objects {
		o.leases = append(o.leases, newObject(fmt.Sprintf("%skube-node-lease/node-%05d", leasePrefix, i), leaseBytes))
		o.statuses = append(o.statuses, newObject(fmt.Sprintf("%snode-%05d", nodePrefix, i), statusBytes))
		for p := range r.PodsPerNode {
			all = append(all, newObject(fmt.Sprintf("%sdefault/node-%05d-pod-%03d", podPrefix, i, p), podBytes))
		}
	}
	all = append(append(all, o.leases...), o.statuses...)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	const creators = 64
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range creators {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(all) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := r.update(ctx, all[i]); err != nil {
					cancel(fmt.Errorf("creating %s: %w", all[i].key, err))
				}
				if i%1000 == 0 && r.Progress != nil {
					r.Progress(Progress{Protocol: r.name, Phase: "creating", Elapsed: time.Since(began), Completed: i})
				}
			}
		})
	}
	wg.Wait()
	return &o, context.Cause(ctx)
}

// store returns access to the next connection, with a limit of time.
func (r *kubernetesRun) store(ctx context.Context) (*etcdStore, context.Context, context.CancelFunc) {
	s := newEtcdStore(false, nil)
	s.use(r.target())
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	return s, ctx, cancel
}

func (r *kubernetesRun) target() *kvTarget { return r.targets[int(r.turn.Add(1))%len(r.targets)] }

// update puts an object as Kubernetes' store does: if its revision is the expected one, 0 for a new object. If not, it
// is put again with the revision that the answer has.
func (r *kubernetesRun) update(ctx context.Context, o *object) error {
	return r.write(ctx, o, 0)
}

func (r *kubernetesRun) write(ctx context.Context, o *object, lease int64) error {
	s, ctx, cancel := r.store(ctx)
	defer cancel()
	s.putting.Lease = lease
	return r.guarded(o, func(seen kvSeen) (bool, kvSeen, error) { return s.swap(ctx, seen, r.value(o.size)) })
}

// remove deletes an object if its revision is the expected one.
func (r *kubernetesRun) remove(ctx context.Context, o *object) error {
	s, ctx, cancel := r.store(ctx)
	defer cancel()
	return r.guarded(o, func(seen kvSeen) (bool, kvSeen, error) { return s.removeIf(ctx, seen) })
}

// guarded makes a write that depends on the object's revision, until it is made.
func (r *kubernetesRun) guarded(o *object, write func(kvSeen) (bool, kvSeen, error)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		done, now, err := write(kvSeen{key: o.key, revision: o.revision})
		if err != nil {
			r.ledger.wrote(o.key, 0)
			return err
		}
		if o.revision = now.revision; done && now.revision > 0 {
			r.ledger.wrote(o.key, now.revision)
		}
		if done {
			return nil
		}
		r.conflict.Add(1)
	}
}

// eventLease is the lease that the next Events share.
type eventLease struct {
	mu      sync.Mutex
	id      int64
	granted time.Time
	events  int
}

// recordEvent creates an Event with a lease.
func (r *kubernetesRun) recordEvent(ctx context.Context, n int) error {
	lease, err := r.eventLease(ctx)
	if err != nil {
		return err
	}
	return r.write(ctx, newObject(fmt.Sprintf("%sdefault/event-%08d", eventPrefix, n), eventBytes), lease)
}

func (r *kubernetesRun) eventLease(ctx context.Context) (int64, error) {
	l := &r.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == 0 || l.events >= eventsOfALease || time.Since(l.granted) > leaseReuse {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		grant, err := etcdserverpb.NewLeaseClient(r.target().conn).LeaseGrant(ctx,
			&etcdserverpb.LeaseGrantRequest{TTL: int64((eventTTL + leaseReuse).Seconds())})
		if err != nil {
			return 0, err
		}
		l.id, l.granted, l.events = grant.ID, time.Now(), 0
	}
	l.events++
	return l.id, nil
}

// errIncompleteList indicates a list whose pages do not have all keys.
var errIncompleteList = errors.New("a list is incomplete")

// list reads a resource in pages, all at the revision of the first one.
func (r *kubernetesRun) list(ctx context.Context, prefix string, pages *operations) error {
	req := &etcdserverpb.RangeRequest{Key: []byte(prefix), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(prefix)),
		Limit: pageLimit}
	var left int64
	for n := 0; ; n++ {
		var resp *etcdserverpb.RangeResponse
		var err error
		r.perform(pages, r.now(), n, func() error {
			ctx, cancel := context.WithTimeout(ctx, requestTimeout)
			defer cancel()
			resp, err = r.target().kv.Range(ctx, req)
			return err
		})
		if err != nil {
			return err
		}
		if req.Revision == 0 {
			req.Revision, left = resp.Header.Revision, resp.Count
		}
		if left -= int64(len(resp.Kvs)); !resp.More {
			break
		}
		req.Key = append(append([]byte(nil), resp.Kvs[len(resp.Kvs)-1].Key...), 0)
	}
	if left != 0 {
		return fmt.Errorf("%w: %s at revision %d: %d keys differ from the count",
			errIncompleteList, prefix, req.Revision, left)
	}
	return nil
}

// compact compacts the history before a revision, 0: nothing, and returns the current one.
func (r *kubernetesRun) compact(ctx context.Context, revision int64) (int64, error) {
	kv := r.target().kv
	if revision > 0 {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		if _, err := kv.Compact(ctx, &etcdserverpb.CompactionRequest{Revision: revision}); err != nil {
			return revision, err
		}
	}
	return currentRevision(ctx, kv)
}
