package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/testsize"
)

// electionTimeout is the default of --election-timeout.
const electionTimeout = time.Second

// writers put their own keys until they are stopped and record acknowledged puts.
type writers struct {
	stop    context.CancelFunc
	all     sync.WaitGroup
	acked   [8]atomic.Int64 // the last number that each writer knows to be written
	mu      sync.Mutex
	unsure  [8]map[int64]bool // numbers of puts that failed: each may be written at any later time
	last    time.Time         // of any acknowledgement
	longest time.Duration     // without one
}

func write(t *testing.T, c *cluster, endpoints ...string) *writers {
	ctx, cancel := context.WithCancel(t.Context())
	w := &writers{stop: cancel, last: time.Now()}
	for i := range w.acked {
		client := c.client(endpoints...)
		w.all.Go(func() { w.run(ctx, client, i) })
	}
	t.Cleanup(w.end)
	return w
}

func (w *writers) run(ctx context.Context, client *clientv3.Client, i int) {
	for n := int64(1); ctx.Err() == nil; {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		_, err := client.Put(attempt, fmt.Sprintf("w%d", i), fmt.Sprint(n))
		cancel()
		if err != nil {
			w.doubt(i, n)
			continue // it may be written: repeat it
		}
		w.acked[i].Store(n)
		w.mark()
		n++
	}
}

func (w *writers) doubt(i int, n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unsure[i] == nil {
		w.unsure[i] = map[int64]bool{}
	}
	w.unsure[i][n] = true
}

func (w *writers) mark() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.longest = max(w.longest, time.Since(w.last))
	w.last = time.Now()
}

// longestPause is the longest time without any acknowledgement.
func (w *writers) longestPause() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.longest
}

func (w *writers) end() {
	w.stop()
	w.all.Wait()
}

func (w *writers) total() (n int64) {
	for i := range w.acked {
		n += w.acked[i].Load()
	}
	return n
}

// check requires that no acknowledged put is lost. A put that was not acknowledged may be there, also after later ones.
func (w *writers) check(t *testing.T, client *clientv3.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for i := range w.acked {
		acked := w.acked[i].Load()
		r, err := client.Get(ctx, fmt.Sprintf("w%d", i))
		require.NoError(t, err)
		if acked == 0 && len(r.Kvs) == 0 {
			continue
		}
		require.Len(t, r.Kvs, 1, "writer %d", i)
		var n int64
		_, err = fmt.Sscan(string(r.Kvs[0].Value), &n)
		require.NoError(t, err)
		require.GreaterOrEqual(t, r.Kvs[0].Version, acked, "writer %d", i)
		w.mu.Lock()
		late := w.unsure[i][n]
		w.mu.Unlock()
		if !late {
			require.Equal(t, acked, n, "writer %d", i)
		}
	}
}

func TestKillOfTheLeaderLosesNothing(t *testing.T) {
	var longest time.Duration
	for range 4 { // a busy machine may be late, but not always
		if longest = killOfTheLeader(t); longest < 2*electionTimeout {
			return
		}
	}
	require.Less(t, longest, 2*electionTimeout)
}

// killOfTheLeader kills a leader during writes, requires that nothing is lost, and returns the longest time without
// an acknowledgement.
func killOfTheLeader(t *testing.T) time.Duration {
	c := up(t, dataDir(t))
	defer c.stop()
	leader := c.leader()
	var others []string
	for name, url := range c.clients {
		if name != leader {
			others = append(others, strings.TrimPrefix(url, "http://"))
		}
	}
	w := write(t, c, others...)
	eventually(t, "writes", func(context.Context) bool { return w.total() > 500 })
	kill(t, c.pids[leader])
	c.next(launch.Died)
	before := w.total()
	eventually(t, "writes after the crash", func(context.Context) bool { return w.total() > before+500 })
	w.end()
	t.Logf("longest time without an acknowledgement: %s", w.longestPause())
	w.check(t, c.client(others...))
	return w.longestPause()
}

func TestKillOfAllAndResume(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	dir := dataDir(t)
	c := up(t, dir)
	w := write(t, c)
	eventually(t, "writes", func(context.Context) bool { return w.total() > 1000 })
	for _, pid := range c.pids {
		kill(t, pid)
	}
	code, stderr := c.exit()
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "no member is left")
	w.end()

	again := up(t, dir)
	require.Equal(t, c.endpoints, again.endpoints)
	w.check(t, again.client())
	require.NoError(t, again.cmd.Process.Signal(syscall.SIGKILL)) // the members end with it
	<-again.ended
	w.check(t, up(t, dir).client())
}

func TestKillsInTurn(t *testing.T) {
	t.Parallel()
	c := up(t, dataDir(t), "--restart")
	w := write(t, c)
	for _, name := range []string{c.leader(), "m1", "m2", "m3"} {
		before := w.total()
		kill(t, c.pids[name])
		require.Equal(t, name, c.next(launch.Serving).Member)
		eventually(t, "writes after a crash", func(context.Context) bool { return w.total() > before+200 })
	}
	w.end()
	last, err := c.client().Get(t.Context(), "w0")
	require.NoError(t, err)
	hashes := map[uint32]bool{} // of the same revision everywhere: a late put may follow
	for _, endpoint := range c.endpoints {
		client := c.client(endpoint)
		w.check(t, client)
		r, err := client.HashKV(t.Context(), endpoint, last.Header.Revision)
		require.NoError(t, err)
		hashes[r.Hash] = true
	}
	require.Len(t, hashes, 1)
}

// A leader whose process was paused does not know that it was deposed. It must not answer later reads from its old
// state.
func TestPausedLeaderServesNothingOld(t *testing.T) {
	t.Parallel()
	c := up(t, dataDir(t))
	leader := c.leader()
	old := strings.TrimPrefix(c.clients[leader], "http://")
	var others []string
	for name, url := range c.clients {
		if name != leader {
			others = append(others, strings.TrimPrefix(url, "http://"))
		}
	}
	ok(t, "ctl", "--endpoints", old, "put", "a", "old")
	require.NoError(t, syscall.Kill(c.pids[leader], syscall.SIGSTOP))
	t.Cleanup(func() { syscall.Kill(c.pids[leader], syscall.SIGCONT) })
	client := c.client(others...)
	eventually(t, "a write without the leader", func(ctx context.Context) bool {
		_, err := client.Put(ctx, "a", "new")
		return err == nil
	})
	read, seen := begin(t, "", "ctl", "--endpoints", old, "--command-timeout=20s", "get", "a", "--print-value-only")
	require.NoError(t, syscall.Kill(c.pids[leader], syscall.SIGCONT))
	code, stderr := read.exit()
	require.Zero(t, code, stderr)
	require.Equal(t, "new", <-seen)
}
