package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/testsize"
)

// TestJoinBehindASeal: a member joins a cluster that changed its protocol.
func TestJoinBehindASeal(t *testing.T) {
	t.Parallel()
	c := up(t, dataDir(t))
	ok(t, "switch", "multi-paxos", "--endpoints", c.endpoints[0])
	ok(t, "switch", "raft", "--endpoints", c.endpoints[0])
	ok(t, "ctl", "--endpoints", c.endpoints[0], "put", "a", "b")
	f := newServeFlags(t)
	f.name = "m4"
	ok(t, "ctl", "--endpoints", c.endpoints[0], "member", "add", "m4", "--peer-urls", "http://"+f.peer)
	_, _ = begin(t, "", f.args("--initial-cluster-state=existing", "--join", "http://"+c.endpoints[0])...)
	eventually(t, "m4 is healthy", func(ctx context.Context) bool { return healthy(ctx, f.client) })
	require.Equal(t, "a\nb", ok(t, "ctl", "--endpoints", f.client, "get", "a"))
}

// seals seals the log three times.
func (c *trio) seals(endpoint string) {
	c.t.Helper()
	for _, protocol := range []string{"multi-paxos", "iss", "raft"} {
		ok(c.t, "switch", protocol, "--json", "--endpoints", endpoint)
		c.put(1, "sealed before", protocol)
	}
}

// TestASnapshotOfBeforeSeals: a cluster is restored from a file that was saved before seals. Revisions continue there,
// the log is a new one, and it is sealed again. A member that was restored from the file does not join the old cluster,
// and one that is added there and has nothing gets its state.
func TestASnapshotOfBeforeSeals(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := newTrio(t)
	old := c.flags[1].client
	for _, args := range []string{"put k before", "user add root:r", "lease grant 10000"} {
		ok(t, append([]string{"ctl", "--endpoints", old}, strings.Fields(args)...)...)
	}
	file := filepath.Join(t.TempDir(), "before.db")
	ok(t, "ctl", "--endpoints", old, "snapshot", "save", file)
	c.seals(old)
	behind := filepath.Join(t.TempDir(), "behind.db")
	ok(t, "ctl", "--endpoints", old, "snapshot", "save", behind)
	for name, wanted := range map[string]string{file: "k\nbefore", behind: "k\nbefore\nsealed before\nraft"} {
		again := unstarted(t)
		again.more = []string{"--initial-cluster-token=again"}
		for i := 1; i <= 3; i++ {
			ok(t, "restore", name, "--data-dir", again.flags[i].dir)
		}
		again.start(1, 2, 3)
		again.healthy(2)
		again.kill(3) // it has to follow three seals
		endpoint := again.flags[1].client
		require.Equal(t, wanted, ok(t, "ctl", "--endpoints", endpoint, "get", "", "--prefix"))
		again.start(3)
		again.healthy(3)
		again.seals(endpoint)
		again.kill(1, 2, 3)
		again.start(1, 2, 3)
		for i := 1; i <= 3; i++ {
			again.has(i, "k", "before")
			again.has(i, "sealed before", "raft")
		}
		require.Contains(t, ok(t, "ctl", "--endpoints", endpoint, "lease", "list"), "found 1 leases")
		require.Equal(t, "root", ok(t, "ctl", "--endpoints", endpoint, "user", "list"))
	}

	f := newServeFlags(t)
	f.name = "m4"
	ok(t, "restore", file, "--data-dir", f.dir)
	ok(t, "ctl", "--endpoints", old, "member", "add", "m4", "--peer-urls", "http://"+f.peer)
	join := f.args("--initial-cluster-state=existing", "--join", "http://"+old)
	_, _, code := do(t, "", join...)
	require.NotZero(t, code, "it joins with a restored state")
	require.NoError(t, os.RemoveAll(f.dir))
	_, _ = begin(t, "", join...)
	eventually(t, "m4 is healthy", func(ctx context.Context) bool { return healthy(ctx, f.client) })
	require.Equal(t, "raft", ok(t, "ctl", "--endpoints", f.client, "get", "sealed before", "--print-value-only"))
}

