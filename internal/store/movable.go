package store

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// movable is a backend whose file can be exchanged for another one with the same content while it is used. Meanwhile
// it records which keys are written. etcd's backend exchanges its file only by a copy of its own, under all its locks.
type movable struct {
	now atomic.Pointer[openFile]
	// gate is held shared by readers of the file's ReadTx, and alone when now changes.
	gate  sync.RWMutex
	batch movableBatch
	hook  func() // of SetTxPostLockInsideApplyHook; under batch.mu
}

// openFile is a database file that is open.
type openFile struct {
	backend.Backend
	hooks *switchedHooks
	fails *latch // that fails when it does
	// users are calls that began while the file was the present one.
	users sync.WaitGroup
}

// switchedHooks are called for the present file alone, because they write into what is committed.
type switchedHooks struct {
	backend.Hooks
	off atomic.Bool
}

// OnPreCommitUnsafe implements backend.Hooks.
func (h *switchedHooks) OnPreCommitUnsafe(tx backend.UnsafeReadWriter) {
	if !h.off.Load() {
		h.Hooks.OnPreCommitUnsafe(tx)
	}
}

func newMovable(f *openFile) *movable {
	m := new(movable)
	m.batch = movableBatch{m: m, BatchTx: f.BatchTx()}
	m.now.Store(f)
	return m
}

// use returns the present file, which is not closed before its users are done.
func (m *movable) use() *openFile {
	m.gate.RLock()
	defer m.gate.RUnlock()
	f := m.now.Load()
	f.users.Add(1)
	return f
}

// close closes a file when its users are done.
func (f *openFile) close() error {
	f.users.Wait()
	return f.Backend.Close()
}

// ReadTx implements backend.Backend.
func (m *movable) ReadTx() backend.ReadTx { return movableRead{m} }

// BatchTx implements backend.Backend.
func (m *movable) BatchTx() backend.BatchTx { return &m.batch }

// ConcurrentReadTx implements backend.Backend. The file is closed after the transaction.
func (m *movable) ConcurrentReadTx() backend.ReadTx {
	m.gate.RLock()
	defer m.gate.RUnlock()
	return m.now.Load().ConcurrentReadTx()
}

// Snapshot implements backend.Backend. The file is closed after the snapshot.
func (m *movable) Snapshot() backend.Snapshot {
	f := m.use()
	defer f.users.Done()
	return f.Snapshot()
}

// Hash implements backend.Backend.
func (m *movable) Hash(ignores func(bucket, key []byte) bool) (uint32, error) {
	f := m.use()
	defer f.users.Done()
	return f.Hash(ignores)
}

// ForceCommit implements backend.Backend.
func (m *movable) ForceCommit() {
	f := m.use()
	defer f.users.Done()
	f.ForceCommit()
}

// Size implements backend.Backend.
func (m *movable) Size() int64 { return m.now.Load().Size() }

// SizeInUse implements backend.Backend.
func (m *movable) SizeInUse() int64 { return m.now.Load().SizeInUse() }

// OpenReadTxN implements backend.Backend.
func (m *movable) OpenReadTxN() int64 { return m.now.Load().OpenReadTxN() }

// Defrag implements backend.Backend. etcd's way would rename a file to the name that this one was opened with.
func (m *movable) Defrag() error { return errors.ErrUnsupported }

// Close implements backend.Backend.
func (m *movable) Close() error { return m.now.Load().close() }

// SetTxPostLockInsideApplyHook implements backend.Backend.
func (m *movable) SetTxPostLockInsideApplyHook(hook func()) {
	m.batch.mu.Lock()
	defer m.batch.mu.Unlock()
	m.hook = hook
	m.now.Load().SetTxPostLockInsideApplyHook(hook)
}

