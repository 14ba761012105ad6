package store

import (
	"sync"
	"time"
)

// releaser releases bodies that nothing uses any more.
type releaser struct {
	bodies Bodies // nil: there are none
	grace  time.Duration
	// using runs a function on the database, which stays in place meanwhile.
	using func(func(*database) error) error
	// mu is held while bodies are released, and while the state is replaced: what is released must not be in the
	// new state.
	mu      sync.Mutex
	running sync.WaitGroup
}

// StartReleasing begins to release bodies that nothing uses any more. It does so after a grace period, because clients
// may have read a revision just before it was compacted, and only when the database is durable without them. It is
// called once, when Options.Bodies can be used.
func (s *Store) StartReleasing() {
	if s.opts.Bodies != nil {
		s.releaser.running.Go(func() { s.releaser.run(s.stop, s.latch.failed) })
	}
}

func (r *releaser) run(stop, failed <-chan struct{}) {
	tick := time.NewTicker(max(r.grace/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if r.release(time.Now().Add(-r.grace)) != nil {
				return
			}
		case <-stop:
			return
		case <-failed:
			return
		}
	}
}

// release releases what was dropped before a time.
func (r *releaser) release(before time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []BodyRef
	err := r.using(func(db *database) error {
		if out = db.refs.expired(before); len(out) > 0 {
			db.be.ForceCommit()
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, ref := range out {
		r.bodies.Release(ref)
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

// BodyBytes returns how many bytes of bodies this member stores: whole ones, or a fragment of each.
func (s *Store) BodyBytes() int64 { return s.database().refs.size() }
