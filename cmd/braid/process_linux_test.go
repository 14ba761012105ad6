package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/ports"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/vfs/errorfs"
)

// beBraid makes this test binary the program under test, with all its processes.
const beBraid = "BRAID_TEST_BE_BRAID"

// fewDescriptors is the program's limit of descriptors, as by ulimit -n.
const fewDescriptors = "BRAID_TEST_DESCRIPTORS"

// diskLock names a file. While another process has locked it, no sync of the program ends.
const diskLock = "BRAID_TEST_DISK_LOCK"

// stalls returns an injector that makes each sync wait for the lock of a file.
func stalls(path string) func(errorfs.Op) error {
	return func(op errorfs.Op) error {
		if op.Kind != errorfs.OpFileSync && op.Kind != errorfs.OpFileSyncData {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return unix.Flock(int(f.Fd()), unix.LOCK_SH)
	}
}

func TestMain(m *testing.M) {
	if os.Getenv(beBraid) == "1" {
		if n, err := strconv.ParseUint(os.Getenv(fewDescriptors), 10, 64); err == nil {
			if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
				panic(err)
			}
		}
		if path := os.Getenv(diskLock); path != "" {
			vfs.OS = errorfs.Wrap(vfs.OS, errorfs.InjectorFunc(stalls(path)))
		}
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	flag.Parse()
	if at := flag.Lookup("test.parallel"); at.Value.String() == at.DefValue { // tests wait for members most of the time
		if err := at.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// testTimeout bounds a test's wait for an event that should be quick.
const testTimeout = 2 * time.Minute

// invocation is a run of braid. It ends with the test, however the test ends.
type invocation struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr output // complete once ended is closed
	ended  chan struct{}
	err    error // of the process; set before ended is closed
}

// output is a process's output so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// begin starts braid. lines gets its standard output line by line and is closed at its end.
func begin(t *testing.T, stdin string, args ...string) (c *invocation, lines <-chan string) {
	t.Helper()
	return beginWith(t, nil, stdin, args...)
}

// beginWith is begin with more in the environment, which members of a cluster inherit.
func beginWith(t *testing.T, env []string, stdin string, args ...string) (c *invocation, lines <-chan string) {
	t.Helper()
	return beginBuild(t, os.Args[0], env, stdin, args...)
}

// beginBuild is beginWith with the program of this file.
func beginBuild(
	t *testing.T, program string, env []string, stdin string, args ...string,
) (c *invocation, lines <-chan string) {
	testsize.Long(t)
	t.Helper()
	c = &invocation{t: t, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	c.cmd.Env = slices.Concat(os.Environ(), env, []string{beBraid + "=1"})
	c.cmd.Stdin, c.cmd.Stderr = strings.NewReader(stdin), &c.stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	out := make(chan string, 10000)
	started := make(chan error)
	go func() {
		defer close(c.ended)
		runtime.LockOSThread() // the process dies with the thread that started it
		err := c.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		for scan := bufio.NewScanner(stdout); scan.Scan(); {
			out <- scan.Text()
		}
		close(out)
		c.err = c.cmd.Wait()
	}()
	require.NoError(t, <-started)
	t.Cleanup(c.stop)
	return c, out
}

// stop ends the process if it runs, and waits.
func (c *invocation) stop() {
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := c.cmd.Process.Signal(s); errors.Is(err, os.ErrProcessDone) {
			break
		}
		select {
		case <-c.ended:
			return
		case <-time.After(20 * time.Second):
		}
	}
	<-c.ended
}

// exit waits for the end and returns the exit code and the standard error.
func (c *invocation) exit() (code int, stderr string) {
	c.t.Helper()
	select {
	case <-c.ended:
	case <-time.After(testTimeout):
		require.Fail(c.t, "the command does not end", "%v", c.cmd.Args)
	}
	return c.cmd.ProcessState.ExitCode(), c.stderr.String()
}

// do runs braid to its end.
func do(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	c, lines := begin(t, stdin, args...)
	code, stderr = c.exit()
	var all []string
	for line := range lines {
		all = append(all, line)
	}
	return strings.Join(all, "\n"), stderr, code
}

// ok runs braid, requires success and returns the output.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, code := do(t, "", args...)
	require.Zero(t, code, "%v: %s", args, stderr)
	return stdout
}

// cluster is a run of braid up.
type cluster struct {
	*invocation
	dir       string
	events    chan eventView
	endpoints []string
	pids      map[string]int    // by name
	clients   map[string]string // client URLs by name
}

func up(t *testing.T, dir string, args ...string) *cluster {
	t.Helper()
	return upWith(t, nil, dir, args...)
}

func upWith(t *testing.T, env []string, dir string, args ...string) *cluster {
	t.Helper()
	c := launched(t, env, dir, args...)
	ready := c.next(launch.Ready)
	c.endpoints = ready.Endpoints
	return c
}

// launched starts braid up without waiting for the cluster.
func launched(t *testing.T, env []string, dir string, args ...string) *cluster {
	t.Helper()
	args = append([]string{"up", "--json", "--data", dir}, args...)
	if !launch.Exists(dir) {
		args = append(args, "--base-port="+strconv.Itoa(basePort(t)))
	}
	process, lines := beginWith(t, env, "", args...)
	c := &cluster{invocation: process, dir: dir, events: make(chan eventView, 1000), pids: map[string]int{},
		clients: map[string]string{}}
	go func() { // ends with the process
		defer close(c.events)
		for line := range lines {
			var e eventView
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				e.How = line
			}
			c.events <- e
		}
	}()
	return c
}

