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

// DamageError: a database is not what was written. The store serves nothing of it. A retry is useful after the state
// was taken from another member.
type DamageError = sums.DamageError

const (
	// damagedMark is a file that exists while the database is damaged, and has the reason. So a member that ends before
	// the repair knows it after its next start.
	damagedMark = "damaged"
	// repairedMark replaces it when the database was replaced and the alarm is not ended yet.
	repairedMark = "repaired"
	// setAside is where a damaged database is kept until it is replaced.
	setAside = "db.damaged"
)

// Damage is the known damage of the state. It is safe for concurrent use.
type Damage struct {
	opts  *Options
	lg    *zap.Logger
	latch *latch
	short *shortage

	err   atomic.Pointer[DamageError]
	found chan struct{} // holds a token when something was found
	// repaired: it was replaced, and its alarm may not have ended.
	repaired atomic.Bool
	// since is the revision at which it was replaced last.
	since atomic.Int64
	// alarm: CORRUPT is raised for this member.
	alarm atomic.Bool
}

// Damage returns the known damage of the state.
func (s *Store) Damage() *Damage { return &s.damage }

// Err returns why the state must not be served, nil if no damage is known. [Store.Restore] ends it.
func (d *Damage) Err() error {
	if d := d.err.Load(); d != nil {
		return d
	}
	return nil
}

// Found holds a token when the state was found to be damaged.
func (d *Damage) Found() <-chan struct{} { return d.found }

// Raised reports whether the alarm CORRUPT is raised for this member.
func (d *Damage) Raised() bool { return d.alarm.Load() }

// usable returns why nothing may be read or applied.
func (d *Damage) usable() error {
	if err := d.latch.get(); err != nil {
		return err
	}
	return d.Err()
}

// checked runs something that reads, and returns its outcome only if no damage was found.
func (d *Damage) checked(read func() error) error {
	if err := d.usable(); err != nil {
		return err
	}
	err := d.latch.guard(read)
	if damaged := d.Err(); damaged != nil {
		return damaged
	}
	return err
}

// Condemn marks the state as wrong. It is not served from now on, also after a restart, until Restore.
func (d *Damage) Condemn(cause error) {
	if !d.err.CompareAndSwap(nil, &DamageError{Dir: d.opts.Dir, Cause: cause}) {
		return
	}
	d.lg.Error("the database is damaged: nothing of it is served until it was replaced", zap.String("dir", d.opts.Dir),
		zap.Error(cause))
	if err := markDamaged(d.opts.Dir, cause); err != nil { // then it is found again
		d.lg.Error("the damage cannot be noted on disk", zap.Error(err))
	}
	select {
	case d.found <- struct{}{}:
	default:
	}
}

// repairedBy records that the state was replaced by a good one with this newest revision.
func (d *Damage) repairedBy(revision int64) error {
	if d.Err() == nil {
		return nil
	}
	dir := d.opts.Dir
	names, err := d.short.openDir()
	if err != nil {
		return err
	}
	defer names.Close()
	if err := os.Rename(filepath.Join(dir, damagedMark), filepath.Join(dir, repairedMark)); err != nil &&
		!errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Remove(filepath.Join(dir, setAside)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	d.since.Store(revision)
	d.repaired.Store(true)
	d.err.Store(nil)
	d.lg.Info("the damaged database was replaced", zap.String("dir", dir))
	return names.Sync()
}

// Repaired reports whether the database was damaged and replaced since ForgetRepair was called.
func (d *Damage) Repaired() bool { return d.repaired.Load() }

// ForgetRepair records that the alarm of a database that was replaced has ended.
func (d *Damage) ForgetRepair() error {
	d.repaired.Store(false)
	if err := os.Remove(filepath.Join(d.opts.Dir, repairedMark)); err != nil && !errors.Is(err, os.ErrNotExist) {
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

// markedDamaged returns the recorded damage of the database; why is nil if there is none.
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
func (d *Damage) exists(name string) (bool, error) {
	_, err := os.Stat(filepath.Join(d.opts.Dir, name))
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
func (d *Damage) openOrSetAside() (db *database, err error) {
	repaired, err := d.exists(repairedMark)
	if err != nil {
		return nil, err
	}
	d.repaired.Store(repaired)
	why, err := markedDamaged(d.opts.Dir)
	if err != nil {
		return nil, err
	}
	if why == nil {
		db, err = openDatabase(d.opts.path(), d.opts, d.lg, d.Condemn)
		var damaged *DamageError
		if !errors.As(err, &damaged) || !d.opts.Repairable {
			return db, err
		}
		why = damaged.Cause
	}
	if !d.opts.Repairable {
		return nil, &DamageError{Dir: d.opts.Dir, Cause: why}
	}
	d.Condemn(why)
	if err := d.setAside(); err != nil {
		return nil, err
	}
	return openDatabase(d.opts.path(), d.opts, d.lg, d.Condemn)
}

// setAside renames the database, so that an empty one can be created.
func (d *Damage) setAside() error {
	before, err := d.exists(setAside)
	if err != nil {
		return err
	}
	if before { // since an earlier start: this one is empty
		err = os.Remove(d.opts.path())
	} else {
		err = os.Rename(d.opts.path(), filepath.Join(d.opts.Dir, setAside))
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

// lockShared prevents other processes from writing to the file until it is closed.
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
	return v.guarded.Judge(v.dir, err)
}
