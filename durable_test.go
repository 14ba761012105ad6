package braid_test

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/vfs/errorfs"
)

// TestAcknowledgedIsDurable looks at what the disks have synced at the moment of each
// acknowledgement: a majority has the command. So no member counts, and no answer leaves, before
// its disk is done.
func TestAcknowledgedIsDurable(t *testing.T) {
	t.Parallel()
	for name, tune := range map[string]func(*braid.Options){"one instance": nil, "woven": woven(3)} {
		t.Run(name, func(t *testing.T) {
			disks := map[braid.MemberID]*watchedDisk{}
			c := newCluster(t, 3, func(o *braid.Options) {
				if tune != nil {
					tune(o)
				}
				disks[o.Self] = &watchedDisk{FS: vfs.OS}
				o.FS = disks[o.Self]
			})
			c.led()
			for i := range 60 {
				command := fmt.Appendf(nil, "command %03d.", i)
				_, err := c.nodes[braid.MemberID(1+i%3)].Propose(c.ctx(), command)
				require.NoError(t, err)
				holders := 0
				for _, disk := range disks {
					if disk.holds(command) {
						holders++
					}
				}
				require.GreaterOrEqual(t, holders, 2, "%s was acknowledged, and too few disks have synced it", command)
			}
		})
	}
}

// watchedDisk remembers what was written, and what of it is synced. Each sync takes some
// milliseconds, so that an answer that does not wait for it comes first.
type watchedDisk struct {
	vfs.FS
	mu     sync.Mutex
	synced bytes.Buffer
}

func (d *watchedDisk) holds(what []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return bytes.Contains(d.synced.Bytes(), what)
}

func (d *watchedDisk) watch(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &watchedFile{File: f, disk: d}, nil
}

func (d *watchedDisk) Create(name string) (vfs.File, error) {
	return d.watch(d.FS.Create(name))
}

func (d *watchedDisk) OpenReadWrite(name string) (vfs.File, error) {
	return d.watch(d.FS.OpenReadWrite(name))
}

type watchedFile struct {
	vfs.File
	disk    *watchedDisk
	mu      sync.Mutex
	written bytes.Buffer // and not synced
}

func (f *watchedFile) WriteAt(b []byte, at int64) (int, error) {
	f.mu.Lock()
	f.written.Write(b)
	f.mu.Unlock()
	return f.File.WriteAt(b, at)
}

func (f *watchedFile) SyncData() error {
	f.mu.Lock()
	covered := bytes.Clone(f.written.Bytes())
	f.written.Reset()
	f.mu.Unlock()
	<-time.After(3 * time.Millisecond)
	err := f.File.SyncData()
	f.disk.mu.Lock()
	f.disk.synced.Write(covered)
	f.disk.mu.Unlock()
	return err
}

// TestALeaderWhoseDiskStandsStillIsReplaced holds up the syncs of the leader: it must not continue
// leading with a disk on which nothing can be written, however well its heartbeats arrive.
func TestALeaderWhoseDiskStandsStillIsReplaced(t *testing.T) {
	disks := map[braid.MemberID]*stall{}
	c := newCluster(t, 3, func(o *braid.Options) {
		disks[o.Self] = &stall{}
		o.FS = errorfs.Wrap(vfs.OS, disks[o.Self])
		o.Heartbeat, o.ElectionTimeout = 20*time.Millisecond, 200*time.Millisecond
	})
	old := c.leader()
	_, err := c.nodes[old].Propose(c.ctx(), []byte("before"))
	require.NoError(t, err)

	resume := disks[old].begin()
	defer resume()
	proposed := make(chan error, 1)
	go func() {
		_, err := c.nodes[old].Propose(c.ctx(), []byte("during"))
		proposed <- err
	}()
	require.Eventually(t, func() bool {
		for id, n := range c.nodes {
			if id != old && leads(n, id) {
				return !leads(c.nodes[old], old)
			}
		}
		return false
	}, testTimeout, 10*time.Millisecond, "nobody else leads")
	resume()
	require.NoError(t, <-proposed)
}

// stall holds up the syncs of a disk.
type stall struct {
	until atomic.Pointer[chan struct{}] // nil: it does not
}

// begin makes syncs wait until resume is called, which may be called again.
func (s *stall) begin() (resume func()) {
	until := make(chan struct{})
	s.until.Store(&until)
	return sync.OnceFunc(func() {
		s.until.Store(nil)
		close(until)
	})
}

// MaybeError implements errorfs.Injector.
func (s *stall) MaybeError(op errorfs.Op) error {
	if until := s.until.Load(); until != nil && op.Kind == errorfs.OpFileSyncData {
		<-*until
	}
	return nil
}

// leads reports whether n takes a member to be the leader of its first instance.
func leads(n *braid.Node, id braid.MemberID) bool {
	st := n.Status()
	return st.Leader() == id
}

// TestAllDirectoriesAboveAreDurable begins a member where several directories of its path do not
// exist yet. A power loss leaves none of them out, and so nothing of what was acknowledged.
func TestAllDirectoriesAboveAreDurable(t *testing.T) {
	t.Parallel()
	disk := vfs.NewCrashableMem()
	c := newCluster(t, 1, func(o *braid.Options) { o.Dir, o.FS = "var/lib/braid/m1", disk })
	c.leader()
	_, err := c.nodes[1].Propose(c.ctx(), []byte("acknowledged"))
	require.NoError(t, err)
	files, err := disk.Crash(0, nil).List("var/lib/braid/m1/log")
	require.NoError(t, err)
	require.NotEmpty(t, files)
}
