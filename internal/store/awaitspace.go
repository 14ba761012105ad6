package store

import (
	"errors"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/braidlog/braid/internal/store/filespace"
	"github.com/braidlog/braid/internal/sys"
)

// spacePause is how long applying waits before it looks for space again.
const spacePause = 100 * time.Millisecond

// SpaceFor is how many bytes of disk the database may take while what is under way is applied, if
// requests have at most so many bytes: the commands of one commit, or one of the largest.
func SpaceFor(requestBytes int) int64 {
	return 2*int64(requestBytes) + defaultBatchLimit*filespace.PerCommand + filespace.Step + filespace.Slack
}

// awaitSpace waits until commands can be applied without meeting a full disk.
func (s *Store) awaitSpace(commands []Command) error {
	bytes := 0
	for i := range commands {
		bytes += len(commands[i].Data)
	}
	db := s.database()
	if db.space.Expect(len(commands), bytes) {
		if err := s.commitNow(db); err != nil {
			return err
		}
	}
	err := db.space.Reserve()
	if err == nil {
		return nil
	}
	if err := s.commitNow(db); err != nil { // perhaps nothing of what was expected came
		return err
	}
	return s.whileShort("applying", db.space.Reserve)
}

// whileShort repeats a step until the disk has space for it, and the process a descriptor.
func (s *Store) whileShort(what string, step func() error) error {
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
func (s *Store) awaitFile(f *os.File, size int64) error {
	return s.whileShort("a snapshot", func() error {
		err := filespace.Allocate(f.Name(), size+filespace.Slack)
		if sys.NoDescriptor(err) {
			return err
		}
		if !filespace.IsFull(err) {
			return nil // there is space, or it cannot be told in advance
		}
		return errors.Join(err, f.Truncate(0)) // what was allocated of it
	})
}

// commitNow makes known what applying has really added.
func (s *Store) commitNow(db *database) error {
	return s.latch.guard(func() error {
		db.be.ForceCommit()
		db.be.ForceCommit() // nothing is left of the first
		return nil
	})
}

// Interrupt ends waits for space on the disk and for descriptors: they return ErrClosed. Call it before Close if Apply
// may still run.
func (s *Store) Interrupt() { s.interrupt.Do(func() { close(s.interrupted) }) }
