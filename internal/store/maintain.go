package store

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/version"
)

// ErrRestored: the state was replaced by another member's while the caller waited for something in it. The command
// took effect nevertheless.
var ErrRestored = errors.New("store: the state was replaced by a snapshot meanwhile")

// FinishCompaction waits until a compaction has removed the old revisions, and makes that
// durable: without it a restarted member would do it again.
func (s *Store) FinishCompaction(ctx context.Context, r *Result) error {
	if r.Physical == nil {
		return nil
	}
	select {
	case <-r.Physical:
	case <-ctx.Done():
		return ctx.Err()
	case <-r.replaced:
		return ErrRestored
	case <-s.latch.failed:
		return s.latch.get()
	case <-s.stop:
		return ErrClosed
	}
	return s.using(func(db *database) error {
		db.be.ForceCommit()
		return nil
	})
}

// Hash returns a checksum of the database file's content, which is equal on members that
// applied the same and compacted the same.
func (s *Store) Hash() (hash uint32, revision int64, err error) {
	err = s.damage.checked(func() error {
		hash, revision, err = s.kv.HashStorage().Hash()
		return err
	})
	return hash, revision, err
}

// HashKV is a checksum of the keys and their history.
type HashKV struct {
	Hash uint32
	// CompactRevision and HashRevision are the history that Hash covers. Members with the
	// same two must have the same hash.
	CompactRevision, HashRevision int64
	Revision                      int64 // newest revision at that moment
}

// HashKV returns the checksum up to a revision (0: the newest). At the end of a defragmentation it waits until ctx is
// done. Errors: etcd's for a revision that is gone or not there yet.
func (s *Store) HashKV(ctx context.Context, revision int64) (h HashKV, err error) {
	// It holds a lock while it reads all keys. An exchange of the files would wait for the lock, and everything else
	// for the exchange.
	if err := s.frozen.enter(ctx); err != nil {
		return h, err
	}
	defer s.frozen.leave()
	err = s.damage.checked(func() error {
		hash, newest, err := s.kv.HashStorage().HashByRev(revision)
		h = HashKV{hash.Hash, hash.CompactRevision, hash.Revision, newest}
		return err
	})
	return h, err
}

// KeptHash returns the checksum that was computed when history was compacted at a revision, 0:
// the last time; false if none is kept. One from before the state was replaced does not count.
func (s *Store) KeptHash(revision int64) (out HashKV, ok bool) {
	for _, h := range s.kv.HashStorage().Hashes() {
		wanted := h.Revision == revision || revision == 0 && h.Revision > out.HashRevision
		if wanted && h.Revision > s.damage.since.Load() {
			out, ok = HashKV{Hash: h.Hash, CompactRevision: h.CompactRevision, HashRevision: h.Revision}, true
		}
	}
	return out, ok
}

// FreshHash is HashKV of the newest revision; false where nothing happened since the state was
// replaced.
func (s *Store) FreshHash(ctx context.Context) (h HashKV, ok bool, err error) {
	if revision := s.kv.Rev(); revision > s.damage.since.Load() {
		h, err = s.HashKV(ctx, revision)
		return h, err == nil, err
	}
	return h, false, nil
}

// DBSize returns the size of the database file in bytes.
func (s *Store) DBSize() int64 { return s.Backend().Size() }

// DBSizeInUse returns how many bytes of the database file hold something.
func (s *Store) DBSizeInUse() int64 { return s.Backend().SizeInUse() }

// ClusterVersion returns the version that all members understand, as "3.7".
func (s *Store) ClusterVersion() string {
	if v := s.cluster.Version(); v != nil {
		return version.Cluster(v.String())
	}
	return ""
}

// StorageVersion returns the version of the database's layout, as "3.7.0".
func (s *Store) StorageVersion() string {
	v := storageVersion() // older ones are brought to it when they are opened
	return v.String()
}
