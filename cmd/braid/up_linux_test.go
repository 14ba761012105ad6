package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
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

	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/testsize"
)

func TestUpPrintsReadyAndStops(t *testing.T) {
	t.Parallel()
	c, lines := begin(t, "", "up", "--base-port=0", "--data", dataDir(t))
	var seen []string
	for line := range lines {
		seen = append(seen, line)
		if line == "ready" {
			require.NoError(t, c.cmd.Process.Signal(os.Interrupt))
		}
	}
	code, stderr := c.exit()
	require.Zero(t, code, stderr)
	require.Empty(t, stderr)
	text := strings.Join(seen, "\n")
	require.Contains(t, text, "new cluster in ")
	require.Contains(t, text, "\nendpoints 127.0.0.1:")
	require.True(t, strings.HasSuffix(text, "\nready\nstopping\nstopped"), text)
}

func TestUpLeavesNoProcess(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]syscall.Signal{"stopped": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := up(t, dataDir(t))
			require.Len(t, c.pids, 3)
			require.NoError(t, c.cmd.Process.Signal(end))
			<-c.ended
			eventually(t, "the end of all members", func(context.Context) bool {
				return gone(c.pids["m1"]) && gone(c.pids["m2"]) && gone(c.pids["m3"])
			})
		})
	}
}

// TestUpStopsWithItsLauncher is about programs that start `braid up`, as the tests of Kubernetes do.
func TestUpStopsWithItsLauncher(t *testing.T) {
	testsize.Long(t)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	theirs, ours, err := os.Pipe()
	require.NoError(t, err)
	defer theirs.Close()
	cmd := exec.CommandContext(ctx, os.Args[0], "up", "--nodes=1", "--base-port=0", "--data", dataDir(t))
	cmd.Env = append(os.Environ(), beBraid+"=1", "BRAID_PARENT_FD=3")
	cmd.ExtraFiles = []*os.File{theirs}
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var last string
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if last = lines.Text(); last == "ready" {
			require.NoError(t, ours.Close())
		}
	}
	require.NoError(t, cmd.Wait())
	require.Equal(t, "stopped", last)
}

func TestUpOfOneMember(t *testing.T) {
	t.Parallel()
	c := up(t, dataDir(t), "--nodes=1")
	ok(t, "ctl", "--endpoints", c.endpoints[0], "put", "a", "b")
	require.Equal(t, "a\nb", ok(t, "ctl", "--endpoints", c.endpoints[0], "get", "a"))
}

func TestCtlAgainstEveryMember(t *testing.T) {
	t.Parallel()
	c := up(t, dataDir(t))
	for i, endpoint := range c.endpoints {
		ctl := func(args ...string) string {
			return ok(t, append([]string{"ctl", "--endpoints", endpoint}, args...)...)
		}
		key := "key" + strconv.Itoa(i)
		watch, seen := begin(t, "", "ctl", "--endpoints", endpoint, "watch", "--rev=1", key)

		require.Equal(t, "OK", ctl("put", key, "one"))
		require.Equal(t, key+"\none", ctl("get", key))
		txn, stderr, code := do(t, "value(\""+key+"\") = \"one\"\n\nput "+key+" two\nget "+key+"\n\nput "+key+" no\n\n",
			"ctl", "--endpoints", endpoint, "txn")
		require.Zero(t, code, stderr)
		require.Equal(t, "SUCCESS\n\nOK\n\n"+key+"\ntwo", txn)
		require.Equal(t, "1", ctl("del", key))
		require.Empty(t, ctl("get", key))

		for _, want := range []string{"PUT", key, "one", "PUT", key, "two", "DELETE", key, ""} {
			require.Equal(t, want, <-seen)
		}
		watch.stop()
	}
	require.Contains(t, ok(t, "ctl", "--endpoints", strings.Join(c.endpoints, ","), "endpoint", "health"), "is healthy")
	require.Len(t, strings.Split(ok(t, "ctl", "--endpoints", c.endpoints[0], "member", "list"), "\n"), 3)
}

