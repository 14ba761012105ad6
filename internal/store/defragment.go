package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"go.uber.org/zap"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/backend"

	"github.com/braidlog/braid/internal/store/filespace"
)

const (
	// rewriteBytes is how much is written to the new file at a time.
	rewriteBytes = 4 << 20
	// lastChanges is how many changes may be left for the moment in which the files are exchanged; after followRounds
	// rounds mostChanges, for which writes wait a little longer.
	lastChanges, mostChanges = 128, 4096
	followRounds             = 16
)

// errOvertaken: keys are written faster than they are copied.
var errOvertaken = errors.New("store: the database changes faster than it is copied")

// Defragment rewrites the database file without its holes. Reads and writes continue meanwhile; they wait only while
// the last changes are copied and the files are exchanged. If keys are written faster than they can be copied, writes
// wait for the whole copy. It waits for another defragmentation and, at the end, for open snapshots and for checksums
// of all keys, until ctx is done; then it ends without effect. It answers *SpaceError if the disk has no space for both
// the new file and the old one, and [ErrClosed] when the store is closed. After any error the database is the old one,
// unless the store failed. If a write or a sync of the new file fails, the process keeps that file open.
func (s *Store) Defragment(ctx context.Context) error {
	ctx, cancel := s.whileOpen(ctx)
	defer cancel()
	if err := s.rewriting.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("store: another defragmentation is in progress: %w", context.Cause(ctx))
	}
	defer s.rewriting.Release(1)
	if err := s.damage.usable(); err != nil {
		return err
	}
	for alone := false; ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := s.rewrite(ctx, alone)
		switch {
		case errors.Is(err, errOvertaken):
			alone = true
		case !errors.Is(err, ErrRestored):
			return err
		}
		s.lg.Info("defragmenting again", zap.Error(err))
	}
}

