package store

import (
	"time"

	"go.etcd.io/etcd/server/v3/storage/backend"
)

// StartReleasing begins to give up bodies that nothing uses any more. It does so after a grace
// period, because clients may have read a revision just before it was compacted, and only when the
// database is durable without them. It is called once, when Options.Bodies can be used.
func (s *Store) StartReleasing() {
	if s.opts.Bodies != nil {
		s.releaser.Go(s.keepReleasing)
	}
}

func (s *Store) keepReleasing() {
	tick := time.NewTicker(max(s.opts.ReleaseGrace/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if s.release(time.Now().Add(-s.opts.ReleaseGrace)) != nil {
				return
			}
		case <-s.stop:
			return
		case <-s.latch.failed:
			return
		}
	}
}

// release gives up what was dropped before a time.
func (s *Store) release(before time.Time) error {
	s.releasing.Lock()
	defer s.releasing.Unlock()
	var out []BodyRef
	err := s.using(func(be backend.Backend) error {
		if out = s.db.refs.expired(before); len(out) > 0 {
			be.ForceCommit()
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, ref := range out {
		s.opts.Bodies.Release(ref)
	}
	return nil
}

// LiveBodies calls yield with every body that a value is in. The log calls it after the store was
// opened or restored. All other bodies of commands up to Applied are dead.
func (s *Store) LiveBodies(yield func(BodyRef)) error {
	if err := s.latch.get(); err != nil {
		return err
	}
	for _, ref := range s.database().refs.live() {
		yield(ref)
	}
	return nil
}

// BodyBytes returns how many bytes of bodies this member keeps: whole ones, or a fragment of
// each.
func (s *Store) BodyBytes() int64 { return s.database().refs.size() }