// TestACopyOfBeforeSeals: a member's directory is replaced by a copy of it from before three seals, and its command is
// unchanged. If the member was not started since, it follows as one that was away, and its vote counts. Otherwise it
// has forgotten what it promised in the new instances: it stops, and a new member takes its place.
func TestACopyOfBeforeSeals(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	for _, when := range []string{"away", "stopped", "killed", "running"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			aCopyOfBeforeSeals(t, when)
		})
	}
}

func aCopyOfBeforeSeals(t *testing.T, when string) {
	c := newTrio(t)
	c.put(1, "k", "before")
	for _, protocol := range []string{"iss", "craft"} { // the first seal needs all members
		ok(t, "switch", protocol, "--json", "--endpoints", c.flags[1].client)
	}
	c.put(3, "large", strings.Repeat("x", 1<<16))
	switch when {
	case "away", "stopped":
		require.NoError(t, c.running[3].cmd.Process.Signal(syscall.SIGTERM))
		code, stderr := c.running[3].exit()
		require.Zero(t, code, stderr)
	case "killed":
		c.kill(3)
	}
	signal := func(s syscall.Signal) {
		if when == "running" { // all files of the copy are of one moment
			require.NoError(t, c.running[3].cmd.Process.Signal(s))
		}
	}
	signal(syscall.SIGSTOP)
	copied := c.flags[3].dir + ".copy"
	require.NoError(t, os.CopyFS(copied, os.DirFS(c.flags[3].dir)))
	signal(syscall.SIGCONT)
	if when == "stopped" || when == "killed" {
		c.start(3)
		c.healthy(3)
	}
	c.seals(c.flags[1].client)
	c.put(2, "x", "acknowledged")
	if when != "away" {
		c.has(3, "x", "acknowledged")
		c.kill(3)
	}
	c.wipe(3)
	require.NoError(t, os.Rename(copied, c.flags[3].dir))
	c.start(3)
	if when == "away" {
		c.healthy(3)
	} else {
		c.refused(3, "")
		c.replace(3, 1)
	}
	c.has(3, "x", "acknowledged")
	c.kill(2) // its vote counts
	c.put(3, "y", "later")
	c.has(1, "y", "later")
	c.has(1, "large", strings.Repeat("x", 1<<16))
}

// TestALearnerFollowsSeals: a learner has what is written behind seals, and becomes a voter there.
func TestALearnerFollowsSeals(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := newTrio(t)
	endpoint := c.flags[1].client
	f := newServeFlags(t)
	f.name = "m4"
	added := ok(t, "ctl", "--endpoints", endpoint, "member", "add", "m4", "--learner", "--peer-urls", "http://"+f.peer)
	join := f.args("--initial-cluster-state=existing", "--join", "http://"+endpoint)
	learner, _ := begin(t, "", join...)
	hasSealed := func() {
		t.Helper()
		eventually(t, "the learner has what is behind the seals", func(context.Context) bool {
			value, _, _ := do(t, "", "ctl", "--endpoints", f.client, "get", "sealed before", "--consistency=s",
				"--print-value-only")
			return value == "raft"
		})
	}
	eventually(t, "a switch", func(context.Context) bool { // refused while the learner has not linked
		_, _, code := do(t, "", "switch", "iss", "--endpoints", endpoint)
		return code == 0
	})
	c.seals(endpoint)
	hasSealed()
	kill(t, learner.cmd.Process.Pid) // it comes back behind seals
	<-learner.ended
	ok(t, "ctl", "--endpoints", endpoint, "del", "sealed before")
	c.seals(endpoint)
	_, _ = begin(t, "", join...)
	hasSealed()
	id := strings.Fields(added)[1]
	eventually(t, "the learner is promoted", func(context.Context) bool {
		_, _, code := do(t, "", "ctl", "--endpoints", endpoint, "member", "promote", id)
		return code == 0
	})
	c.seals(endpoint)
	c.kill(3)
	require.Equal(t, "raft", ok(t, "ctl", "--endpoints", f.client, "get", "sealed before", "--print-value-only"))
}

