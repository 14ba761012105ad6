package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/coreos/go-semver/semver"
	"go.uber.org/zap"

	bolt "go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/etcdserver/api"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/apply"
	"go.etcd.io/etcd/server/v3/etcdserver/cindex"
	"go.etcd.io/etcd/server/v3/storage"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/braidlog/braid/internal/store/filespace"
	"github.com/braidlog/braid/internal/store/sums"
	"github.com/braidlog/braid/internal/sys"
)

// term is written where etcd has Raft's term. The global log has positions and no term, but etcd treats a database
// without a term as one of version 3.4.
const term = 1

// openTimeout is how long to wait for another process to let go of the database.
const openTimeout = time.Second

// database is an open database file and the position it includes.
type database struct {
	be      backend.Backend // it is guarded
	guarded *sums.Guarded
	movable *movable // below guarded
	// open opens a file that is to become the database's: its hooks are off. If it fails, the latch does.
	open  func(path string, fails *latch, lg *zap.Logger) (*openFile, error)
	index cindex.ConsistentIndexer
	refs  *refs
	space *filespace.Space
	// leases are the writes of leases that go with the next commit.
	leases *leaseWrites
}

// openDatabase opens or makes a database file. Each has a consistent index of its own, so that one which Restore
// replaced never writes the index of its successor. A file that is damaged is refused with a [DamageError]; found is
// called with damage that is found later.
func openDatabase(path string, o *Options, lg *zap.Logger, found func(error)) (*database, error) {
	known, adopted, err := inspect(path, o.Dir)
	if err != nil {
		return nil, err
	}
	if adopted {
		lg.Info("the database gets checksums", zap.String("path", path))
	}
	if known == nil {
		known = sums.New()
	}
	index := cindex.NewConsistentIndex(nil)
	config := backend.DefaultBackendConfig(lg)
	config.BatchLimit = o.BackendBatchLimit
	config.BatchInterval = o.BackendBatchInterval
	config.BackendFreelistType = bolt.FreelistMapType
	if o.ArrayFreelist {
		config.BackendFreelistType = bolt.FreelistArrayType
	}
	config.Mlock = o.LockMemory
	config.UnsafeNoFsync = o.NoSync
	config.Timeout = openTimeout
	space := &filespace.Space{Path: path}
	leases := &leaseWrites{Hooks: storage.NewBackendHooks(lg, index), index: index, limit: o.BackendBatchLimit}
	hooks := space.Hooks(&sums.Sealing{Hooks: leases, Sums: known})
	opens := func(path string, fails *latch, lg *zap.Logger) (*openFile, error) {
		f := &openFile{hooks: &switchedHooks{Hooks: hooks}, fails: fails}
		f.hooks.off.Store(true)
		config := config
		config.Path, config.Hooks = path, f.hooks
		if fails != nil {
			config.Logger = fails.logger(lg)
		}
		be, err := openBackend(config)
		f.Backend = be
		return f, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o600) // first: its failure is easier to handle
	if err != nil {
		return nil, err
	}
	now, err := opens(path, nil, nil) // the store's latch is behind lg
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	now.hooks.off.Store(false)
	db := &database{movable: newMovable(now), open: opens, index: index, space: space, leases: leases}
	db.guarded = sums.Guard(db.movable, known, file, found)
	db.be = db.guarded
	space.Size = db.be.Size
	index.SetBackend(db.be)
	if err := db.prepare(lg); err != nil {
		return nil, errors.Join(err, db.be.Close())
	}
	return db, nil
}

// openBackend opens a database with etcd's code, which ends the store if it cannot. Where only a descriptor
// is missing, nothing was done, and it may be tried again.
func openBackend(config backend.BackendConfig) (be backend.Backend, err error) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		fatal, ok := r.(*FatalError)
		if !ok || !sys.NoDescriptor(fatal) {
			panic(r)
		}
		err = fatal
	}()
	return backend.New(config), nil
}

// prepare brings a fresh or older database to this version's layout.
func (db *database) prepare(lg *zap.Logger) error {
	schema.CreateMetaBucket(db.be.BatchTx())
	current := schema.ReadStorageVersion(db.be.ReadTx())
	if current == nil || current.LessThan(storageVersion()) {
		tx := db.be.BatchTx()
		tx.LockOutsideApply()
		v := storageVersion()
		schema.UnsafeSetStorageVersion(tx, &v)
		tx.Unlock()
		db.be.ForceCommit()
	}
	if err := schema.Validate(lg, db.be.ReadTx()); err != nil {
		return err
	}
	refs, err := loadRefs(db.be)
	db.refs = refs
	db.be.ForceCommit() // with its checksums, if it had none
	return err
}

