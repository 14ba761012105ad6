package filespace

import (
	"math"
	"os"
	"sync"

	"go.etcd.io/etcd/server/v3/storage/backend"

	"github.com/braidlog/braid/internal/sys"
)

// Space allocates disk space before a database file grows. A full disk is fatal for the
// database: a commit that finds no space fails. So the blocks are allocated before the commands
// that need them are applied. If that is not possible, applying waits.
type Space struct {
	Path string
	Size func() int64 // of the durable part of the file

	mu sync.Mutex
	// Allocated: the file has blocks up to there, of which nothing may be in use yet.
	Allocated int64
	// growing is what commands applied since the last commit began may add, and committing what those of that commit may
	// add.
	growing, committing int64
	// next is what commands that will be applied may add.
	next int64
}

const (
	// Slack is for writes that are not applied commands: leases, alarms, the removal of old revisions.
	Slack = 2 << 20
	// Step is how much more is allocated than is needed now.
	Step = 8 << 20
	// PerCommand is how many bytes of pages a command may change besides its own.
	PerCommand = 16 << 10
	// spaceExpected is from how much on a commit is due: commands that are refused write nothing.
	spaceExpected = 64 << 20
)

// Expect adds commands that will be applied. It reports whether the expected sum is so large that a commit should show
// how much was really used.
func (r *Space) Expect(commands, bytes int) (commit bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	commit = r.growing+r.committing > spaceExpected
	r.next = 2*int64(bytes) + PerCommand*int64(commands)
	return commit
}

// Reserve allocates what is expected and some more. An error means that the disk is full, and not even what is
// expected has space, or that the process has no descriptor to find out.
func (r *Space) Reserve() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	need := r.Size() + r.growing + r.committing + r.next + Slack
	err := r.allocate(need)
	if err == nil {
		r.growing, r.next = r.growing+r.next, 0
	}
	return err
}

func (r *Space) allocate(need int64) (err error) {
	if need <= r.Allocated {
		return nil
	}
	for _, size := range []int64{need + Step, need} {
		switch err = Allocate(r.Path, size); {
		case err == nil:
			r.Allocated = size
			return nil
		case sys.NoDescriptor(err): // whether there is space is not known, and will be
			return err
		case !IsFull(err): // not known in advance on this system
			r.Allocated = math.MaxInt64
			return nil
		}
	}
	r.Allocated = max(r.Allocated, blocks(r.Path))
	if need <= r.Allocated+Slack/2 {
		return nil
	}
	return err
}

// Begun records that a commit begins.
func (r *Space) Begun() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.committing, r.growing = r.growing, 0
}

// Moved records that the file is another one.
func (r *Space) Moved() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Allocated = 0
}

// blocks is how many bytes of blocks a file has, which have no holes.
func blocks(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return allocatedBytes(info)
}

// Hooks adds to h a call of Begun for each commit.
func (r *Space) Hooks(h backend.Hooks) backend.Hooks { return hooks{h, r} }

type hooks struct {
	backend.Hooks
	space *Space
}

// OnPreCommitUnsafe implements backend.Hooks.
func (h hooks) OnPreCommitUnsafe(tx backend.UnsafeReadWriter) {
	h.space.Begun()
	h.Hooks.OnPreCommitUnsafe(tx)
}

// IsShort reports whether an error means that the disk has no space, or the process no descriptor: it may have later.
func IsShort(err error) bool { return IsFull(err) || sys.NoDescriptor(err) }