func TestBadRequestsAreRefused(t *testing.T) {
	t.Parallel()
	c := up(t, dataDir(t), "--nodes=1")
	huge := filepath.Join(t.TempDir(), "huge")
	require.NoError(t, os.WriteFile(huge, make([]byte, 32<<20), 0o600))
	content, err := os.ReadFile(huge)
	require.NoError(t, err)
	_, stderr, code := do(t, string(content), "ctl", "--endpoints", c.endpoints[0], "put", "big")
	require.NotZero(t, code)
	require.Contains(t, stderr, "too large")
	_, stderr, code = do(t, "", "ctl", "--endpoints", c.endpoints[0], "put", "", "x")
	require.NotZero(t, code)
	require.Contains(t, stderr, "key is not provided")
	require.Equal(t, "OK", ok(t, "ctl", "--endpoints", c.endpoints[0], "put", "a", "b"))
}

func TestStatus(t *testing.T) {
	t.Parallel()
	c := up(t, dataDir(t))
	text := ok(t, "status", "--endpoints", c.endpoints[0])
	for _, name := range []string{"m1", "m2", "m3", "leader", "follower"} {
		require.Contains(t, text, name)
	}
	require.Contains(t, ok(t, "status", "--json", "--endpoints", c.endpoints[1]), `"is_leader":true`)
	require.Contains(t, text, "fit: advise")

	var advice, why string
	eventually(t, "an advice", func(context.Context) bool {
		code := 0
		advice, why, code = do(t, "", "advise", "--endpoints", c.endpoints[2])
		return code == exitOK
	})
	require.Regexp(t, `leader m[123] decided at .*, under profile 1, fit=advise`, advice, why)
	require.Contains(t, advice, "raft (active)")

	kill(t, c.pids["m3"])
	c.next(launch.Died)
	stdout, stderr, code := do(t, "", "status", "--endpoints", c.endpoints[0])
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "not every member is ready")
	require.Contains(t, stdout, "refused")
}

// TestStatusUnderLoad: members under load are always a moment behind; they are ready nevertheless.
func TestStatusUnderLoad(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := up(t, dataDir(t))
	client, err := clientv3.New(clientv3.Config{Endpoints: c.endpoints, Logger: zap.NewNop()})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var load sync.WaitGroup
	for i := range 100 {
		load.Go(func() {
			for ctx.Err() == nil {
				_, _ = client.Put(ctx, fmt.Sprintf("k%d", i), strings.Repeat("v", 100))
			}
		})
	}
	defer func() {
		cancel()
		load.Wait()
		client.Close()
	}()
	for range 20 {
		ok(t, "status", "--endpoints", c.endpoints[0])
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	c := up(t, dataDir(t), "--restart")
	before := c.pids["m2"]
	kill(t, before)
	died := c.next(launch.Died)
	require.Equal(t, "m2", died.Member)
	require.Equal(t, "was killed by signal 9 (killed)", died.How)
	again := c.next(launch.Serving)
	require.Equal(t, "m2", again.Member)
	require.NotEqual(t, before, again.PID)
	ok(t, "ctl", "--endpoints", strings.TrimPrefix(c.clients["m2"], "http://"), "put", "a", "b")
}

func TestBusyPortNamesItsOwner(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	dir := dataDir(t)
	_, stderr, code := do(t, "", "up", "--data", dir, "--base-port", port)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "m1: 127.0.0.1:"+port+" is taken by braid.test (process "+strconv.Itoa(os.Getpid())+")")

	_, stderr, code = do(t, "", "serve", "--data-dir", dir, "--listen-client-urls", "http://127.0.0.1:"+port)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "is taken by braid.test (process "+strconv.Itoa(os.Getpid())+")")
}

