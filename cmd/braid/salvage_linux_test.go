package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/testsize"
)

// A majority is lost permanently, just after writes were acknowledged. A new cluster starts from one member that
// acknowledged them, with every one of them, and with its large values.
func TestAClusterBeginsFromWhatIsLeft(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"raft", "lcr", "multi-paxos", "iss", "niagara"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			dir := dataDir(t)
			args := []string{"--protocol=" + protocol}
			if protocol == "lcr" { // accepted commands that are in no log yet are acknowledged too
				args = append(args, "--lane-prefix=key-=accepted", "--lane-prefix=last=accepted")
			}
			c := up(t, dir, args...)
			client := c.client()
			put(t, client, "before")
			kill(t, c.pids["m3"]) // the two others acknowledge everything from now on
			require.Equal(t, "m3", c.next(launch.Died).Member)
			large := strings.Repeat("large", 40_000)
			for i := range 20 {
				eventually(t, "a write", func(ctx context.Context) bool {
					_, err := client.Put(ctx, fmt.Sprintf("key-%02d", i), fmt.Sprint("value ", i))
					return err == nil
				})
			}
			_, err := client.Put(t.Context(), "large", large)
			require.NoError(t, err)
			_, err = client.Put(t.Context(), "last", "acknowledged")
			require.NoError(t, err)
			crash(t, c)

			file := filepath.Join(t.TempDir(), "rest.db")
			told := ok(t, "salvage", file, "--data-dir", filepath.Join(dir, "m3"), "--data-dir", filepath.Join(dir, "m2"))
			require.Contains(t, told, filepath.Join(dir, "m2"), "of two members the one that knows more")
			require.NotContains(t, told, "lost")
			again := up(t, dataDir(t), "--nodes=1", "--restore", file)
			got, err := again.client().Get(t.Context(), "", clientv3.WithPrefix())
			require.NoError(t, err)
			require.Len(t, got.Kvs, 23)
			values := map[string]string{}
			for _, kv := range got.Kvs {
				values[string(kv.Key)] = string(kv.Value)
			}
			require.Equal(t, "acknowledged", values["last"])
			require.Equal(t, "value 19", values["key-19"])
			require.Equal(t, large, values["large"])
		})
	}
}

// With placement code one member has a fragment of each large value. With too few members the value is lost, and
// salvage reports it; its key is deleted. With fragments of enough members it is there.
func TestFragmentsOfWhatIsLeft(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	dir := dataDir(t)
	c := up(t, dir, "--nodes=5", "--protocol=craft", "--code-k=2")
	client := c.client()
	put(t, client, "small")
	large := strings.Repeat("large", 40_000)
	_, err := client.Put(t.Context(), "large", large)
	require.NoError(t, err)
	leader := c.leader()
	crash(t, c)
	var followers []string
	for _, m := range []string{"m1", "m2", "m3", "m4", "m5"} {
		if m != leader {
			followers = append(followers, filepath.Join(dir, m))
		}
	}
	some := t.TempDir()
	told := ok(t, "salvage", filepath.Join(some, "one.db"), "--data-dir", followers[0])
	require.Contains(t, told, "1 large values are lost, too little of them is left:\n  \"large\" of revision 3, 200000 "+
		"bytes")
	told = ok(t, "salvage", filepath.Join(some, "two.db"), "--data-dir", followers[0], "--data-dir", followers[1])
	require.NotContains(t, told, "lost")

	for file, want := range map[string]string{"one.db": "", "two.db": large} {
		again := up(t, dataDir(t), "--nodes=1", "--restore", filepath.Join(some, file))
		got, err := again.client().Get(t.Context(), "large")
		require.NoError(t, err)
		require.Equal(t, want != "", len(got.Kvs) == 1, file)
		if want != "" {
			require.Equal(t, want, string(got.Kvs[0].Value))
		}
		got, err = again.client().Get(t.Context(), "small")
		require.NoError(t, err)
		require.Len(t, got.Kvs, 1)
	}
}

// crash ends all members at once.
func crash(t *testing.T, c *cluster) {
	t.Helper()
	for _, pid := range c.pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGKILL))
	<-c.ended
	for name, pid := range c.pids {
		eventually(t, "the end of "+name, func(context.Context) bool { return gone(pid) })
	}
}
