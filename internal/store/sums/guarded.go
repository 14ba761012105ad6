package sums

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync/atomic"

	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// Guarded is a database whose keys are checked against their checksums. etcd's code trusts a database and accepts no
// error from it. So damage is reported to found, and nothing is returned for the damaged keys. Before data is served,
// its reader checks whether damage was found.
type Guarded struct {
	backend.Backend
	sums *Sums
	// File is the database's, for reading its pages.
	File DatabaseFile
	// found is called with damage, from any goroutine, unless the database is replaced already.
	found    func(error)
	Replaced atomic.Bool
	// broken: reading it ended in a panic, so locks of it may be held forever.
	broken atomic.Bool
	batch  guardedBatch
	read   guardedRead
}

// DatabaseFile is an open database file.
type DatabaseFile interface {
	io.ReaderAt
	io.Closer
}

// Guard makes a guarded database of one with these sums, which is open as file, too. found is called with damage.
func Guard(be backend.Backend, s *Sums, file DatabaseFile, found func(error)) *Guarded {
	g := &Guarded{Backend: be, sums: s, File: file, found: found}
	g.batch = guardedBatch{be.BatchTx(), g}
	g.read = guardedRead{be.ReadTx(), g}
	return g
}

// BatchTx implements backend.Backend.
func (g *Guarded) BatchTx() backend.BatchTx { return &g.batch }

// ReadTx implements backend.Backend.
func (g *Guarded) ReadTx() backend.ReadTx { return &g.read }

// ConcurrentReadTx implements backend.Backend.
func (g *Guarded) ConcurrentReadTx() backend.ReadTx {
	return &guardedRead{g.Backend.ConcurrentReadTx(), g}
}

// Hash implements backend.Backend. The sums are not part of it: they depend on where in the order the last transaction
// was, which differs between members.
func (g *Guarded) Hash(ignores func(bucket, key []byte) bool) (uint32, error) {
	return g.Backend.Hash(func(bucket, key []byte) bool {
		return isRecord(bucket, key) || ignores != nil && ignores(bucket, key)
	})
}

// Close implements backend.Backend.
func (g *Guarded) Close() (err error) {
	defer g.File.Close()
	if g.broken.Load() {
		return nil // those that acquire its locks wait forever
	}
	defer g.rescue(nil)
	return g.Backend.Close()
}

// Reopened records that another file, which is open as f, replaced the database's own. No view is open.
func (g *Guarded) Reopened(f DatabaseFile) {
	_ = g.File.Close() // it was only read
	g.File = f
}

func (g *Guarded) report(err error) {
	if !g.Replaced.Load() {
		g.found(err)
	}
}

// Judge reports damage, and returns the error of reading the database in a directory.
func (g *Guarded) Judge(dir string, err error) error {
	err = DamageOr(dir, err)
	if damaged := (*DamageError)(nil); errors.As(err, &damaged) {
		g.report(damaged.Cause)
	}
	return err
}

// rescue turns a panic, or a fault in the map of the file, into damage that was found.
func (g *Guarded) rescue(after func()) {
	if r := recover(); r != nil {
		g.broken.Store(true)
		g.report(fmt.Errorf("reading it failed: %v: %s", r, debug.Stack()))
		if after != nil {
			after()
		}
	}
}

