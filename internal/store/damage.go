package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/braidlog/braid/internal/store/sums"
	"github.com/braidlog/braid/internal/sys"
)

// DamageError says that a database is not what was written. The store serves nothing of it. A retry is useful after the
// state was taken from another member.
type DamageError = sums.DamageError

const (
	// damagedMark is a file that says that the database is damaged, and why. So a member that ends
	// before the repair knows it after its next start.
	damagedMark = "damaged"
	// repairedMark replaces it when the database was replaced and the alarm is not ended yet.
	repairedMark = "repaired"
	// setAside is where a damaged database is kept until it is replaced.
	setAside = "db.damaged"
)

// damage is what is known to be wrong with the state.
type damage struct {
	err   atomic.Pointer[DamageError]
	found chan struct{} // holds a token when something was found
	// repaired: it was replaced, and its alarm may not have ended.
	repaired atomic.Bool
	// since is the revision at which it was replaced last.
	since atomic.Int64
	// alarm: CORRUPT is raised for this member.
	alarm atomic.Bool
}

// Damaged returns why the state must not be served, nil if no damage is known. Restore ends it.
func (s *Store) Damaged() error {
	if d := s.damage.err.Load(); d != nil {
		return d
	}
	return nil
}

// DamageFound holds a token when the state was found to be damaged.
func (s *Store) DamageFound() <-chan struct{} { return s.damage.found }

// usable returns why nothing may be read or applied.
func (s *Store) usable() error {
	if err := s.latch.get(); err != nil {
		return err
	}
	return s.Damaged()
}

// checked runs something that reads, and returns its outcome only if no damage was found.
func (s *Store) checked(read func() error) error {
	if err := s.usable(); err != nil {
		return err
	}
	err := s.latch.guard(read)
	if damaged := s.Damaged(); damaged != nil {
		return damaged
	}
	return err
}

// Condemn says that the state is wrong. It is not served from now on, also after a restart, until
// Restore.
func (s *Store) Condemn(cause error) {
	d := &DamageError{Dir: s.opts.Dir, Cause: cause}
	if !s.damage.err.CompareAndSwap(nil, d) {
		return
	}
	s.lg.Error("the database is damaged: nothing of it is served until it was replaced", zap.String("dir", s.opts.Dir), zap.Error(cause))
	if err := markDamaged(s.opts.Dir, cause); err != nil { // then it is found again
		s.lg.Error("the damage cannot be noted on disk", zap.Error(err))
	}
	select {
	case s.damage.found <- struct{}{}:
	default:
	}
}

// absolve notes that the state was replaced by a good one.
func (s *Store) absolve() error {
	if s.Damaged() == nil {
		return nil
	}
	dir := s.opts.Dir
	names, err := s.openDir()
	if err != nil {
		return err
	}
	defer names.Close()
	if err := os.Rename(filepath.Join(dir, damagedMark), filepath.Join(dir, repairedMark)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Remove(filepath.Join(dir, setAside)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	s.damage.since.Store(s.kv.Rev())
	s.damage.repaired.Store(true)
	s.damage.err.Store(nil)
	s.lg.Info("the damaged database was replaced", zap.String("dir", dir))
	return names.Sync()
}

// Repaired reports whether the database was damaged and replaced since Settle was called.
func (s *Store) Repaired() bool { return s.damage.repaired.Load() }

// Settle forgets that the database was replaced: its alarm has ended.
func (s *Store) Settle() error {
	s.damage.repaired.Store(false)
	if err := os.Remove(filepath.Join(s.opts.Dir, repairedMark)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func markDamaged(dir string, cause error) error {
	f, err := os.Create(filepath.Join(dir, damagedMark))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s\n%s\n", time.Now().UTC().Format(time.RFC3339), cause)
	return errors.Join(err, f.Sync(), f.Close(), syncDir(dir))
}

// markedDamaged returns what is noted of the database's damage; why is nil if nothing is noted.
func markedDamaged(dir string) (why, err error) {
	noted, err := os.ReadFile(filepath.Join(dir, damagedMark))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, &sums.ReadError{What: "what is noted of damage", Err: err}
	}
	return fmt.Errorf("noted when it was found: %s", noted), nil
}

// exists reports whether there is a file in the store's directory.
func (s *Store) exists(name string) (bool, error) {
	_, err := os.Stat(filepath.Join(s.opts.Dir, name))
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	}
	return false, &sums.ReadError{What: "the directory", Err: err}
}

// openOrSetAside opens the database. If it is damaged and the state can be taken from another
// member, it is set aside, and an empty one is opened that only waits for Restore.
func (s *Store) openOrSetAside() (db *database, err error) {
	repaired, err := s.exists(repairedMark)
	if err != nil {
		return nil, err
	}
	s.damage.repaired.Store(repaired)
	why, err := markedDamaged(s.opts.Dir)
	if err != nil {
		return nil, err
	}
	if why == nil {
		db, err = openDatabase(s.path(), &s.opts, s.lg, s.Condemn)
		var damaged *DamageError
		if !errors.As(err, &damaged) || !s.opts.Repairable {
			return db, err
		}
		why = damaged.Cause
	}
	if !s.opts.Repairable {
		return nil, &DamageError{Dir: s.opts.Dir, Cause: why}
	}
	s.Condemn(why)
	if err := s.setAside(); err != nil {
		return nil, err
	}
	return openDatabase(s.path(), &s.opts, s.lg, s.Condemn)
}

// setAside makes place for an empty database.
func (s *Store) setAside() error {
	before, err := s.exists(setAside)
	if err != nil {
		return err
	}
	if before { // since an earlier start: this one is empty
		err = os.Remove(s.path())
	} else {
		err = os.Rename(s.path(), filepath.Join(s.opts.Dir, setAside))
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// inspect reads a database file before anything else does and returns its sums; nil if there
// is no database yet. It waits for another process to let go of it, as opening it does.
func inspect(path, dir string) (s *sums.Sums, adopted bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() == 0 {
		return nil, false, err
	}
	if err := lockShared(f); err != nil {
		return nil, false, err
	}
	return sumsOf(f, dir)
}

// sumsOf reads a whole database file and returns its sums.
func sumsOf(f io.ReaderAt, dir string) (s *sums.Sums, adopted bool, err error) {
	meta, err := sums.NewestMeta(f)
	if err == nil {
		s, adopted, err = sums.OfFile(&sums.Pages{File: f, Meta: meta})
	}
	if err != nil {
		return nil, false, sums.DamageOr(dir, err)
	}
	return s, adopted, nil
}

// errInUse is why a database cannot be opened that another process has open.
var errInUse = errors.New("in use by another process")

// lockShared keeps others from writing to the file until it is closed.
func lockShared(f *os.File) error {
	for deadline := time.Now().Add(openTimeout); ; time.Sleep(10 * time.Millisecond) {
		err := sys.Again(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) })
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		if time.Now().After(deadline) {
			return errInUse
		}
	}
}

// inspect reads a whole database as an open view shows it.
func (v *view) inspect() error {
	p, err := v.guarded.PagesOf(v.be)
	if err == nil {
		_, _, err = sums.OfFile(p)
	}
	if err == nil {
		return nil
	}
	return v.guarded.Judge(v.store.opts.Dir, err)
}
