package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	bolterrors "go.etcd.io/bbolt/errors"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/apply"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/braidlog/braid/internal/durable"
	"github.com/braidlog/braid/internal/vfs"
)

// ErrClosed is returned by a store after Close. A retry is of no use.
var ErrClosed = errors.New("store: closed")

// Store is etcd's state machine on a directory. Apply, Sync, Snapshot and Restore are called from
// one goroutine. Every other method is safe for concurrent use, except Close, which comes last.
type Store struct {
	opts  Options
	birth string // see Birth; as it was when the store was opened
	lg    *zap.Logger
	latch *latch
	stop  chan struct{} // closed by Close

	// files is held while the database's file is exchanged.
	files sync.Mutex

	// mu guards db, which Restore replaces. The apply goroutine, which calls Restore, reads db without it.
	mu sync.RWMutex
	db *database

	// Parts of etcd:

	cluster *membership.RaftCluster
	lessor  *lessor
	kv      *keys
	applier apply.UberApplier // used by the apply goroutine only
	plain   pb.PutRequest     // the plain put whose space is asked for; used by the apply goroutine only

	// What callers ask for:

	positions positions
	rights    *Rights
	leases    *Leases
	values    values
	damage    Damage
	closed    atomic.Uint64 // the auth revision up to which accepted puts are closed; 0: none
	frozen    frozen
	copying   *semaphore.Weighted // of copies for clients, one at a time
	rewriting *semaphore.Weighted // of defragmentations, one at a time

	// What works in the background, or waits:

	limits   limits
	quotas   prefixQuotas
	wanted   wanted
	short    shortage
	releaser releaser

	// largeFrom is Options.LargeValueBytes, or what SetLargeValueBytes was called with since.
	largeFrom atomic.Int64

	// replaced is closed, and replaced by a new channel, when Restore installs another database. Used by the apply
	// goroutine only.
	replaced chan struct{}
	// closing holds databases that Restore replaced until they are closed.
	closing sync.WaitGroup
}