// TestSwitchesGoOnWithAPausedLeader: a leader that does not run holds up no switch, and follows when it runs again.
func TestSwitchesGoOnWithAPausedLeader(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := up(t, dataDir(t))
	endpoints := strings.Join(c.endpoints, ",")
	ok(t, "switch", "multi-paxos", "--endpoints", endpoints) // the first seal needs all members
	for _, protocol := range []string{"iss", "raft", "multi-paxos"} {
		leader := c.leader()
		require.NoError(t, syscall.Kill(c.pids[leader], syscall.SIGSTOP))
		began := time.Now()
		ok(t, "switch", protocol, "--endpoints", endpoints)
		t.Logf("%s, without %s: %s", protocol, leader, time.Since(began))
		var others []string
		for name, url := range c.clients {
			if name != leader {
				others = append(others, url)
			}
		}
		ok(t, "ctl", "--command-timeout=30s", "--endpoints", strings.Join(others, ","), "put", "k", protocol)
		require.NoError(t, syscall.Kill(c.pids[leader], syscall.SIGCONT))
		require.Equal(t, "k\n"+protocol,
			ok(t, "ctl", "--command-timeout=30s", "--endpoints", c.clients[leader], "get", "k"))
	}
}

// TestCodedValuesOutliveSwitches: values are cut into fragments, and the log continues with a core that knows whole
// copies only. It removes no member whose fragments are needed, also after a restart. One that makes whole copies does.
func TestCodedValuesOutliveSwitches(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	for _, protocol := range []string{"multi-paxos", "iss"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			codedValuesOutlive(t, protocol)
		})
	}
}

func codedValuesOutlive(t *testing.T, protocol string) {
	all := memberFlags(t, 5)
	running := make([]*invocation, len(all))
	start := func() {
		for i, f := range all {
			running[i], _ = begin(t, "", f.args("--protocol=craft", "--initial-cluster", initialCluster(all))...)
		}
		for _, f := range all {
			eventually(t, "health", func(ctx context.Context) bool { return healthy(ctx, f.client) })
		}
	}
	start()
	endpoint, value := all[0].client, strings.Repeat("x", 1<<18)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer client.Close()
	for i := range 5 {
		_, err = client.Put(t.Context(), fmt.Sprint("k", i), value)
		require.NoError(t, err)
	}
	ok(t, "switch", protocol, "--endpoints", endpoint)
	for _, c := range running {
		kill(t, c.cmd.Process.Pid)
		<-c.ended
	}
	start()
	remove := func(i int) (stderr string, code int) {
		id := braid.MemberIDOf(all[i].name, "etcd-cluster").String()
		_, stderr, code = do(t, "", "ctl", "--endpoints", endpoint, "member", "remove", id)
		return stderr, code
	}
	for _, i := range []int{4, 3, 2} {
		eventually(t, "a member is removed", func(context.Context) bool {
			_, code := remove(i)
			return code == 0
		})
		<-running[i].ended
	}
	hold := func() {
		t.Helper()
		for i := range 5 {
			r, err := client.Get(t.Context(), fmt.Sprint("k", i))
			require.NoError(t, err)
			require.Len(t, r.Kvs, 1)
			require.True(t, string(r.Kvs[0].Value) == value)
		}
	}
	stderr, code := remove(1)
	require.NotZero(t, code)
	require.Contains(t, stderr, "too few holders")
	hold()
	ok(t, "switch", "raft", "--endpoints", endpoint)
	eventually(t, "the values are whole, and the member is removed", func(context.Context) bool {
		_, code := remove(1)
		return code == 0
	})
	<-running[1].ended
	hold()
}
