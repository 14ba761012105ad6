package store

import (
	"math"
	"os"
	"sync"

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
)

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

// isShort reports whether an error says that the disk has no space, or the process no descriptor: it may
// have later.
func isShort(err error) bool { return isFull(err) || sys.NoDescriptor(err) }