// basePort is the first port of a new cluster. Clusters that run at the same time have no common port, even while
// members are down.
func basePort(t *testing.T) int {
	t.Helper()
	base, release, err := ports.Range("127.0.0.1")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, release()) })
	return base
}

// next waits for an event of a kind and records the processes that start meanwhile.
func (c *cluster) next(kind launch.EventKind) eventView {
	c.t.Helper()
	deadline := time.After(testTimeout)
	for {
		select {
		case e, running := <-c.events:
			if !running {
				<-c.ended
				require.Fail(c.t, "braid up ended", "%s", c.stderr.String())
			}
			if e.Event == launch.Started {
				c.pids[e.Member], c.clients[e.Member] = e.PID, e.Client
			}
			if e.Event == kind {
				return e
			}
		case <-deadline:
			require.Fail(c.t, "no event", "%s", kind)
		}
	}
}

// client returns a client of the given endpoints, by default of all members.
func (c *cluster) client(endpoints ...string) *clientv3.Client {
	c.t.Helper()
	if len(endpoints) == 0 {
		endpoints = c.endpoints
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(), DialTimeout: testTimeout})
	require.NoError(c.t, err)
	c.t.Cleanup(func() { client.Close() })
	return client
}

// leader returns the name of the leader according to a majority.
func (c *cluster) leader() string {
	c.t.Helper()
	client := c.client()
	var found string
	eventually(c.t, "a leader", func(ctx context.Context) bool {
		votes := map[uint64]int{}
		ids := map[uint64]string{}
		for name, url := range c.clients {
			if s, err := client.Status(ctx, url); err == nil {
				ids[s.Header.MemberId] = name
				votes[s.Leader]++
			}
		}
		for id, n := range votes {
			if 2*n > len(c.clients) && ids[id] != "" {
				found = ids[id]
				return true
			}
		}
		return false
	})
	return found
}

// eventually tries until it succeeds.
func eventually(t *testing.T, what string, try func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		attempt, cancelAttempt := context.WithTimeout(ctx, 5*time.Second)
		done := try(attempt)
		cancelAttempt()
		if done {
			return
		}
		select {
		case <-ctx.Done():
			require.Fail(t, "it did not happen", what)
		case <-tick.C:
		}
	}
}

// kill ends a process as a crash does.
func kill(t *testing.T, pid int) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func dataDir(t *testing.T) string { return filepath.Join(t.TempDir(), "data") }
