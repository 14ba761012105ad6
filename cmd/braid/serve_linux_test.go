package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/ports"
)

// serveFlags are the flags of a member alone in its cluster.
type serveFlags struct{ name, dir, client, peer string }

func newServeFlags(t *testing.T) serveFlags {
	free, err := ports.Free("127.0.0.1", 2)
	require.NoError(t, err)
	return serveFlags{"m1", dataDir(t), fmt.Sprintf("127.0.0.1:%d", free[0]), fmt.Sprintf("127.0.0.1:%d", free[1])}
}

// memberFlags are the flags of members m1, m2, … in the directories 1, 2, … of one directory.
func memberFlags(t *testing.T, n int) (all []serveFlags) {
	t.Helper()
	free, err := ports.Free("127.0.0.1", 2*n)
	require.NoError(t, err)
	dir := dataDir(t)
	for i := range n {
		all = append(all, serveFlags{fmt.Sprint("m", i+1), filepath.Join(dir, fmt.Sprint(i+1)),
			fmt.Sprintf("127.0.0.1:%d", free[2*i]), fmt.Sprintf("127.0.0.1:%d", free[2*i+1])})
	}
	return all
}

// initialCluster is the value of --initial-cluster with which these members found a cluster.
func initialCluster(members []serveFlags) string {
	var list []string
	for _, f := range members {
		list = append(list, f.name+"=http://"+f.peer)
	}
	return strings.Join(list, ",")
}

func (f serveFlags) args(more ...string) []string {
	return append([]string{
		"serve", "--name", f.name, "--data-dir", f.dir,
		"--listen-client-urls", "http://" + f.client, "--listen-peer-urls", "http://" + f.peer,
	}, more...)
}

// serving starts a member and waits until it answers.
func serving(t *testing.T, f serveFlags, more ...string) *invocation {
	t.Helper()
	c, _ := begin(t, "", f.args(more...)...)
	eventually(t, "health", func(ctx context.Context) bool {
		select {
		case <-c.ended:
			require.Fail(t, "the member ended", c.stderr.String())
		default:
		}
		return healthy(ctx, f.client)
	})
	return c
}

func healthy(ctx context.Context, addr string) bool { return answersOK(ctx, addr, "/health") }

// answersOK reports whether a member answers a GET with 200.
func answersOK(ctx context.Context, addr, path string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// stopped requires that a member ends without an error when it is asked to.
func stopped(t *testing.T, c *invocation) {
	t.Helper()
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
	code, stderr := c.exit()
	require.Zero(t, code, stderr)
}

func TestServeKeepsItsData(t *testing.T) {
	t.Parallel()
	f := newServeFlags(t)
	member := serving(t, f)
	ok(t, "ctl", "--endpoints", f.client, "put", "a", "b")
	stopped(t, member)
	member = serving(t, f)
	require.Equal(t, "a\nb", ok(t, "ctl", "--endpoints", f.client, "get", "a"))

	stdout := ok(t, "log", "dump", f.dir)
	require.Contains(t, stdout, " entry instance 1 index ")
	stopped(t, member)
}

func TestDataOfAnother(t *testing.T) {
	t.Parallel()
	f := newServeFlags(t)
	stopped(t, serving(t, f))
	two := "m1=http://" + f.peer + ",m2=http://127.0.0.1:1"
	other := f
	other.name = "m2"
	otherPeer := other
	otherPeer.peer = newServeFlags(t).peer
	for name, c := range map[string]struct {
		flags serveFlags
		more  []string
		want  string
	}{
		"another member": {otherPeer, []string{"--initial-cluster", "m1=http://" + f.peer + ",m2=http://" +
			otherPeer.peer}, "belongs to member m1, not to m2"},
		"an unknown member":  {other, nil, "which is neither m2 nor another member"},
		"another token":      {f, []string{"--initial-cluster-token", "other"}, "which is neither m1 nor another member"},
		"another membership": {f, []string{"--initial-cluster", two}, "the flags describe cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, code := do(t, "", c.flags.args(c.more...)...)
			require.Equal(t, exitFailed, code)
			require.Contains(t, stderr, "data directory "+f.dir)
			require.Contains(t, stderr, c.want)
		})
	}
	stopped(t, serving(t, f)) // the data is unchanged
}

func TestDataOfEtcdAndInUse(t *testing.T) {
	t.Parallel()
	f := newServeFlags(t)
	require.NoError(t, os.MkdirAll(filepath.Join(f.dir, "member", "snap"), 0o700))
	_, stderr, code := do(t, "", f.args()...)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "belongs to etcd")

	f = newServeFlags(t)
	serving(t, f)
	same := newServeFlags(t)
	same.dir = f.dir
	_, stderr, code = do(t, "", same.args("--initial-cluster-state=existing")...)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "in use")
}

func TestJoin(t *testing.T) {
	t.Parallel()
	c := up(t, dataDir(t))
	f := newServeFlags(t)
	f.name = "m4"
	join := []string{"--initial-cluster-state=existing", "--join", c.endpoints[0], "--initial-cluster-token=any"}
	_, stderr, code := do(t, "", f.args(join...)...)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "must begin with http://")
	join[2] = "http://" + c.endpoints[0]
	_, stderr, code = do(t, "", f.args(join...)...)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "braid ctl member add m4")

	ok(t, "ctl", "--endpoints", c.endpoints[0], "put", "a", "b")
	ok(t, "ctl", "--endpoints", c.endpoints[0], "member", "add", "m4", "--peer-urls", "http://"+f.peer)
	member := serving(t, f, join...)
	require.Equal(t, "a\nb", ok(t, "ctl", "--endpoints", f.client, "get", "a"))
	stopped(t, member)
	stopped(t, serving(t, f, join...)) // it finds its data
}

