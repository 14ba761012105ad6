package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
)

// TestAMemberThatIsLeftBeginsANewCluster: two of three members are lost, and the third one continues alone, with its
// command and --force-new-cluster. It restarts with and without the flag, and grows; the former members, which come
// back after all, get no link.
func TestAMemberThatIsLeftBeginsANewCluster(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"raft", "lcr", "iss"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			members := memberFlags(t, 3)
			flags := []string{"--protocol=" + protocol, "--initial-cluster=" + initialCluster(members),
				"--large-value-bytes=20000"}
			var running []*invocation
			for _, f := range members {
				c, _ := begin(t, "", f.args(flags...)...)
				running = append(running, c)
			}
			first := members[0]
			ctl := func(args ...string) string {
				return ok(t, append([]string{"ctl", "--endpoints", first.client}, args...)...)
			}
			waitHealthy := func(f serveFlags) {
				eventually(t, "health", func(ctx context.Context) bool { return healthy(ctx, f.client) })
			}
			for _, f := range members {
				waitHealthy(f)
			}
			large := strings.Repeat("large", 6_000)
			running[2].stop() // the first one acknowledges everything from now on
			ctl("put", "k", "v")
			ctl("put", "large", large)
			for _, c := range running[:2] {
				kill(t, c.cmd.Process.Pid)
				c.exit()
			}

			forced, _ := begin(t, "", first.args(append(flags, "--force-new-cluster")...)...)
			waitHealthy(first)
			require.Contains(t, forced.stderr.String(), "this member begins a new cluster of itself")
			require.Equal(t, "v", ctl("get", "k", "--print-value-only"))
			require.Equal(t, large, ctl("get", "large", "--print-value-only"))
			require.Len(t, strings.Split(ctl("member", "list"), "\n"), 1)
			ctl("put", "after", "1")
			require.DirExists(t, filepath.Join(first.dir, forceBefore, logDir))
			forced.stop()

			again, _ := begin(t, "", first.args(append(flags, "--force-new-cluster")...)...)
			waitHealthy(first)
			require.Contains(t, again.stderr.String(), "--force-new-cluster does nothing")
			again.stop()
			begin(t, "", first.args(flags...)...)
			begin(t, "", members[1].args(flags...)...) // a former member
			waitHealthy(first)
			require.Equal(t, "1", ctl("get", "after", "--print-value-only"))
			fourth := newServeFlags(t)
			fourth.name = "m4"
			ctl("member", "add", "m4", "--peer-urls", "http://"+fourth.peer)
			serving(t, fourth, "--protocol="+protocol, "--initial-cluster-state=existing", "--join=http://"+first.peer)
			eventually(t, "the fourth has the state", func(context.Context) bool {
				got, _, code := do(t, "", "ctl", "--endpoints", fourth.client, "get", "k", "--print-value-only")
				return code == 0 && got == "v"
			})
			require.Len(t, strings.Split(ctl("member", "list"), "\n"), 2)
		})
	}
}

// TestNoLargeValueIsLostByForcing: a member that has only fragments of a value does not begin a new cluster alone, and
// its data stays as it is.
func TestNoLargeValueIsLostByForcing(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	dir := dataDir(t)
	c := up(t, dir, "--nodes=5", "--protocol=craft", "--code-k=2")
	client := c.client()
	_, err := client.Put(t.Context(), "large", strings.Repeat("large", 40_000))
	require.NoError(t, err)
	leader := c.leader()
	crash(t, c)
	f := newServeFlags(t)
	if f.name = "m1"; leader == f.name {
		f.name = "m2"
	}
	f.dir = filepath.Join(dir, f.name)
	_, stderr, code := do(t, "", f.args("--protocol=craft", "--force-new-cluster")...)
	require.NotZero(t, code)
	require.Contains(t, stderr, "1 large values cannot be made of what this member has of them alone: use braid salvage")
	require.NoDirExists(t, filepath.Join(f.dir, forceWork))
	require.FileExists(t, filepath.Join(f.dir, logDir, "member.json"))
}
