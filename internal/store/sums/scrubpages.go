package sums

import (
	"bytes"
	"errors"
	"fmt"

	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// Scrub reads a piece.
func (g *Guarded) Scrub(p *Pages, from mvcc.Revision, limit int64) (next mvcc.Revision, err error) {
	buckets, err := p.Buckets()
	if err != nil {
		return next, err
	}
	if from == (mvcc.Revision{}) {
		if err := g.scrubOthers(p, buckets); err != nil {
			return next, err
		}
	}
	for i := range buckets {
		if isRevisions([]byte(buckets[i].name)) {
			return g.scrubRevisions(p, &buckets[i], from, p.Read+limit)
		}
	}
	return next, fmt.Errorf("bucket %q is not there", schema.Key.Name())
}

// scrubOthers compares the buckets in which keys are overwritten with the record of the same
// transaction.
func (g *Guarded) scrubOthers(p *Pages, buckets []boltBucket) error {
	read := map[string]total{}
	var record []byte
	for i := range buckets {
		name := []byte(buckets[i].name)
		if isRevisions(name) {
			continue
		}
		var t total
		err := p.Tree(&buckets[i], nil, func(key, value []byte) error {
			if isRecord(name, key) {
				record = bytes.Clone(value)
			} else {
				t.add(checksum(key, value))
			}
			return nil
		})
		if err != nil {
			return err
		}
		if t.count > 0 {
			read[string(name)] = t
		}
	}
	written, err := decodeRecord(record)
	if err != nil {
		return err
	}
	return agree(read, written, func(bucket string) bool { return !isRevisions([]byte(bucket)) })
}

// scrubRevisions compares revisions with their checksums in memory.
func (g *Guarded) scrubRevisions(p *Pages, b *boltBucket, from mvcc.Revision,
	limit int64) (next mvcc.Revision, err error) {
	seen := map[mvcc.Revision]bool{}
	last := mvcc.Revision{}
	err = p.Tree(b, mvcc.RevToBytes(from, mvcc.NewRevBytes()), func(key, value []byte) error {
		if err := g.sums.revision(key, value); err != nil {
			return err
		}
		last, _ = ParseRevision(key)
		seen[last] = true
		if p.Read > limit {
			next = mvcc.Revision{Main: last.Main, Sub: last.Sub + 1}
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return next, err
	}
	return next, g.sums.allSeen(seen, from, last)
}

// allSeen checks that nothing is missing between two revisions. A revision that is there now and
// is older than one that was seen was there all the time.
func (s *Sums) allSeen(seen map[mvcc.Revision]bool, from, to mvcc.Revision) (err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.revisions.between(from.Main, to.Main, func(at mvcc.Revision) {
		inside := at.Main > from.Main || at.Sub >= from.Sub
		inside = inside && (at.Main < to.Main || at.Sub <= to.Sub)
		if inside && !seen[at] {
			err = fmt.Errorf("revision %d/%d is not found", at.Main, at.Sub)
		}
	})
	return err
}

// CheckRevision compares an element of the bucket of revisions with the checksum that it was written with.
func (g *Guarded) CheckRevision(key, value []byte) error { return g.sums.revision(key, value) }

// CheckOthers compares the buckets in which keys are overwritten with the record of the same transaction.
func (g *Guarded) CheckOthers(p *Pages) error {
	buckets, err := p.Buckets()
	if err != nil {
		return err
	}
	return g.scrubOthers(p, buckets)
}
