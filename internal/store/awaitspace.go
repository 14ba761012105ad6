package store

import (
	"errors"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/braidlog/braid/internal/store/filespace"
	"github.com/braidlog/braid/internal/sys"
)

// spacePause is how long applying waits before it tries again to get space.
const spacePause = 100 * time.Millisecond

// SpaceFor is how many bytes of disk the database may take while the commands in progress are applied, if requests
// have at most this many bytes: the commands of one commit, or one of the largest.
func SpaceFor(requestBytes int) int64 {
	return 2*int64(requestBytes) + defaultBatchLimit*filespace.PerCommand + filespace.Step + filespace.Slack
}

// shortage repeats steps for which the disk has no space now, or the process no descriptor.
type shortage struct {
	dir   string // of the store
	lg    *zap.Logger
	latch *latch
	// interrupted is closed by interrupt.
	interrupted chan struct{}
	once        sync.Once
}

// awaitSpace waits until commands can be applied without meeting a full disk.
func (s *Store) awaitSpace(commands []Command) error {
	bytes := 0
	for i := range commands {
		bytes += len(commands[i].Data)
	}
	db := s.database()
	if db.space.Expect(len(commands), bytes) {
		if err := db.commitNow(s.latch); err != nil {
			return err
		}
	}
	err := db.space.Reserve()
	if err == nil {
		return nil
	}
	if err := db.commitNow(s.latch); err != nil { // perhaps none of the expected commands came
		return err
	}
	return s.short.wait("applying", db.space.Reserve)
}

// wait repeats a step until the disk has space for it, and the process a descriptor.
func (s *shortage) wait(what string, step func() error) error {
	for waited := false; ; waited = true {
		err := step()
		if !filespace.IsShort(err) {
			return err
		}
		if !waited {
			lack := "space on the disk"
			if sys.NoDescriptor(err) {
				lack = "a descriptor of the process"
			}
			s.lg.Warn(what+" waits for "+lack, zap.Error(err))
		}
		select {
		case <-time.After(spacePause):
		case <-s.interrupted:
			return ErrClosed
		case <-s.latch.failed:
			return s.latch.get()
		}
	}
}

// awaitFile waits until a file that is to hold a database has space for it.
func (s *shortage) awaitFile(f *os.File, size int64) error {
	return s.wait("a snapshot", func() error {
		err := filespace.Allocate(f.Name(), size+filespace.Slack)
		if sys.NoDescriptor(err) {
			return err
		}
		if !filespace.IsFull(err) {
			return nil // there is space, or that is not known in advance
		}
		return errors.Join(err, f.Truncate(0)) // releases what was allocated
	})
}

// commitNow commits, so that the space that applying really used is known.
func (db *database) commitNow(l *latch) error {
	return l.guard(func() error {
		db.be.ForceCommit()
		db.be.ForceCommit() // nothing is left of the first
		return nil
	})
}

// Interrupt ends waits for space on the disk and for descriptors: they return ErrClosed. Call it before Close if Apply
// may still run.
func (s *Store) Interrupt() { s.short.interrupt() }

func (s *shortage) interrupt() { s.once.Do(func() { close(s.interrupted) }) }

// openDir opens the directory to sync it. It comes before what is synced is changed.
func (s *shortage) openDir() (names *os.File, err error) {
	err = s.wait("a change of files", func() (err error) {
		names, err = os.Open(s.dir)
		return err
	})
	return names, err
}