// whileOpen returns a context that also ends when the store is closed, or fails: its cause is the error then.
func (s *Store) whileOpen(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.stop:
			cancel(ErrClosed)
		case <-s.latch.failed:
			cancel(s.latch.get())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// rewrite is one attempt. alone: nothing is written meanwhile.
func (s *Store) rewrite(ctx context.Context, alone bool) (err error) {
	if alone {
		if err := s.frozen.exclude(ctx); err != nil {
			return err
		}
		defer s.frozen.admit()
	}
	r := rewriting{s: s, db: s.database(), alone: alone, ctx: ctx}
	if free, need := freeBytes(s.opts.Dir), r.db.be.SizeInUse()+filespace.Slack; free < need {
		return &SpaceError{Op: "defragment", Need: need, Free: free}
	}
	defer observeDefragmentation()()
	before := r.db.be.Size()
	// What holds the database's locks when the store fails never releases them.
	err = errors.Join(s.latch.apart(r.run), r.end())
	s.lg.Info("defragmented", zap.Int64("bytes before", before), zap.Int64("bytes", s.DBSize()), zap.Bool("alone", alone),
		zap.Error(err))
	return err
}

// rewriting is a copy of a database. A crash before the exchange leaves a file that is removed at the next start, and
// the old database has everything. The new one has the same content when it takes its place.
type rewriting struct {
	s     *Store
	db    *database
	alone bool
	ctx   context.Context // of whileOpen

	name string    // of the new file; "": there is none, or it is in place
	read *os.File  // the new file, for reading its pages
	file *bolt.DB  // while it is filled
	open *openFile // then
	room int64     // bytes that are allocated for it, and not written yet
	// own fails when the open file does, and then the store as well if it is installed.
	own       *latch
	installed atomic.Bool
}

func (r *rewriting) run() error {
	if r.alone {
		r.db.leases.pass(true)
		defer r.halt()()
		r.db.movable.batch.changes = newChanges()
		return firstOf(r.create, r.copy, r.reopen, r.exchange)
	}
	r.record(newChanges())
	if err := firstOf(r.create, r.copy, r.follow); err != nil {
		return err
	}
	if err := r.s.frozen.exclude(r.ctx); err != nil {
		return err
	}
	defer r.s.frozen.admit()
	// It may have waited, and to open the file takes the longer the larger it is.
	if err := firstOf(r.follow, r.reopen, r.follow); err != nil {
		return err
	}
	defer r.halt()()
	return r.exchange()
}

// firstOf runs steps up to the first that fails.
func firstOf(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// halt keeps everything else from writing to the database, and from replacing it.
func (r *rewriting) halt() (release func()) {
	r.s.files.Lock()
	r.db.movable.batch.mu.Lock()
	return func() {
		r.db.movable.batch.mu.Unlock()
		r.s.files.Unlock()
	}
}

// record begins to record changes, or ends it with nil. Writes of leases are held back until the commit that comes
// before the copy; later ones are recorded.
func (r *rewriting) record(c *changes) {
	r.db.leases.pass(c != nil)
	b := &r.db.movable.batch
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changes = c
}

// end removes what is left. A store that failed is left as it is: its locks may be held forever.
func (r *rewriting) end() (err error) {
	if r.s.latch.get() != nil {
		return nil
	}
	r.record(nil)
	if r.file != nil {
		err = r.file.Close()
	}
	if r.open != nil && r.own.get() == nil { // else its locks may be held forever
		err = r.own.apart(r.open.close)
	}
	if r.name != "" {
		err = errors.Join(err, r.read.Close(), os.Remove(r.name))
	}
	return err
}

func (r *rewriting) create() error {
	f, err := os.CreateTemp(r.s.opts.Dir, defragPattern)
	if err != nil {
		return err
	}
	r.name, r.read = f.Name(), f
	r.file, err = bolt.Open(r.name, 0o600, &bolt.Options{
		Timeout: openTimeout, NoSync: r.s.opts.NoSync, NoFreelistSync: true, FreelistType: bolt.FreelistMapType,
	})
	return err
}

// copy copies everything that a view of the database has.
func (r *rewriting) copy() error {
	var view backend.Snapshot
	err := r.present(func() error { // it commits
		view = r.db.be.Snapshot()
		return nil
	})
	if err != nil {
		return err
	}
	defer view.Close()
	pages, err := r.db.guarded.PagesOf(view)
	if err != nil {
		return r.db.guarded.Judge(r.s.opts.Dir, err)
	}
	w := batches{file: r.file, going: r.going}
	err = pages.All(w.bucket, w.put)
	if w.failed == nil && err != nil { // it was reading that failed
		err = r.db.guarded.Judge(r.s.opts.Dir, err)
	}
	return errors.Join(err, w.end(err))
}

// going returns an error once the context has ended, or the disk has no more space for the writes of others.
func (r *rewriting) going() error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if free := freeBytes(r.s.opts.Dir); free < filespace.Step {
		return &SpaceError{Op: "defragment", Need: filespace.Step, Free: free}
	}
	return nil
}

// follow copies what was written meanwhile, in rounds, until little is left.
func (r *rewriting) follow() error {
	left, err := r.round(0)
	for n := 1; err == nil && left > lastChanges; n++ {
		if n > followRounds && left <= mostChanges {
			break
		}
		if n > followRounds {
			return errOvertaken
		}
		left, err = r.round(left)
	}
	return err
}

// round copies a number of changes, and returns how many there are then.
func (r *rewriting) round(n int) (left int, err error) {
	for first := true; first || n > 0; first = false {
		var p *passage
		if p, left, err = r.take(n); err != nil {
			return 0, err
		}
		if err := errors.Join(r.going(), r.write(p)); err != nil {
			return 0, err
		}
		if n -= len(p.entries); len(p.entries) == 0 {
			break
		}
	}
	return left, nil
}

// write writes to the new file.
func (r *rewriting) write(p *passage) error {
	if r.open == nil {
		return r.file.Update(p.into)
	}
	if err := r.allocate(p.bytes); err != nil {
		return err
	}
	return r.own.apart(func() error {
		tx := r.open.BatchTx()
		tx.LockOutsideApply()
		p.writeTo(tx)
		tx.Unlock()
		return nil
	})
}

// allocate gets space for bytes that are written to the open file, because a write that fails there is one of the
// store. Pages around what is written are written again.
func (r *rewriting) allocate(bytes int) error {
	need := 2*int64(bytes) + filespace.Slack
	if r.room >= need {
		r.room -= need - filespace.Slack
		return nil
	}
	size := r.open.Size() + need + filespace.Step
	if err := filespace.Allocate(r.name, size); filespace.IsFull(err) {
		return &SpaceError{Op: "defragment", Need: size, Free: freeBytes(r.s.opts.Dir)}
	}
	r.room = filespace.Step + filespace.Slack
	return nil
}

// take reads changes while nothing else is written.
func (r *rewriting) take(n int) (p *passage, left int, err error) {
	err = r.present(func() error {
		b := &r.db.movable.batch
		b.LockOutsideApply()
		defer b.Unlock()
		if b.changes.lost {
			return errOvertaken
		}
		p = b.changes.take(b.BatchTx, min(n, lastChanges), rewriteBytes)
		left = len(b.changes.keys)
		return nil
	})
	return p, left, err
}

// present runs f while the database is the store's.
func (r *rewriting) present(f func() error) error {
	return r.s.using(func(db *database) error {
		if db != r.db {
			return ErrRestored
		}
		return f()
	})
}

// reopen opens the new file as the database's own will be, which takes the longer the larger it is.
func (r *rewriting) reopen() error {
	size := int64(0)
	err := r.file.View(func(tx *bolt.Tx) error {
		size = tx.Size()
		return nil
	})
	err = errors.Join(err, r.file.Close())
	r.file = nil
	if err != nil {
		return err
	}
	r.room = filespace.Step + filespace.Slack
	need := size + r.room
	if err := filespace.Allocate(r.name, need); filespace.IsFull(err) {
		return &SpaceError{Op: "defragment", Need: need, Free: freeBytes(r.s.opts.Dir)}
	}
	r.own = newLatch(r.s.opts.Dir, zap.NewNop(), func(err error) {
		if r.installed.Load() {
			_ = r.s.latch.fail(err)
		}
	})
	err = r.own.guard(func() error {
		open, err := r.db.open(r.name, r.own, r.s.opts.Logger)
		if err == nil {
			r.open = open
		}
		return err
	})
	if err != nil {
		return err
	}
	return r.same()
}

// same returns an error if the new file's name is not that of the file that was filled: opening creates an empty file
// where there is none.
func (r *rewriting) same() error {
	filled, err := r.read.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(r.name)
	if err != nil {
		return err
	}
	if !os.SameFile(filled, named) {
		return fmt.Errorf("store: defragment: the new file %s was removed meanwhile", r.name)
	}
	return nil
}

// exchange puts the new file in the place of the old one, while everything else is halted.
func (r *rewriting) exchange() error {
	s := r.s
	names, err := s.short.openDir()
	if err != nil {
		return err
	}
	defer names.Close()
	return r.present(func() error {
		if r.db.movable.batch.changes.lost {
			return errOvertaken
		}
		old, err := r.db.movable.move(r.open, r.allocate, func() error { return r.install(names) })
		if err != nil {
			return err
		}
		r.open, r.name = nil, ""
		r.db.space.Moved()
		_ = r.db.space.Reserve()                 // the next command waits for space if there is none
		s.closing.Go(func() { _ = old.close() }) // its file is gone already
		r.db.guarded.Reopened(r.read)
		return nil
	})
}

// install durably gives the new file the database's name. If the name may not be durable, or the file has failed
// meanwhile, that is fatal.
func (r *rewriting) install(names *os.File) error {
	if err := os.Rename(r.name, r.s.opts.path()); err != nil {
		return err
	}
	r.installed.Store(true)
	if err := r.own.get(); err != nil {
		return r.s.latch.fail(err)
	}
	if r.s.opts.NoSync {
		return nil
	}
	if err := names.Sync(); err != nil {
		panic(&FatalError{Dir: r.s.opts.Dir, Op: "put the defragmented database in place", Cause: err})
	}
	return nil
}

// batches writes keys to a file, in order and in transactions of rewriteBytes.
type batches struct {
	file   *bolt.DB
	going  func() error
	name   []byte // of the present bucket
	tx     *bolt.Tx
	in     *bolt.Bucket
	bytes  int
	failed error // of writing
}

func (w *batches) bucket(name []byte) error {
	w.name, w.in = name, nil
	return w.begin()
}

func (w *batches) begin() error {
	if w.tx == nil {
		if w.tx, w.failed = w.file.Begin(true); w.failed != nil {
			return w.failed
		}
	}
	if w.in, w.failed = w.tx.CreateBucketIfNotExists(w.name); w.failed != nil {
		return w.failed
	}
	w.in.FillPercent = filledPages
	return nil
}

func (w *batches) put(key, value []byte) error {
	if w.failed = w.in.Put(key, slices.Clone(value)); w.failed != nil {
		return w.failed
	}
	if w.bytes += len(key) + len(value); w.bytes < rewriteBytes {
		return nil
	}
	w.bytes = 0
	tx := w.tx
	w.tx = nil
	if w.failed = errors.Join(tx.Commit(), w.going()); w.failed != nil {
		return fmt.Errorf("store: defragment: %w", w.failed)
	}
	return w.begin()
}

// end commits the last transaction, or ends it after an error.
func (w *batches) end(err error) error {
	switch {
	case w.tx == nil:
		return nil
	case err != nil:
		return w.tx.Rollback()
	}
	return w.tx.Commit()
}