func TestDataInUse(t *testing.T) {
	t.Parallel()
	c := up(t, dataDir(t), "--nodes=1")
	_, stderr, code := do(t, "", "up", "--data", c.dir)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "is in use by another running cluster (process "+strconv.Itoa(c.cmd.Process.Pid)+")")
}

func TestResumeWithOtherWishes(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	up(t, dir, "--nodes=1").stop()
	_, stderr, code := do(t, "", "up", "--data", dir, "--nodes=3")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "holds a cluster with nodes 1, not 3")
}

func TestResumeKeepsThePlacement(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	up(t, dir, "--nodes=1", "--placement=code", "--code-k=3").stop()
	again := launched(t, nil, dir, "--extra-whole=1", "--trim-whole", "--large-value-bytes=2048",
		"--max-request-bytes=1000000")
	prepared := again.next(launch.Prepared)
	require.Equal(t, "craft", prepared.Protocol)
	require.Equal(t, "code", prepared.Placement)
	require.Equal(t, 3, prepared.CodeK)
	again.next(launch.Ready)
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", again.pids["m1"]))
	require.NoError(t, err)
	for _, flag := range []string{
		"--protocol=craft", "--placement=code", "--code-k=3", "--extra-whole=1", "--trim-whole=true",
		"--large-value-bytes=2048", "--max-request-bytes=1000000",
	} {
		require.Contains(t, strings.Split(string(line), "\x00"), flag)
	}
	again.stop()
	for flag, want := range map[string]string{
		"--protocol=raft": "protocol craft, not raft", "--placement=copy": "placement code, not copy",
		"--code-k=0": "code-k 3, not 0",
	} {
		_, stderr, code := do(t, "", "up", "--data", dir, flag)
		require.Equal(t, exitUsage, code, stderr)
		require.Contains(t, stderr, want)
	}
}

// The emulated links are recorded, until another --net replaces them.
func TestResumeKeepsTheNet(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	file := filepath.Join(t.TempDir(), "net")
	require.NoError(t, os.WriteFile(file, []byte("latency=2ms # everywhere\n1~2:latency=7ms"), 0o600))
	for _, c := range []struct{ flag, want string }{
		{"--net=@" + file, "latency=2ms;1~2:latency=7ms"}, {"", "latency=2ms;1~2:latency=7ms"},
		{"--net=regions=eu-west-1", "regions=eu-west-1"}, {"", "regions=eu-west-1"}, {"--net=", ""}, {"", ""},
	} {
		args := []string{"--nodes=1"}
		if c.flag != "" {
			args = append(args, c.flag)
		}
		one := launched(t, nil, dir, args...)
		require.Equal(t, c.want, one.next(launch.Prepared).Net, c.flag)
		one.next(launch.Ready)
		told := commandOf(t, one.pids["m1"])
		require.True(t, c.want == "" || slices.Contains(told, "--net="+c.want), "%q", told)
		one.stop()
	}
}

