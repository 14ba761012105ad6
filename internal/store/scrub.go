package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// scrubPiece is how many bytes of the database are read in one go, from one view. A view
// keeps pages from being used again, so it is not held open between pieces.
const scrubPiece = 4 << 20

// Scrub reads the whole database again and again, at so many bytes a second, until ctx or the
// store ends. So damage is found before somebody reads it. Damaged tells what it found.
func (s *Store) Scrub(ctx context.Context, bytesPerSecond int64) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	next, left := mvcc.Revision{}, int64(scrubAtLeast)
	for {
		read, at, err := s.scrubPiece(next, scrubPiece)
		next = at
		left -= read
		if errors.As(err, new(*ReadError)) {
			s.lg.Warn("the database cannot be checked, the next round tries again", zap.Error(err))
		}
		if err != nil || next == (mvcc.Revision{}) { // the end of a round
			next, read, left = mvcc.Revision{}, max(read, left), scrubAtLeast
		}
		timer.Reset(time.Duration(float64(read) / float64(bytesPerSecond) * float64(time.Second)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		case <-s.stop:
			return
		case <-s.latch.failed:
			return
		}
	}
}

// scrubAtLeast is the least number of bytes that a round counts for. Taking a view makes the
// database commit, which must not happen too often.
const scrubAtLeast = 64 << 20

// ScrubOnce reads the whole database and returns what is wrong with it.
func (s *Store) ScrubOnce() error {
	for next := (mvcc.Revision{}); ; {
		_, at, err := s.scrubPiece(next, scrubPiece)
		if err != nil || at == (mvcc.Revision{}) {
			return err
		}
		next = at
	}
}

// scrubPiece reads the revisions from one on, about so many bytes of them, and with the first
// piece everything else. It returns where to go on; zero: at the beginning.
func (s *Store) scrubPiece(from mvcc.Revision, limit int64) (read int64, next mvcc.Revision, err error) {
	v, err := s.view(atOnce)
	if err != nil {
		return 0, next, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	p, err := v.guarded.pagesOf(v.be)
	if err == nil {
		next, err = v.guarded.scrub(p, from, limit)
		read = p.read
	}
	if err != nil {
		return read, mvcc.Revision{}, v.guarded.judge(s.opts.Dir, err)
	}
	return read, next, nil
}

// scrub reads a piece.
func (g *guarded) scrub(p *pages, from mvcc.Revision, limit int64) (next mvcc.Revision, err error) {
	buckets, err := p.buckets()
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
			return g.scrubRevisions(p, &buckets[i], from, p.read+limit)
		}
	}
	return next, fmt.Errorf("bucket %q is not there", schema.Key.Name())
}

// scrubOthers compares the buckets in which keys are overwritten with the record of the same
// transaction.
func (g *guarded) scrubOthers(p *pages, buckets []boltBucket) error {
	read := map[string]total{}
	var record []byte
	for i := range buckets {
		name := []byte(buckets[i].name)
		if isRevisions(name) {
			continue
		}
		var t total
		err := p.tree(&buckets[i], nil, func(key, value []byte) error {
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
func (g *guarded) scrubRevisions(p *pages, b *boltBucket, from mvcc.Revision, limit int64) (next mvcc.Revision, err error) {
	seen := map[mvcc.Revision]bool{}
	last := mvcc.Revision{}
	err = p.tree(b, mvcc.RevToBytes(from, mvcc.NewRevBytes()), func(key, value []byte) error {
		if err := g.sums.revision(key, value); err != nil {
			return err
		}
		last, _ = parseRevision(key)
		seen[last] = true
		if p.read > limit {
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
func (s *sums) allSeen(seen map[mvcc.Revision]bool, from, to mvcc.Revision) (err error) {
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