// move makes f the present file. The caller holds batch.mu, and f has everything but the changes that are recorded, for
// which allocate gets space. install gives f the name of the present file. The old file is returned, which has to be
// closed, or an error if nothing was changed.
func (m *movable) move(
	f *openFile, allocate func(bytes int) error, install func() error,
) (old *openFile, err error) {
	old = m.now.Load()
	old.ForceCommit() // if the process ends before install is done, the old file has everything
	tx := old.BatchTx()
	tx.LockOutsideApply()
	rest := m.batch.changes.take(tx, math.MaxInt, math.MaxInt).with(tx, schema.Meta) // hooks write there
	if err := allocate(rest.bytes); err != nil {
		tx.Unlock()
		return nil, err
	}
	old.hooks.off.Store(true)
	tx.Unlock()
	fresh := f.BatchTx()
	err = f.fails.apart(func() error {
		fresh.LockOutsideApply()
		rest.writeTo(fresh)
		fresh.Unlock()
		f.ForceCommit()
		return nil
	})
	if err == nil {
		err = install()
	}
	if err != nil {
		old.hooks.off.Store(false)
		return nil, err
	}
	f.SetTxPostLockInsideApplyHook(m.hook)
	f.hooks.off.Store(false)
	m.gate.Lock()
	defer m.gate.Unlock()
	m.batch.BatchTx = fresh
	m.now.Store(f)
	return old, nil
}

// movableRead is ReadTx of the present file, which stays the same while it is locked.
type movableRead struct{ m *movable }

// RLock implements backend.ReadTx.
func (r movableRead) RLock() {
	r.m.gate.RLock()
	r.m.now.Load().ReadTx().RLock()
}

// RUnlock implements backend.ReadTx.
func (r movableRead) RUnlock() {
	r.m.now.Load().ReadTx().RUnlock()
	r.m.gate.RUnlock()
}

// UnsafeRange implements backend.ReadTx.
func (r movableRead) UnsafeRange(b backend.Bucket, key, end []byte, limit int64) (keys, values [][]byte) {
	return r.m.now.Load().ReadTx().UnsafeRange(b, key, end, limit)
}

// UnsafeForEach implements backend.ReadTx.
func (r movableRead) UnsafeForEach(b backend.Bucket, visit func(k, v []byte) error) error {
	return r.m.now.Load().ReadTx().UnsafeForEach(b, visit)
}

// movableBatch is the write transaction.
type movableBatch struct {
	m *movable
	// mu is held while the file's transaction is, and when it is exchanged.
	mu              sync.Mutex
	backend.BatchTx          // of the present file
	changes         *changes // nil: they are not recorded
}

// Lock implements backend.BatchTx.
func (b *movableBatch) Lock() {
	b.mu.Lock()
	b.BatchTx.Lock()
}

// LockInsideApply implements backend.BatchTx.
func (b *movableBatch) LockInsideApply() {
	b.mu.Lock()
	b.BatchTx.LockInsideApply()
}

// LockOutsideApply implements backend.BatchTx.
func (b *movableBatch) LockOutsideApply() {
	b.mu.Lock()
	b.BatchTx.LockOutsideApply()
}

// Unlock implements backend.BatchTx.
func (b *movableBatch) Unlock() {
	b.BatchTx.Unlock()
	b.mu.Unlock()
}

// Commit implements backend.BatchTx.
func (b *movableBatch) Commit() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.BatchTx.Commit()
}

// CommitAndStop implements backend.BatchTx.
func (b *movableBatch) CommitAndStop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.BatchTx.CommitAndStop()
}

// UnsafeCreateBucket implements backend.BatchTx.
func (b *movableBatch) UnsafeCreateBucket(in backend.Bucket) {
	b.BatchTx.UnsafeCreateBucket(in)
	b.changes.created(in)
}

// UnsafeDeleteBucket implements backend.BatchTx.
func (b *movableBatch) UnsafeDeleteBucket(in backend.Bucket) {
	b.BatchTx.UnsafeDeleteBucket(in)
	b.changes.forget()
}

// UnsafePut implements backend.BatchTx.
func (b *movableBatch) UnsafePut(in backend.Bucket, key, value []byte) {
	b.BatchTx.UnsafePut(in, key, value)
	b.changes.add(in, key)
}

// UnsafeSeqPut implements backend.BatchTx.
func (b *movableBatch) UnsafeSeqPut(in backend.Bucket, key, value []byte) {
	b.BatchTx.UnsafeSeqPut(in, key, value)
	b.changes.add(in, key)
}

// UnsafeDelete implements backend.BatchTx.
func (b *movableBatch) UnsafeDelete(in backend.Bucket, key []byte) {
	b.BatchTx.UnsafeDelete(in, key)
	b.changes.add(in, key)
}
