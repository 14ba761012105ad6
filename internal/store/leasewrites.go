package store

import (
	"bytes"
	"slices"
	"sync"

	"go.etcd.io/etcd/server/v3/etcdserver/cindex"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// leaseWrites holds back what etcd's lessor writes, until the database is committed. etcd gives each lease a
// transaction of its own. Each of them merges the lease into the buffer of what is not committed yet, and sorts that:
// members draw the ids of leases from different ranges, so that ids do not come in order. Each revocation even commits,
// because the buffer has no deletions. None of it is needed here: the lessor knows all leases, and nothing else reads
// their bucket but from what is committed.
//
// The position of a command is committed with its writes and not without them, as by etcd's transactions.
type leaseWrites struct {
	backend.Hooks // the rest of what is done before a commit; they write the position
	index         cindex.ConsistentIndexer
	limit         int // of the writes that are held back

	mu sync.Mutex
	// held are the writes that are held back. Invariant: while there are any, no other write of a lease is made.
	held []leaseWrite
	// due: the database's transaction has a write, so that it will be committed soon. What is held back goes with it.
	// Invariant: it is true while writes are held back.
	due bool
	// passing: after the next commit nothing is held back, because all changes of the file are recorded.
	passing bool
}

// leaseWrite is a write of a lease, by its key in the database; nil for the value: it is deleted.
type leaseWrite struct{ key, value []byte }

// OnPreCommitUnsafe implements backend.Hooks.
func (w *leaseWrites) OnPreCommitUnsafe(tx backend.UnsafeReadWriter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.held, func(a, b leaseWrite) int { return bytes.Compare(a.key, b.key) })
	for i, l := range w.held {
		switch {
		case i+1 < len(w.held) && bytes.Equal(l.key, w.held[i+1].key): // a later one counts
		case l.value == nil:
			tx.UnsafeDelete(schema.Lease, l.key)
		default:
			tx.UnsafePut(schema.Lease, l.key, l.value)
		}
	}
	clear(w.held)
	w.held, w.due = w.held[:0], false
	w.Hooks.OnPreCommitUnsafe(tx)
}

// pass sets whether nothing is held back after the next commit. That one may be of another file than later ones.
func (w *leaseWrites) pass(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.passing, w.due = on, len(w.held) > 0
}

// passes reports whether writes are not held back.
func (w *leaseWrites) passes() bool { return w.passing && len(w.held) == 0 }

// leaseBackend is the database as etcd's lessor has to see it.
type leaseBackend struct {
	backend.Backend
	tx leaseTx
}

// forLeases is the database as the lessor has to see it.
func (db *database) forLeases() backend.Backend {
	return &leaseBackend{db.be, leaseTx{BatchTx: db.be.BatchTx(), be: db.be, writes: db.leases}}
}

// BatchTx implements backend.Backend.
func (b *leaseBackend) BatchTx() backend.BatchTx { return &b.tx }

// leaseTx is the write transaction of the lessor. The apply goroutine uses it, and one that opens a store.
type leaseTx struct {
	backend.BatchTx
	be     backend.Backend
	writes *leaseWrites
	// holding: the transaction is only held back; else it is one of the database.
	holding bool
}

// LockInsideApply implements backend.BatchTx.
func (t *leaseTx) LockInsideApply() {
	w := t.writes
	w.mu.Lock()
	if t.holding = w.due && !w.passes(); t.holding {
		if position, term := w.index.ConsistentApplyingIndex(); position > w.index.UnsafeConsistentIndex() {
			w.index.SetConsistentIndex(position, term)
		}
		return
	}
	w.mu.Unlock()
	t.BatchTx.LockInsideApply()
}

// UnsafePut implements backend.BatchTx.
func (t *leaseTx) UnsafePut(b backend.Bucket, key, value []byte) {
	if t.holding {
		t.writes.held = append(t.writes.held, leaseWrite{key, value})
		return
	}
	t.BatchTx.UnsafePut(b, key, value)
	t.writes.mu.Lock()
	defer t.writes.mu.Unlock()
	t.writes.due = true
}

// Unlock implements backend.BatchTx.
func (t *leaseTx) Unlock() {
	if !t.holding {
		t.BatchTx.Unlock()
		return
	}
	t.holding = false
	full := len(t.writes.held) >= t.writes.limit
	t.writes.mu.Unlock()
	if full {
		t.be.ForceCommit()
	}
}

// UnsafeDelete implements backend.BatchTx. The lessor deletes a lease in the transaction that deletes its keys, which
// is one of the database. If there were no keys, the position is written, so that there is something to commit.
func (t *leaseTx) UnsafeDelete(b backend.Bucket, key []byte) {
	w := t.writes
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.passes() {
		t.BatchTx.UnsafeDelete(b, key)
		return
	}
	if !w.due {
		w.index.UnsafeSave(t.BatchTx)
		w.due = true
	}
	w.held = append(w.held, leaseWrite{key, nil})
}
