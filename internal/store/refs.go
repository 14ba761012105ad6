package store

import (
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/braidlog/braid/internal/store/increment"
	"github.com/braidlog/braid/internal/store/sums"
)

// refsBucket has the place of the value of each revision whose value begins like a record. Its keys are those of the
// bucket of keys, and each is written and deleted in the same transaction as that one.
var refsBucket backend.Bucket = bucket{}

type bucket struct{}

func (bucket) ID() backend.BucketID    { return 201 } // etcd's end at 100
func (bucket) Name() []byte            { return []byte(increment.ValuesBucket) }
func (bucket) String() string          { return increment.ValuesBucket }
func (bucket) IsSafeRangeBucket() bool { return true } // no key is written twice

// refs is a database's large values: refsBucket in memory, and how often each body is used.
//
// What compaction removes is kept for a grace period, with its bodies, because readers and
// watchers may have seen the revision just before.
type refs struct {
	mu sync.RWMutex
	// places by main revision. A transaction may have several.
	places map[int64][]place
	// bodies that are used, or were until not longer ago than the grace period.
	bodies map[BodyRef]*body
	// dropped places are still found until they leave queue.
	dropped map[int64][]place
	queue   []drop // by time
	// pins keep everything in the queue: they count readers of old views.
	pins int
	// bytes of bodies is this member's share of them.
	bytes int64
}

// drop is a place, or a body that nothing uses, which will be released.
type drop struct {
	at   time.Time
	main int64 // 0: a body alone
	sub  int64
	body *body // nil for a literal
}

// loadRefs reads a database's large values, and makes the bucket if it is missing. It comes
// before anything may compact the database.
func loadRefs(be backend.Backend) (*refs, error) {
	r := &refs{places: map[int64][]place{}, bodies: map[BodyRef]*body{}, dropped: map[int64][]place{}}
	tx := be.BatchTx()
	tx.LockOutsideApply()
	defer tx.Unlock()
	tx.UnsafeCreateBucket(refsBucket)
	err := tx.UnsafeForEach(refsBucket, func(k, v []byte) error {
		p, ref, literal, err := decodePlace(v)
		if err != nil || len(k) != sums.RevisionKey {
			return fmt.Errorf("revision %x: %w", k, errBadPlace)
		}
		if !literal {
			p.body = r.use(ref)
		}
		revision := mvcc.BytesToRev(k)
		p.sub = revision.Sub
		r.places[revision.Main] = append(r.places[revision.Main], p)
		return nil
	})
	return r, err
}

// use counts one more revision for a body.
func (r *refs) use(ref BodyRef) *body {
	b := r.bodies[ref]
	if b == nil {
		b = &body{ref: ref}
		r.bodies[ref] = b
		r.bytes += ref.share()
	}
	b.count++
	return b
}

// add records the place of a value that was just put, in the transaction that put it.
func (r *refs) add(tx backend.UnsafeWriter, main int64, p place, ref *BodyRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.body = nil
	if ref != nil {
		p.body = r.use(*ref)
	}
	r.places[main] = append(r.places[main], p)
	key := mvcc.RevToBytes(mvcc.Revision{Main: main, Sub: p.sub}, mvcc.NewRevBytes())
	tx.UnsafeSeqPut(refsBucket, key, encodePlace(p))
}

// remove follows the deletion of a revision, in the transaction that deleted it.
func (r *refs) remove(tx backend.UnsafeWriter, key []byte) {
	revision := mvcc.BytesToRev(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	places := r.places[revision.Main]
	for i, p := range places {
		if p.sub != revision.Sub {
			continue
		}
		tx.UnsafeDelete(refsBucket, key[:sums.RevisionKey])
		if places = append(places[:i:i], places[i+1:]...); len(places) == 0 {
			delete(r.places, revision.Main)
		} else {
			r.places[revision.Main] = places
		}
		r.dropped[revision.Main] = append(r.dropped[revision.Main], p)
		if p.body != nil {
			p.body.count--
		}
		r.enqueue(drop{time.Now(), revision.Main, p.sub, p.body})
		return
	}
}

// received records that a command came with a body. If the command did not use it, it is released.
func (r *refs) received(ref BodyRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bodies[ref] != nil {
		return
	}
	b := r.use(ref)
	b.count--
	r.enqueue(drop{at: time.Now(), body: b})
}

func (r *refs) enqueue(d drop) {
	if d.body != nil {
		d.body.waiting++
	}
	r.queue = append(r.queue, d)
}

// find returns the place of a value that begins like a record, at the revision that put it.
func (r *refs) find(main int64, value []byte) (place, bool) {
	want, isRecord := parseRecord(value)
	r.mu.RLock()
	defer r.mu.RUnlock()
	var literal record
	for _, places := range [][]place{r.places[main], r.dropped[main]} {
		for _, p := range places {
			if p.body != nil && isRecord && p.record == want {
				return p, true
			}
			if p.body != nil {
				continue
			}
			if literal.size == 0 {
				literal = recordOf(value)
			}
			if p.record == literal {
				return p, true
			}
		}
	}
	return place{}, false
}

// expired removes what was dropped before a time from the queue, and returns the bodies that nothing uses any more.
func (r *refs) expired(before time.Time) (out []BodyRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pins > 0 {
		return nil
	}
	n := 0
	for ; n < len(r.queue) && r.queue[n].at.Before(before); n++ {
		d := &r.queue[n]
		if d.main != 0 {
			r.forget(d.main, d.sub)
		}
		b := d.body
		if b == nil {
			continue
		}
		if b.waiting--; b.waiting == 0 && b.count == 0 {
			delete(r.bodies, b.ref)
			r.bytes -= b.ref.share()
			out = append(out, b.ref)
		}
	}
	r.queue = append(r.queue[:0:0], r.queue[n:]...)
	return out
}

func (r *refs) forget(main, sub int64) {
	places := r.dropped[main]
	for i := range places {
		if places[i].sub == sub {
			places = append(places[:i:i], places[i+1:]...)
			break
		}
	}
	if len(places) == 0 {
		delete(r.dropped, main)
		return
	}
	r.dropped[main] = places
}

func (r *refs) pin(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pins += n
}

// live returns every body that a revision uses.
func (r *refs) live() (out []BodyRef) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for ref, b := range r.bodies {
		if b.count > 0 {
			out = append(out, ref)
		}
	}
	return out
}

func (r *refs) size() int64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.bytes
}

// none reports whether no value is in a body.
func (r *refs) none() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.places) == 0
}

// tracked is a database that reports deletions of revisions to refs. The keys are kept in it; everything else uses the
// database itself.
type tracked struct {
	backend.Backend
	tx trackedTx
}

func track(be backend.Backend, r *refs) *tracked {
	return &tracked{be, trackedTx{be.BatchTx(), r}}
}

// BatchTx implements backend.Backend.
func (t *tracked) BatchTx() backend.BatchTx { return &t.tx }

type trackedTx struct {
	backend.BatchTx
	refs *refs
}

// UnsafeDelete implements backend.BatchTx.
func (t *trackedTx) UnsafeDelete(b backend.Bucket, key []byte) {
	t.BatchTx.UnsafeDelete(b, key)
	if b.ID() == schema.Key.ID() {
		t.refs.remove(t.BatchTx, key)
	}
}

// weighed is a database whose size includes the bodies that this member stores, for quotas.
type weighed struct {
	backend.Backend
	refs *refs
}

// Size implements backend.Backend.
func (w weighed) Size() int64 { return w.Backend.Size() + w.refs.size() }
