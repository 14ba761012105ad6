package store

import (
	"context"
	"errors"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// ErrUnconfirmed is the answer to a renewal whose confirmation took so long that nothing can be
// promised by it. Confirm again.
var ErrUnconfirmed = errors.New("store: the confirmation of a renewal is too old")

// lessor is etcd's lessor, which knows the leases and their keys, with a clock of the store's
// own: etcd's is never promoted, so that nothing in it ever expires.
type lessor struct {
	lease.Lessor
	now func() time.Time

	mu    sync.Mutex
	clock leaseClock
	// changed is closed, and another one made, when renewals that wait should look again.
	changed chan struct{}
}

func newLessor(inner lease.Lessor, o *Options) *lessor {
	l := &lessor{Lessor: inner, now: time.Now, changed: make(chan struct{})}
	l.clock = leaseClock{extension: o.LeaseExtension, checkpoint: o.LeaseCheckpointInterval, retry: o.LeaseRetryInterval}
	l.clock.reset()
	return l
}

// load reads the leases of a database that etcd's lessor has read already.
func (l *lessor) load(be backend.Backend) {
	tx := be.ReadTx()
	tx.RLock()
	stored := schema.MustUnsafeGetAllLeases(tx)
	tx.RUnlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.reset()
	for _, s := range stored {
		if known := l.Lookup(lease.LeaseID(s.ID)); known != nil {
			l.clock.load(s.ID, known.TTL(), s.RemainingTTL)
		}
	}
	l.look()
}

// look wakes the renewals that wait.
func (l *lessor) look() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Grant implements lease.Lessor.
func (l *lessor) Grant(id lease.LeaseID, ttl int64) (*lease.Lease, error) {
	granted, err := l.Lessor.Grant(id, ttl)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.clock.granted(l.now(), int64(id), granted.TTL())
	}
	return granted, err
}

// Revoke implements lease.Lessor.
func (l *lessor) Revoke(id lease.LeaseID) error {
	err := l.Lessor.Revoke(id)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.clock.revoked(int64(id))
		l.look()
	}
	return err
}

// Checkpoint implements lease.Lessor.
func (l *lessor) Checkpoint(id lease.LeaseID, remaining int64) error {
	err := l.Lessor.Checkpoint(id, remaining)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.noted(int64(id), remaining)
	return err
}

func (l *lessor) tookEffect(number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.tookEffect(number)
	l.look()
}

func (l *lessor) promote(claim, effective uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.promote(l.now(), claim, effective)
	l.look()
}

func (l *lessor) demote() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.demote()
	l.look()
}

// left tells how much time a lease has.
func (l *lessor) left(id int64) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch left, ok := l.clock.left(l.now(), id); {
	case ok:
		return left, nil
	case !l.clock.acting:
		return 0, ErrNotPrimary
	}
	return 0, lease.ErrLeaseNotFound
}

// due returns the commands that are due.
func (l *lessor) due() (commands [][]byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.clock.acting {
		return nil, nil
	}
	decided := l.clock.due(l.now())
	for _, id := range decided.ends {
		data, err := encode(guardedPrefix(l.clock.claim), &pb.InternalRaftRequest{LeaseRevoke: &pb.LeaseRevokeRequest{ID: id}})
		if err != nil {
			return nil, err
		}
		commands = append(commands, data)
	}
	if len(decided.checkpoints) > 0 {
		data, err := l.checkpoint(decided.number, decided.checkpoints)
		if err != nil {
			return nil, err
		}
		commands = append(commands, data)
	}
	return commands, nil
}

// checkpoint makes the command that says what is left of leases.
func (l *lessor) checkpoint(number uint64, of []shortening) ([]byte, error) {
	r := new(pb.LeaseCheckpointRequest)
	for _, s := range of {
		r.Checkpoints = append(r.Checkpoints, &pb.LeaseCheckpoint{ID: s.id, Remaining_TTL: s.left})
	}
	return encode(numberedPrefix(l.clock.claim, number), &pb.InternalRaftRequest{LeaseCheckpoint: r})
}

// Renewal is a keep-alive that came to this member. Its lease does not end before it is settled,
// unless the end was decided before it came.
type Renewal struct {
	s     *Store
	id    int64
	lease *timed // nil: it did not count when it came
}

// Renew notes that a keep-alive came. The caller confirms by a read barrier that this member is
// the primary lessor, calls Answer, and in any case calls Settle.
func (s *Store) Renew(id int64) *Renewal {
	l := s.lessor
	l.mu.Lock()
	defer l.mu.Unlock()
	return &Renewal{s: s, id: id, lease: l.clock.arrive(l.now(), id)}
}

// Settle ends the renewal, whatever its outcome.
func (r *Renewal) Settle() {
	l := r.s.lessor
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.lease != nil {
		l.clock.settle(l.now(), r.lease)
		r.lease = nil
	}
}

// Answer returns for how many seconds the lease is promised to live, to a user whom another
// member may know, given that a read barrier that began at began was passed. Errors: [ErrNotPrimary],
// ask the primary; [ErrUnconfirmed], confirm again; etcd's ErrLeaseNotFound.
//
// If the end of the lease was decided, it waits until the end is in force or there is another
// primary. It also waits while a checkpoint must be taken back first.
func (r *Renewal) Answer(ctx context.Context, user *auth.AuthInfo, began time.Time) (ttl int64, err error) {
	allowed := func(user *auth.AuthInfo) error {
		return r.s.leaseKeys(user, r.id, func(key []byte) error { return r.s.auth.IsPutPermitted(user, key) })
	}
	for {
		var v verdict
		var changed <-chan struct{}
		err := r.s.permittedAs(user, allowed, func() error {
			ttl, v, changed, err = r.try(began)
			return err
		})
		if err != nil {
			return -1, err
		}
		switch v {
		case renewDone:
			return ttl, nil
		case renewUnknown:
			return -1, lease.ErrLeaseNotFound
		case renewStale:
			return -1, ErrUnconfirmed
		case renewElsewhere:
			return -1, ErrNotPrimary
		}
		select {
		case <-changed:
		case <-time.After(leaseTick):
		case <-ctx.Done():
			return -1, ctx.Err()
		case <-r.s.latch.failed:
			return -1, r.s.latch.get()
		case <-r.s.stop:
			return -1, ErrClosed
		}
	}
}

// try decides what to do with the renewal now, and has ordered what that takes.
func (r *Renewal) try(began time.Time) (ttl int64, v verdict, changed <-chan struct{}, err error) {
	l := r.s.lessor
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.lease == nil {
		r.lease = l.clock.arrive(l.now(), r.id) // it was granted a moment ago
	}
	ttl, v = l.clock.answer(l.now(), began, r.id)
	if v == renewShortened {
		if number := l.clock.clear(l.now(), r.id); number > 0 {
			data, err := l.checkpoint(number, []shortening{{r.id, 0}})
			if err != nil {
				return 0, v, nil, err
			}
			_ = r.s.wanted.add(data) // not accepted: it is decided again after a while
		}
	}
	return ttl, v, l.changed, nil
}