// Open opens the store in a directory, which is made if it does not exist. A second store
// on the same directory is refused.
func Open(o Options) (*Store, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	if err := durable.MakeDir(vfs.OS, o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s := &Store{
		opts:      o,
		latch:     newLatch(o.Dir, o.Logger, o.OnFatal),
		replaced:  make(chan struct{}),
		stop:      make(chan struct{}),
		copying:   semaphore.NewWeighted(1),
		rewriting: semaphore.NewWeighted(1),
	}
	s.largeFrom.Store(int64(o.LargeValueBytes))
	s.lg = s.latch.logger(o.Logger)
	s.positions.latch, s.positions.stop = s.latch, s.stop
	s.short = shortage{dir: o.Dir, lg: s.lg, latch: s.latch, interrupted: make(chan struct{})}
	s.limits = limits{
		opts: &s.opts, lg: s.lg, wanted: &s.wanted, space: space{opts: &s.opts, lg: s.lg}, stopped: make(chan struct{}),
	}
	s.releaser = releaser{bodies: o.Bodies, grace: o.ReleaseGrace, using: s.using}
	s.values = values{
		bodies: o.Bodies, limit: uint64(o.ResponseBytes), lg: s.lg, fetching: semaphore.NewWeighted(o.ResponseBytes),
		refs: func() *refs { return s.database().refs }, compacted: s.CompactRevision,
	}
	s.quotas.init(s.values.refs)
	s.wanted.init()
	s.frozen.init()
	s.damage = Damage{opts: &s.opts, lg: s.lg, latch: s.latch, short: &s.short, found: make(chan struct{}, 1)}
	// An error while opening is returned to the caller; it is not a failure of a running store.
	err := newLatch(o.Dir, o.Logger, nil).guard(s.open)
	if err != nil {
		s.abandon(err)
		return nil, openError(o.Dir, err)
	}
	go s.leases.run()
	go s.countQuotas()
	go s.limits.watch(s.stop, s.latch.failed)
	return s, nil
}

// open builds the parts in the order in which they depend on each other: leases must be
// there before the keys that hang on them, and the hook comes last, since it is for applying.
func (s *Store) open() (err error) {
	if err := removeLeftovers(&s.opts, restorePattern, copyPattern, defragPattern); err != nil {
		return err
	}
	s.limits.space.open()
	if s.db, err = s.damage.openOrSetAside(); err != nil {
		return err
	}
	if !s.opts.NoSync { // bbolt syncs the file, not its directories
		if err := errors.Join(syncDir(s.opts.Dir), syncDir(filepath.Dir(s.opts.Dir))); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	s.openCluster()
	s.lessor = newLessor(lease.NewLessor(s.lg, s.db.forLeases(), s.cluster, lease.LessorConfig{
		MinLeaseTTL: s.opts.Leases.MinTTL, CheckpointPersist: true,
	}), &s.opts, s.wanted.add)
	s.lessor.load(s.db.be)
	s.kv = newKeys(s.database, &s.quotas, mvcc.New(s.lg, s.db.keys(), s.lessor, mvcc.StoreConfig{
		CompactionBatchLimit:    s.opts.CompactionBatchLimit,
		CompactionSleepInterval: s.opts.CompactionSleepInterval,
	}))
	// Keys of leases that end are deleted through s.kv, too.
	s.lessor.SetRangeDeleter(func() lease.TxnDelete { return s.kv.Write(traceutil.TODO()) })
	if err = s.quotas.load(s.db, s.kv); err != nil {
		return err
	}
	if s.rights, err = s.openRights(); err != nil {
		return err
	}
	if err := s.openAppliers(); err != nil {
		return err
	}
	s.leases = newLeases(s)
	s.leases.follow(readClaim(s.db.be))
	s.closed.Store(readClosed(s.db.be))
	s.birth = readBirth(s.db.be)
	s.positions.set(s.db.index.ConsistentIndex())
	s.db.hook()
	return nil
}

// openError describes why a store did not open.
func openError(dir string, err error) error {
	var fatal *FatalError
	switch {
	case errors.Is(err, bolterrors.ErrTimeout), errors.Is(err, errInUse):
		return fmt.Errorf("store: %s is in use by another process", dir)
	case errors.As(err, &fatal) && fatal.Cause != nil:
		return fmt.Errorf("store: open %s: %s: %w", dir, fatal.Op, fatal.Cause)
	case errors.As(err, &fatal):
		return fmt.Errorf("store: open %s: %s", dir, fatal.Op)
	}
	return fmt.Errorf("store: open %s: %w", dir, err)
}

// abandon closes the parts that a failed open made. If etcd's code panicked, its locks may be held forever, so its
// parts are left as they are.
func (s *Store) abandon(err error) {
	s.wanted.close()
	if fatal := (*FatalError)(nil); errors.As(err, &fatal) {
		return
	}
	if s.lessor != nil {
		s.lessor.Stop()
	}
	if s.kv != nil {
		s.kv.Close()
	}
	if s.rights != nil {
		s.rights.auth.Close()
	}
	if s.db != nil {
		s.db.be.Close()
	}
}

// Close ends the store. Watchers, snapshots and other users must have ended before. What
// was applied is on disk afterwards. A store that failed is left as it is: the process
// has to end anyway.
func (s *Store) Close() error {
	s.Interrupt()
	close(s.stop)
	s.wanted.close()
	if s.latch.get() != nil {
		return nil
	}
	_ = s.rewriting.Acquire(context.Background(), 1) // one that runs ends, because stop is closed
	s.lessor.Stop()
	<-s.leases.stopped
	<-s.limits.stopped
	<-s.quotas.stopped
	s.releaser.running.Wait()
	err := s.latch.guard(func() error {
		return errors.Join(s.kv.Close(), s.rights.auth.Close(), s.db.be.Close())
	})
	s.closing.Wait()
	s.latch.once.Do(func() {
		s.latch.err = ErrClosed
		close(s.latch.failed)
	})
	return err
}

// Failed is closed when the store cannot continue; Err has the reason.
func (s *Store) Failed() <-chan struct{} { return s.latch.failed }

// Err returns the error that stopped the store, nil while it works.
func (s *Store) Err() error { return s.latch.get() }

// Applied returns the position of the last command that the state includes.
func (s *Store) Applied() uint64 { return s.positions.applied.Load() }

// WaitApplied waits until the state includes a position.
func (s *Store) WaitApplied(ctx context.Context, position uint64) error {
	return s.positions.await(ctx, position)
}

// Sync makes everything applied so far durable.
func (s *Store) Sync() error {
	if err := s.damage.usable(); err != nil {
		return err
	}
	return s.latch.guard(func() error {
		s.kv.Commit()
		return nil
	})
}

// KV returns the keys. Reads through it are not checked for permission, and large values are
// to be had with Resolve.
func (s *Store) KV() mvcc.WatchableKV { return s.kv }

// Lessor returns the leases.
func (s *Store) Lessor() lease.Lessor { return s.lessor }

// Auth returns users and roles.
func (s *Store) Auth() auth.AuthStore { return s.rights.auth }

// Backend returns the current database. Restore replaces and closes it. So other callers may only
// ask for its size, unless they know that Restore does not run.
func (s *Store) Backend() backend.Backend { return s.database().be }

// using runs f on the database, which Restore does not replace meanwhile. f must not ask the store for its database
// again.
func (s *Store) using(f func(*database) error) error {
	return s.latch.guard(func() error {
		s.mu.RLock()
		defer s.mu.RUnlock()
		return f(s.db)
	})
}

func (s *Store) database() *database {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.db
}

// Revision returns the newest revision.
func (s *Store) Revision() int64 { return s.kv.Rev() }

// CompactRevision returns the revision up to which history is gone, -1 if it is whole.
func (s *Store) CompactRevision() int64 { return s.kv.FirstRev() }

// ConsistentIndex is Applied as the database records it.
func (s *Store) ConsistentIndex() uint64 { return s.database().index.ConsistentIndex() }
