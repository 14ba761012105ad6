package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// ErrBadSnapshot is returned for a stream that is not a whole snapshot. The state is
// unchanged; a retry with another stream is safe.
var ErrBadSnapshot = errors.New("store: bad snapshot")

// restorePattern matches files that Restore has not finished.
const restorePattern = "db.restore.*"

// Restore replaces the state by one that a Snapshot wrote. Watchers continue: they see what happened in between, or get
// an error that it is compacted. The state is unchanged if the stream is bad; another error is fatal. Where the disk
// has no space or the process no descriptor, it waits; see [Store.Interrupt].
func (s *Store) Restore(r io.Reader) error {
	if err := s.latch.get(); err != nil {
		return err
	}
	name, err := s.receive(r)
	if err != nil {
		return err
	}
	err = s.short.wait("a snapshot", func() error {
		_, _, err := inspect(name, s.opts.Dir)
		return err
	})
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %w", ErrBadSnapshot, err), os.Remove(name))
	}
	return s.latch.guard(func() error { return s.replace(name) })
}

// receive writes the database of a snapshot into a file of its own, durably.
func (s *Store) receive(r io.Reader) (name string, err error) {
	var f *os.File
	err = s.short.wait("a snapshot", func() (err error) {
		f, err = os.CreateTemp(s.opts.Dir, restorePattern)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("store: restore: %w", err)
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if err := copySnapshot(f, r, func(size int64) error { return s.short.awaitFile(f, size) }); err != nil {
		return "", err
	}
	if s.opts.NoSync {
		return f.Name(), nil
	}
	return f.Name(), f.Sync()
}

// copySnapshot copies the database out of a snapshot and checks the snapshot's digest. Before
// the first byte space makes space for all of them.
func copySnapshot(w io.Writer, r io.Reader, space func(size int64) error) error {
	digest := sha256.New()
	in := io.TeeReader(r, digest)
	header := make([]byte, snapshotHeader)
	if _, err := io.ReadFull(in, header); err != nil {
		return fmt.Errorf("%w: header: %w", ErrBadSnapshot, err)
	}
	if !bytes.HasPrefix(header, []byte(snapshotMagic)) {
		return fmt.Errorf("%w: it starts with %q", ErrBadSnapshot, header[:len(snapshotMagic)])
	}
	size := binary.BigEndian.Uint64(header[len(snapshotMagic)+8:])
	if size > 1<<62 {
		return fmt.Errorf("%w: a database of %d bytes", ErrBadSnapshot, size)
	}
	if err := space(int64(size)); err != nil {
		return err
	}
	n, err := io.CopyN(w, in, int64(size))
	if err != nil {
		return fmt.Errorf("%w: %d of %d bytes: %w", ErrBadSnapshot, n, size, err)
	}
	want := make([]byte, sha256.Size)
	sum := digest.Sum(nil)
	if _, err := io.ReadFull(r, want); err != nil {
		return fmt.Errorf("%w: digest: %w", ErrBadSnapshot, err)
	}
	if !bytes.Equal(sum, want) {
		return fmt.Errorf("%w: SHA-256 is %x, should be %x", ErrBadSnapshot, sum, want)
	}
	return nil
}

// replace puts a database in the place of the store's. A crash leaves the old one or the
// new one.
func (s *Store) replace(name string) error {
	s.releaser.mu.Lock()
	defer s.releaser.mu.Unlock()
	s.files.Lock()
	defer s.files.Unlock()
	if err := s.install(name); err != nil {
		return s.latch.fail(&FatalError{Dir: s.opts.Dir, Op: "put a snapshot in place", Cause: err})
	}
	var db *database
	err := s.short.wait("opening a snapshot", func() (err error) {
		db, err = openDatabase(s.opts.path(), &s.opts, s.lg, s.damage.Condemn)
		return err
	})
	if err != nil {
		return s.latch.fail(&FatalError{Dir: s.opts.Dir, Op: "open a snapshot", Cause: err})
	}
	old, err := s.swapFor(db)
	if err != nil {
		return s.latch.fail(&FatalError{Dir: s.opts.Dir, Op: "read a snapshot", Cause: err})
	}
	old.guarded.Replaced.Store(true)
	if err := s.damage.repairedBy(s.kv.Rev()); err != nil {
		return s.latch.fail(&FatalError{Dir: s.opts.Dir, Op: "note that damage was repaired", Cause: err})
	}
	s.leases.follow(readClaim(db.be))
	s.closed.Store(readClosed(db.be))
	s.closing.Add(1)
	go func() { // waits for the snapshots that are open on it
		defer s.closing.Done()
		_ = old.be.Close() // its file is gone already
	}()
	return s.latch.get()
}

// swapFor makes everything use a new database, and returns the old one. Leases come before the keys that hang on them;
// the hook and the appliers last. What is read meanwhile waits for users and roles before it is returned (still).
func (s *Store) swapFor(db *database) (old *database, err error) {
	s.rights.swap.Lock()
	defer s.rights.swap.Unlock()
	s.rights.swaps.Add(1)
	defer s.rights.swaps.Add(1)
	s.lessor.Recover(db.forLeases(), func() lease.TxnDelete { return s.kv.Write(traceutil.TODO()) })
	s.lessor.load(db.be)
	if err := s.kv.Restore(db.keys()); err != nil {
		return nil, err
	}
	if err := s.quotas.load(db, s.kv); err != nil {
		return nil, err
	}
	return s.adopt(db), nil
}

// install durably renames a file to that of the database.
func (s *Store) install(name string) error {
	names, err := s.short.openDir()
	if err != nil {
		return err
	}
	defer names.Close()
	if err := os.Rename(name, s.opts.path()); err != nil || s.opts.NoSync {
		return err
	}
	return names.Sync()
}

// adopt makes everything but keys and leases use a new database, and returns the old one.
func (s *Store) adopt(db *database) (old *database) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, s.db = s.db, db
	close(s.replaced)
	s.replaced = make(chan struct{})
	s.rights.replace(schema.NewAuthBackend(s.lg, db.be))
	s.recoverCluster()
	if err := s.openAppliers(); err != nil {
		s.latch.fail(&FatalError{Dir: s.opts.Dir, Op: "read the alarms of a snapshot", Cause: err})
	}
	s.positions.set(db.index.ConsistentIndex())
	db.hook()
	return old
}

func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
