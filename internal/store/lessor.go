package store

import (
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/braidlog/braid/internal/store/leaseclock"
)

// lessor is etcd's lessor, which knows the leases and their keys, with a clock of the store's
// own: etcd's is never promoted, so that nothing in it ever expires.
type lessor struct {
	lease.Lessor
	now func() time.Time
	// order has a command ordered. It does not wait; false: there was no space.
	order func(command []byte) bool

	mu    sync.Mutex
	clock leaseclock.Clock
	// changed is closed, and another one made, when renewals that wait should check again.
	changed chan struct{}
}

func newLessor(inner lease.Lessor, o *Options, order func([]byte) bool) *lessor {
	l := &lessor{Lessor: inner, now: time.Now, order: order, changed: make(chan struct{})}
	l.clock = leaseclock.Clock{Extension: o.Leases.Extension, Checkpoint: o.Leases.CheckpointInterval,
		Retry: o.Leases.RetryInterval}
	l.clock.Reset()
	return l
}

// load reads the leases of a database that etcd's lessor has read already. How much time they have is not known before
// a term begins, so it ends the one before.
func (l *lessor) load(be backend.Backend) {
	tx := be.ReadTx()
	tx.RLock()
	stored := schema.MustUnsafeGetAllLeases(tx)
	tx.RUnlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.Demote()
	l.clock.Reset()
	for _, s := range stored {
		if known := l.Lookup(lease.LeaseID(s.ID)); known != nil {
			l.clock.Load(s.ID, known.TTL(), s.RemainingTTL)
		}
	}
	l.wake()
}

// extend sets what a new primary adds to every lease.
func (l *lessor) extend(by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.Extension = by
}

// wake wakes the renewals that wait.
func (l *lessor) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Grant implements lease.Lessor.
func (l *lessor) Grant(id lease.LeaseID, ttl int64) (*lease.Lease, error) {
	granted, err := l.Lessor.Grant(id, ttl)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.clock.Granted(l.now(), int64(id), granted.TTL())
	}
	return granted, err
}

// Revoke implements lease.Lessor.
func (l *lessor) Revoke(id lease.LeaseID) error {
	err := l.Lessor.Revoke(id)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.clock.Revoked(int64(id))
		l.wake()
	}
	return err
}

// Checkpoint implements lease.Lessor.
func (l *lessor) Checkpoint(id lease.LeaseID, remaining int64) error {
	err := l.Lessor.Checkpoint(id, remaining)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.Checkpointed(int64(id), remaining)
	return err
}

func (l *lessor) tookEffect(number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.TookEffect(number)
	l.orderClears()
	l.wake()
}

// orderClears has the checkpoint ordered for which renewals wait. A lost one is ordered again after a while.
func (l *lessor) orderClears() {
	if number, of := l.clock.NextClears(l.now()); number > 0 {
		if data, err := l.checkpoint(number, of); err == nil {
			_ = l.order(data)
		}
	}
}

func (l *lessor) claimed(recorded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.Claimed(l.now(), recorded)
}

func (l *lessor) followsSoon() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clock.FollowsSoon(l.now())
}

func (l *lessor) promote(claim, effective uint64, recorded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.Promote(l.now(), claim, effective, recorded)
	l.wake()
}

func (l *lessor) demote() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.Demote()
	l.wake()
}

// left returns how much time a lease has.
func (l *lessor) left(id int64) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch left, ok := l.clock.Left(l.now(), id); {
	case ok:
		return left, nil
	case !l.clock.Acting():
		return 0, ErrNotPrimary
	}
	return 0, lease.ErrLeaseNotFound
}

// due returns the commands that are due.
func (l *lessor) due() (commands [][]byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.clock.Acting() {
		return nil, nil
	}
	l.orderClears()
	decided := l.clock.Due(l.now())
	for _, id := range decided.Ends {
		data, err := encode(guardedPrefix(l.clock.Claim()),
			&pb.InternalRaftRequest{LeaseRevoke: &pb.LeaseRevokeRequest{ID: id}})
		if err != nil {
			return nil, err
		}
		commands = append(commands, data)
	}
	if len(decided.Checkpoints) > 0 {
		data, err := l.checkpoint(decided.Number, decided.Checkpoints)
		if err != nil {
			return nil, err
		}
		commands = append(commands, data)
	}
	return commands, nil
}

// checkpoint encodes the command with the rest of leases.
func (l *lessor) checkpoint(number uint64, of []leaseclock.Shortening) ([]byte, error) {
	r := new(pb.LeaseCheckpointRequest)
	for _, s := range of {
		r.Checkpoints = append(r.Checkpoints, &pb.LeaseCheckpoint{ID: s.ID, Remaining_TTL: s.Left})
	}
	return encode(numberedPrefix(l.clock.Claim(), number), &pb.InternalRaftRequest{LeaseCheckpoint: r})
}