// keys is the database as mvcc has to see it.
func (db *database) keys() backend.Backend { return track(db.be, db.refs) }

// weighed is the database as quotas have to see it.
func (db *database) weighed() backend.Backend { return weighed{db.be, db.refs} }

// hook makes each write transaction of an apply carry the position of its command.
func (db *database) hook() {
	db.be.SetTxPostLockInsideApplyHook(func() {
		position, term := db.index.ConsistentApplyingIndex()
		if position > db.index.UnsafeConsistentIndex() {
			db.index.SetConsistentIndex(position, term)
		}
	})
}

// storageVersion is the layout of the database, which is that of the etcd module in use.
func storageVersion() semver.Version {
	v := semver.New(version.Version)
	return semver.Version{Major: v.Major, Minor: v.Minor}
}

// openCluster creates what etcd's appliers need of a cluster: its id and its version. It has no members.
func (s *Store) openCluster() {
	s.cluster = membership.NewCluster(s.lg)
	s.cluster.SetID(types.ID(s.opts.MemberID), types.ID(s.opts.ClusterID))
	s.recoverCluster()
}

func (s *Store) recoverCluster() {
	s.cluster.SetBackend(schema.NewMembershipBackend(s.lg, s.db.be))
	s.cluster.Recover(api.UpdateCapability)
	if s.cluster.Version() == nil {
		v := storageVersion()
		s.cluster.SetVersion(&v, api.UpdateCapability, membership.ApplyBoth)
		s.db.be.ForceCommit()
	}
}

// openRights makes users and roles of the database.
func (s *Store) openRights() (*Rights, error) {
	tokens, err := auth.NewTokenProvider(s.lg, s.opts.AuthToken, reached, s.opts.AuthTokenTTL)
	if err != nil {
		return nil, fmt.Errorf("auth token %q: %w", s.opts.AuthToken, err)
	}
	r := &Rights{
		opts: &s.opts, lessor: s.lessor, damage: &s.damage, positions: &s.positions,
		passwords: newPasswords(s.opts.Client),
		auth:      auth.NewAuthStore(s.lg, schema.NewAuthBackend(s.lg, s.db.be), tokens, s.opts.BcryptCost),
	}
	r.leaseIDs.begin()
	return r, nil
}

// openAppliers creates the parts that are created for each database: alarms, quota and appliers.
func (s *Store) openAppliers() error {
	alarms, err := openAlarms(s.lg, schema.NewAlarmBackend(s.lg, s.db.be))
	if err != nil {
		return err
	}
	s.damage.alarm.Store(alarms.raised(s.opts.MemberID, pb.AlarmType_CORRUPT))
	s.limits.replace(alarms, s.db.weighed())
	s.applier = apply.NewUberApplier(apply.ApplierOptions{
		Logger:                       s.lg,
		KV:                           s.kv,
		AlarmStore:                   alarms.common,
		AuthStore:                    s.rights.auth,
		Lessor:                       s.lessor,
		Cluster:                      s.cluster,
		RaftStatus:                   status{s},
		SnapshotServer:               status{s},
		ConsistentIndex:              s.db.index,
		TxnModeWriteWithSharedBuffer: true,
		Backend:                      s.db.weighed(), // it serves the quota only
		QuotaBackendBytesCfg:         s.opts.QuotaBytes,
		WarningApplyDuration:         s.opts.WarnApplyDuration,
	})
	return nil
}

// status is the server of etcd's appliers. Only the revision gets into responses; package server fills in the rest of
// a header.
type status struct{ s *Store }

func (t status) MemberID() types.ID     { return types.ID(t.s.opts.MemberID) }
func (t status) Leader() types.ID       { return types.ID(t.s.leases.Primary()) }
func (t status) CommittedIndex() uint64 { return t.s.Applied() }
func (t status) AppliedIndex() uint64   { return t.s.Applied() }
func (t status) Term() uint64           { return 0 }

// ForceSnapshot is for etcd's log of an older version, which there is none of.
func (t status) ForceSnapshot() {}

// defragPattern matches the files of a defragmentation that has not ended, also of etcd's.
const defragPattern = "db.tmp.*"

// removeLeftovers deletes files that a crash, or a failure, left behind. They may be in use by another process that has
// the database open, so it first waits until that process has closed it, as opening the database does.
func removeLeftovers(o *Options, patterns ...string) error {
	f, err := os.Open(o.path())
	if err == nil {
		defer f.Close()
		err = lockShared(f)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, pattern := range patterns {
		names, err := filepath.Glob(filepath.Join(o.Dir, pattern))
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}
