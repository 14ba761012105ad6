package store

import (
	"errors"
	"maps"
	"slices"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/backend"
)

// changes are the keys of a database that were written since a copy began, under the lock of its write transaction.
// Methods of nil do nothing.
type changes struct {
	keys    map[changedKey]struct{}
	buckets map[backend.BucketID]backend.Bucket
	bytes   int
	// lost: there are more than fit, or a change that no key describes. Only a new copy has everything.
	lost bool
}

type changedKey struct {
	bucket backend.BucketID
	key    string
}

const (
	// changesBytes bounds the memory of recorded keys.
	changesBytes = 64 << 20
	// changedKeyBytes is about how much memory a recorded key takes besides its bytes.
	changedKeyBytes = 64
)

func newChanges() *changes {
	return &changes{keys: map[changedKey]struct{}{}, buckets: map[backend.BucketID]backend.Bucket{}}
}

func (c *changes) add(in backend.Bucket, key []byte) {
	if c == nil || c.lost {
		return
	}
	c.buckets[in.ID()] = in
	k := changedKey{in.ID(), string(key)}
	if _, known := c.keys[k]; known {
		return
	}
	c.keys[k] = struct{}{}
	if c.bytes += len(key) + changedKeyBytes; c.bytes > changesBytes {
		c.forget()
	}
}

func (c *changes) created(in backend.Bucket) {
	if c != nil {
		c.buckets[in.ID()] = in
	}
}

func (c *changes) forget() {
	if c != nil {
		c.keys, c.bytes, c.lost = nil, 0, true
	}
}

// take removes at most n of the keys, fewer if their values have many bytes, and returns what they have now.
func (c *changes) take(tx backend.UnsafeReader, n, bytes int) *passage {
	p := &passage{buckets: maps.Clone(c.buckets)}
	for k := range c.keys {
		if len(p.entries) >= n || p.bytes >= bytes {
			break
		}
		delete(c.keys, k)
		c.bytes -= len(k.key) + changedKeyBytes
		in := c.buckets[k.bucket]
		_, values := tx.UnsafeRange(in, []byte(k.key), nil, 1)
		e := entry{in: in, key: []byte(k.key), deleted: len(values) == 0}
		if !e.deleted {
			e.value = slices.Clone(values[0])
		}
		p.add(e)
	}
	return p
}

// passage is what some keys of a database have.
type passage struct {
	buckets map[backend.BucketID]backend.Bucket
	entries []entry
	bytes   int
}

type entry struct {
	in         backend.Bucket
	key, value []byte
	deleted    bool
}

func (p *passage) add(e entry) {
	p.entries = append(p.entries, e)
	p.bytes += len(e.key) + len(e.value)
}

// with adds all keys of a bucket that there is.
func (p *passage) with(tx backend.UnsafeReader, in backend.Bucket) *passage {
	_ = tx.UnsafeForEach(in, func(k, v []byte) error {
		p.add(entry{in: in, key: slices.Clone(k), value: slices.Clone(v)})
		return nil
	})
	return p
}

// into writes to a file that is none of etcd's backends yet.
func (p *passage) into(tx *bolt.Tx) error {
	for _, b := range p.buckets {
		if _, err := tx.CreateBucketIfNotExists(b.Name()); err != nil {
			return err
		}
	}
	var failed error
	for _, e := range p.entries {
		if b := tx.Bucket(e.in.Name()); e.deleted {
			failed = errors.Join(failed, b.Delete(e.key))
		} else {
			failed = errors.Join(failed, b.Put(e.key, e.value))
		}
	}
	return failed
}

// writeTo writes to one that is.
func (p *passage) writeTo(tx backend.UnsafeWriter) {
	for _, b := range p.buckets {
		tx.UnsafeCreateBucket(b)
	}
	for _, e := range p.entries {
		if e.deleted {
			tx.UnsafeDelete(e.in, e.key)
		} else {
			tx.UnsafePut(e.in, e.key, e.value)
		}
	}
}