// strangers are messages that a port may receive from clients of other protocols.
var strangers = []string{
	"\x00", "\n\n\n", strings.Repeat("\xff", 1<<16), "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff", "drbm", "drbm\x01\x00\x01\x00half a greeting",
	"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	"POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{\"key\":",
}

func TestGarbageOnEveryPort(t *testing.T) {
	t.Parallel()
	c := launched(t, nil, dataDir(t))
	ready := c.next(launch.Ready)
	c.endpoints = ready.Endpoints
	var addrs []string
	for _, m := range manifest(t, c.dir).Members {
		addrs = append(append(addrs, m.ClientAddr()), m.PeerAddrs()...)
	}
	var silent []net.Conn
	for _, addr := range addrs {
		for _, words := range strangers {
			conn, err := net.DialTimeout("tcp", addr, testTimeout)
			require.NoError(t, err)
			silent = append(silent, conn) // and stays open with half its frame sent
			require.NoError(t, conn.SetDeadline(time.Now().Add(testTimeout)))
			if _, err := io.WriteString(conn, words); err != nil {
				t.Logf("%s hung up during %q: %v", addr, words[:min(len(words), 20)], err)
			}
		}
	}
	for _, endpoint := range c.endpoints {
		require.Equal(t, "OK", ok(t, "ctl", "--endpoints", endpoint, "put", "a", endpoint))
		require.Equal(t, "a\n"+endpoint, ok(t, "ctl", "--endpoints", endpoint, "get", "a"))
	}
	for _, conn := range silent {
		conn.Close()
	}
	for name, pid := range c.pids {
		require.False(t, gone(pid), name)
	}
	ok(t, "status", "--endpoints", c.endpoints[0])
}

func manifest(t *testing.T, dir string) *launch.Manifest {
	t.Helper()
	m, err := launch.ReadManifest(dir)
	require.NoError(t, err)
	return m
}

// A directory with other contents is no data directory: nothing is written there. Files of an empty disk or of an
// interrupted first start do not matter, nor do files that appear later next to a member's data.
func TestForeignDirectoriesAreRefused(t *testing.T) {
	t.Parallel()
	f := newServeFlags(t)
	require.NoError(t, os.MkdirAll(f.dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, "passwd"), []byte("root"), 0o600))
	before := fingerprint(t, f.dir)
	for _, args := range [][]string{f.args(), {"restore", "/dev/null", "--data-dir", f.dir}} {
		_, stderr, code := do(t, "", args...)
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr, "is not empty and holds no member of braid (it has \"passwd\"): choose "+
			"another --data-dir")
	}
	require.Equal(t, before, fingerprint(t, f.dir))

	require.NoError(t, os.Remove(filepath.Join(f.dir, "passwd")))
	for _, name := range []string{"lost+found", storeDir, logDir} {
		require.NoError(t, os.Mkdir(filepath.Join(f.dir, name), 0o700))
	}
	for _, name := range []string{"member_id", "new_member_envs"} {
		require.NoError(t, os.WriteFile(filepath.Join(f.dir, name), nil, 0o600))
	}
	stopped(t, serving(t, f))
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, "note"), nil, 0o600))
	serving(t, f)
}

// TestSystemdIsTold: a unit with Type=notify, as Debian's of etcd, waits for the word of its process, which comes when
// the member takes part in its cluster.
func TestSystemdIsTold(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"})
	require.NoError(t, err)
	defer socket.Close()
	members := memberFlags(t, 2)
	cluster := "--initial-cluster=" + initialCluster(members)
	beginWith(t, []string{"NOTIFY_SOCKET=" + at}, "", members[0].args(cluster)...)
	eventually(t, "it listens", func(ctx context.Context) bool {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", members[0].client)
		return err == nil && conn.Close() == nil
	})
	require.NoError(t, socket.SetReadDeadline(time.Now().Add(300*time.Millisecond)))
	buf := make([]byte, 100)
	_, err = socket.Read(buf)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "no leader yet")
	serving(t, members[1], cluster)
	require.NoError(t, socket.SetReadDeadline(time.Now().Add(testTimeout)))
	n, err := socket.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "READY=1", string(buf[:n]))
}

// TestPortsAreShared with other processes that ask for that, too, only with --socket-reuse-port.
func TestPortsAreShared(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{true, false} {
		f := newServeFlags(t)
		serving(t, f, fmt.Sprint("--socket-reuse-port=", shared))
		for _, address := range []string{f.client, f.peer} {
			l, err := ports.Listen("tcp", address, true)
			if !shared {
				require.ErrorAs(t, err, new(*ports.BusyError), address)
				continue
			}
			require.NoError(t, err, address)
			require.NoError(t, l.Close())
		}
	}
}

// TestAMemberThatSyncsNothingSaysSo and keeps what was written while the machine runs.
func TestAMemberThatSyncsNothingSaysSo(t *testing.T) {
	t.Parallel()
	f := newServeFlags(t)
	first := serving(t, f, "--unsafe-no-fsync")
	require.Contains(t, first.stderr.String(), "--unsafe-no-fsync: nothing is durable")
	ok(t, "ctl", "--endpoints", f.client, "put", "k", "v")
	require.NoError(t, first.cmd.Process.Kill())
	<-first.ended
	serving(t, f)
	require.Equal(t, "k\nv", ok(t, "ctl", "--endpoints", f.client, "get", "k"))
}
