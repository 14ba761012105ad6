package store

import (
	"errors"
	"math"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"go.etcd.io/etcd/server/v3/storage/backend"

	"github.com/braidlog/braid/internal/sys"
)

// fileSpace allocates disk space before a database file grows. A full disk is fatal for the
// database: a commit that finds no space fails. So the blocks are allocated before the commands
// that need them are applied. If that is not possible, applying waits.
type fileSpace struct {
	path string
	size func() int64 // of what the file has durably

	mu sync.Mutex
	// allocated: the file has blocks up to there, of which nothing may be in use yet.
	allocated int64
	// growing is what may be added by what was applied since the last commit began, and
	// committing by what is being committed, or was.
	growing, committing int64
	// next is what may be added by what is about to be applied.
	next int64
}

const (
	// spaceSlack is for what is not applied: leases, alarms, the removal of old revisions.
	spaceSlack = 2 << 20
	// spaceStep is how much more is allocated than is needed now.
	spaceStep = 8 << 20
	// spacePerCommand is how many bytes of pages a command may change besides its own.
	spacePerCommand = 16 << 10
	// spaceExpected is from how much on a commit is wanted: commands that are refused write nothing.
	spaceExpected = 64 << 20
	// spacePause is how long applying waits before it looks for space again.
	spacePause = 100 * time.Millisecond
)

// SpaceFor is how many bytes of disk the database may take while what is under way is applied, if
// requests have at most so many bytes: the commands of one commit, or one of the largest.
func SpaceFor(requestBytes int) int64 {
	return 2*int64(requestBytes) + defaultBatchLimit*spacePerCommand + spaceStep + spaceSlack
}

// expect adds what is about to be applied. It reports whether the expected sum is so large that a
// commit should tell how much was really used.
func (r *fileSpace) expect(commands, bytes int) (commit bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	commit = r.growing+r.committing > spaceExpected
	r.next = 2*int64(bytes) + spacePerCommand*int64(commands)
	return commit
}

// reserve allocates what is expected and some more. An error says that the disk is full, and not
// even what is expected has space, or that the process has no descriptor to find out.
func (r *fileSpace) reserve() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	need := r.size() + r.growing + r.committing + r.next + spaceSlack
	err := r.allocate(need)
	if err == nil {
		r.growing, r.next = r.growing+r.next, 0
	}
	return err
}

func (r *fileSpace) allocate(need int64) (err error) {
	if need <= r.allocated {
		return nil
	}
	for _, size := range []int64{need + spaceStep, need} {
		switch err = allocate(r.path, size); {
		case err == nil:
			r.allocated = size
			return nil
		case sys.NoDescriptor(err): // whether there is space is not known, and will be
			return err
		case !isFull(err): // it cannot be told in advance here
			r.allocated = math.MaxInt64
			return nil
		}
	}
	r.allocated = max(r.allocated, blocks(r.path))
	if need <= r.allocated+spaceSlack/2 {
		return nil
	}
	return err
}

// begun says that a commit begins.
func (r *fileSpace) begun() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.committing, r.growing = r.growing, 0
}

// moved says that the file is another one.
func (r *fileSpace) moved() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.allocated = 0
}

// blocks is how many bytes of blocks a file has, which have no holes.
func blocks(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return allocatedBytes(info)
}

// spaceHooks tells the space when a commit begins.
type spaceHooks struct {
	backend.Hooks
	space *fileSpace
}

func (h spaceHooks) OnPreCommitUnsafe(tx backend.UnsafeReadWriter) {
	h.space.begun()
	h.Hooks.OnPreCommitUnsafe(tx)
}

// awaitSpace waits until commands can be applied without meeting a full disk.
func (s *Store) awaitSpace(commands []Command) error {
	bytes := 0
	for i := range commands {
		bytes += len(commands[i].Data)
	}
	db := s.database()
	if db.space.expect(len(commands), bytes) {
		if err := s.commitNow(db); err != nil {
			return err
		}
	}
	err := db.space.reserve()
	if err == nil {
		return nil
	}
	if err := s.commitNow(db); err != nil { // perhaps nothing of what was expected came
		return err
	}
	return s.whileShort("applying", db.space.reserve)
}

// isShort reports whether an error says that the disk has no space, or the process no descriptor: it may
// have later.
func isShort(err error) bool { return isFull(err) || sys.NoDescriptor(err) }

// whileShort repeats a step until the disk has space for it, and the process a descriptor.
func (s *Store) whileShort(what string, step func() error) error {
	for waited := false; ; waited = true {
		err := step()
		if !isShort(err) {
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
		err := allocate(f.Name(), size+spaceSlack)
		if sys.NoDescriptor(err) {
			return err
		}
		if !isFull(err) {
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