func TestSnapshotAndRestore(t *testing.T) {
	t.Parallel()
	c := up(t, dataDir(t))
	for i := range 20 {
		ok(t, "ctl", "--endpoints", c.endpoints[0], "put", "k"+strconv.Itoa(i%5), strconv.Itoa(i))
	}
	file := filepath.Join(t.TempDir(), "backup.db")
	ok(t, "ctl", "--endpoints", c.endpoints[1], "snapshot", "save", file)
	require.Contains(t, ok(t, "utl", "snapshot", "status", file, "-w", "fields"), "\"Revision\" : 21")
	c.stop()

	_, stderr, code := do(t, "", "up", "--data", c.dir, "--restore", file)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "holds one: choose another --data")
	bad := dataDir(t)
	_, stderr, code = do(t, "", "up", "--data", bad, "--base-port=0", "--restore", os.Args[0])
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "import "+os.Args[0])
	require.False(t, launch.Exists(bad))
	for _, flags := range [][]string{{"--bump-revision=1000"}, {"--restore", file, "--bump-revision=1000"},
		{"--restore", file, "--mark-compacted"}} {
		_, _, code = do(t, "", append([]string{"up", "--data", bad}, flags...)...)
		require.Equal(t, exitUsage, code, flags)
	}

	bumped := up(t, dataDir(t), "--nodes=1", "--restore", file, "--bump-revision=1000", "--mark-compacted")
	require.Contains(t, ok(t, "ctl", "--endpoints", bumped.endpoints[0], "get", "k4", "-w", "fields"),
		"\"Revision\" : 1021")
	bumped.stop()
	again := up(t, bad, "--restore", file)
	for _, endpoint := range again.endpoints {
		require.Equal(t, "k4\n19", ok(t, "ctl", "--endpoints", endpoint, "get", "k4"))
	}
	ok(t, "ctl", "--endpoints", again.endpoints[0], "put", "k4", "new")
	require.Contains(t, ok(t, "ctl", "--endpoints", again.endpoints[2], "get", "k4", "-w", "fields"), "\"Revision\" : 22")
}

func TestRestoreOfOneMember(t *testing.T) {
	t.Parallel()
	c := up(t, dataDir(t), "--nodes=1")
	ok(t, "ctl", "--endpoints", c.endpoints[0], "put", "a", "b")
	file := filepath.Join(t.TempDir(), "backup.db")
	ok(t, "ctl", "--endpoints", c.endpoints[0], "snapshot", "save", file)
	c.stop()

	_, stderr, code := do(t, "", "restore", file, "--data-dir", filepath.Join(c.dir, "m1"))
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "belongs to a member that was started")
	f := newServeFlags(t)
	ok(t, "restore", file, "--data-dir", f.dir)
	stopped(t, serving(t, f))
	serving(t, f)
	require.Equal(t, "a\nb", ok(t, "ctl", "--endpoints", f.client, "get", "a"))
}

// A member was removed, and another one added at its addresses, while the cluster ran. The cluster resumes: it starts
// the new one with an empty directory, keeps the old one's directory, and reports that, once.
func TestResumeAfterAMemberWasReplaced(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	dir := dataDir(t)
	c := up(t, dir)
	put(t, c.client(), "a")
	status, err := c.client().Status(t.Context(), c.clients["m3"])
	require.NoError(t, err)
	manifest, err := launch.ReadManifest(dir)
	require.NoError(t, err)
	m1 := manifest.Members[0].ClientAddr()
	ok(t, "ctl", "--endpoints", m1, "member", "remove", fmt.Sprintf("%x", status.Header.MemberId))
	require.Equal(t, "m3", c.next(launch.Died).Member)
	c.stop()

	gone := launched(t, nil, dir)
	left := gone.next(launch.Left)
	require.Equal(t, "m3", left.Member)
	require.Equal(t, "it was removed from the cluster", left.How)
	require.Len(t, gone.next(launch.Ready).Endpoints, 2)
	ok(t, "ctl", "--endpoints", m1, "member", "add", "m3", "--peer-urls", manifest.Members[2].PeerURLs()[0])
	gone.stop()

	again := launched(t, nil, dir)
	replaced := again.next(launch.Replaced)
	require.Equal(t, "m3", replaced.Member)
	require.Equal(t, filepath.Join(dir, "m3.old1"), replaced.Aside)
	require.Len(t, again.next(launch.Ready).Endpoints, 3)
	require.Equal(t, "a\nx", ok(t, "ctl", "--endpoints", manifest.Members[2].ClientAddr(), "get", "a"))
	again.stop()

	last := launched(t, nil, dir)
	for e := range last.events {
		require.NotContains(t, []launch.EventKind{launch.Replaced, launch.Left, launch.Died}, e.Event)
		if e.Event == launch.Ready {
			require.Len(t, e.Endpoints, 3)
			break
		}
	}
}