// keysIn reads a range and checks it.
func (g *Guarded) keysIn(tx backend.UnsafeReader, b backend.Bucket, key, end []byte,
	limit int64) (keys, values [][]byte) {
	if g.broken.Load() {
		return nothing(b, key, end)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer g.rescue(func() { keys, values = nothing(b, key, end) })
	keys, values = tx.UnsafeRange(b, key, end, limit)
	if b.ID() != schema.Key.ID() {
		return keys, values // overwritten: only the scrub knows with which transaction they belong
	}
	if len(keys) == 0 && len(end) == 0 {
		if err := g.sums.missing(key); err != nil {
			g.report(err)
			return nothing(b, key, end)
		}
	}
	for i := range keys {
		if err := g.sums.revision(keys[i], values[i]); err != nil {
			g.report(err)
			values[i] = nil
		}
	}
	return keys, values
}

// nothing is returned in place of damaged data: no keys, or the requested key without a value.
func nothing(b backend.Bucket, key, end []byte) (keys, values [][]byte) {
	if b.ID() == schema.Key.ID() && len(end) == 0 {
		return [][]byte{bytes.Clone(key)}, [][]byte{nil}
	}
	return nil, nil
}

func (g *Guarded) forEach(tx backend.UnsafeReader, b backend.Bucket, visit func(k, v []byte) error) (err error) {
	if g.broken.Load() {
		return nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer g.rescue(nil)
	if b.ID() != schema.Key.ID() {
		return tx.UnsafeForEach(b, visit)
	}
	return tx.UnsafeForEach(b, func(k, v []byte) error {
		if err := g.sums.revision(k, v); err != nil {
			g.report(err)
			return nil
		}
		return visit(k, v)
	})
}

type guardedRead struct {
	backend.ReadTx
	g *Guarded
}

// UnsafeRange implements backend.ReadTx.
func (r *guardedRead) UnsafeRange(b backend.Bucket, key, end []byte, limit int64) (keys, values [][]byte) {
	return r.g.keysIn(r.ReadTx, b, key, end, limit)
}

// UnsafeForEach implements backend.ReadTx.
func (r *guardedRead) UnsafeForEach(b backend.Bucket, visit func(k, v []byte) error) error {
	return r.g.forEach(r.ReadTx, b, visit)
}

// guardedBatch is the write transaction. It updates the checksums.
type guardedBatch struct {
	backend.BatchTx
	g *Guarded
}

// UnsafeRange implements backend.BatchTx.
func (t *guardedBatch) UnsafeRange(b backend.Bucket, key, end []byte, limit int64) (keys, values [][]byte) {
	return t.g.keysIn(t.BatchTx, b, key, end, limit)
}

// UnsafeForEach implements backend.BatchTx.
func (t *guardedBatch) UnsafeForEach(b backend.Bucket, visit func(k, v []byte) error) error {
	return t.g.forEach(t.BatchTx, b, visit)
}

// UnsafePut implements backend.BatchTx.
func (t *guardedBatch) UnsafePut(b backend.Bucket, key, value []byte) {
	t.BatchTx.UnsafePut(b, key, value)
	t.g.sums.put(b.Name(), key, value)
}

// UnsafeSeqPut implements backend.BatchTx.
func (t *guardedBatch) UnsafeSeqPut(b backend.Bucket, key, value []byte) {
	t.BatchTx.UnsafeSeqPut(b, key, value)
	t.g.sums.put(b.Name(), key, value)
}

// UnsafeDelete implements backend.BatchTx.
func (t *guardedBatch) UnsafeDelete(b backend.Bucket, key []byte) {
	t.BatchTx.UnsafeDelete(b, key)
	t.g.sums.drop(b.Name(), key)
}

// UnsafeDeleteBucket implements backend.BatchTx.
func (t *guardedBatch) UnsafeDeleteBucket(b backend.Bucket) {
	t.BatchTx.UnsafeDeleteBucket(b)
	t.g.sums.dropBucket(b.Name())
}

// Sealing writes the sums with every transaction that is committed.
type Sealing struct {
	backend.Hooks
	Sums    *Sums
	written []byte // last; others may hold it
}

// OnPreCommitUnsafe implements backend.Hooks. What etcd's own hook writes counts too.
func (h *Sealing) OnPreCommitUnsafe(tx backend.UnsafeReadWriter) {
	h.Hooks.OnPreCommitUnsafe(summed{tx, h.Sums})
	record := h.Sums.record()
	if bytes.Equal(record, h.written) {
		return
	}
	tx.UnsafePut(schema.Meta, RecordKey, record)
	h.written = record
}

// summed records the writes of a transaction.
type summed struct {
	backend.UnsafeReadWriter
	sums *Sums
}

// UnsafePut implements backend.UnsafeWriter.
func (t summed) UnsafePut(b backend.Bucket, key, value []byte) {
	t.UnsafeReadWriter.UnsafePut(b, key, value)
	t.sums.put(b.Name(), key, value)
}

// UnsafeDelete implements backend.UnsafeWriter.
func (t summed) UnsafeDelete(b backend.Bucket, key []byte) {
	t.UnsafeReadWriter.UnsafeDelete(b, key)
	t.sums.drop(b.Name(), key)
}

// firstPage keeps the beginning of what is written to it.
type firstPage struct{ data []byte }

var _ io.Writer = (*firstPage)(nil)

// Write implements io.Writer.
func (f *firstPage) Write(p []byte) (int, error) {
	f.data = bytes.Clone(p[:min(len(p), pageHeader+metaSize)])
	return 0, errEnough
}

// PagesOf reads the pages of a database as an open view shows them.
func (g *Guarded) PagesOf(v backend.Snapshot) (*Pages, error) {
	first := new(firstPage)
	if _, err := v.WriteTo(first); len(first.data) == 0 {
		return nil, &ReadError{"the database", err}
	}
	meta, ok := parseMeta(first.data)
	if !ok {
		return nil, &PageError{0, "is none of a database"}
	}
	return &Pages{File: g.File, Meta: meta}, nil
}
