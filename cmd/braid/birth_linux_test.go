package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid/internal/testsize"
)

// backup is a snapshot file with some keys, of an earlier cluster.
func backup(t *testing.T) string {
	t.Helper()
	f := newServeFlags(t)
	member := serving(t, f)
	for i := range 3 {
		ok(t, "ctl", "--endpoints", f.client, "put", fmt.Sprint("k", i), "restored")
	}
	file := filepath.Join(t.TempDir(), "backup.db")
	ok(t, "ctl", "--endpoints", f.client, "snapshot", "save", file)
	stopped(t, member)
	return file
}

// One of three founding members was restored, the others are empty at the start. They do not become one cluster: the
// restored one stays alone, and each side logs why. The two others have a majority, and serve. With all three
// restored they are one.
func TestMembersThatBeginWithOtherStatesAreNotLinked(t *testing.T) {
	t.Parallel()
	file := backup(t)
	c := unstarted(t)
	ok(t, "restore", file, "--data-dir", c.flags[1].dir)
	c.start(1, 2, 3)
	c.healthy(2)
	ok(t, "ctl", "--endpoints", c.flags[2].client, "put", "k0", "new")
	eventually(t, "both say why", func(context.Context) bool {
		restored, empty := strings.ReplaceAll(c.running[1].stderr.String(), `\"`, `"`),
			strings.ReplaceAll(c.running[2].stderr.String(), `\"`, `"`)
		return strings.Contains(restored, `birth is empty there, "sha256:`) && strings.Contains(empty, `there, empty here`)
	})
	c.kill(1, 2, 3)

	same := unstarted(t)
	for i := 1; i <= 3; i++ {
		ok(t, "restore", file, "--data-dir", same.flags[i].dir)
	}
	same.start(1, 2, 3)
	for i := 1; i <= 3; i++ {
		same.healthy(i)
		require.Equal(t, "k1\nrestored", ok(t, "ctl", "--endpoints", same.flags[i].client, "get", "k1"))
	}
	same.kill(1, 2, 3)
	same.start(1, 2, 3)
	same.healthy(2)
}

// A member that joins a cluster with an initial snapshot has the restored keys, although no entry of the log has
// them. It keeps them through a restart.
func TestAMemberJoinsARestoredCluster(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	file := backup(t)
	first := newServeFlags(t)
	ok(t, "restore", file, "--data-dir", first.dir)
	serving(t, first, "--initial-advertise-peer-urls", "http://"+first.peer, "--advertise-client-urls",
		"http://"+first.client,
		"--initial-cluster", "m1=http://"+first.peer)
	ok(t, "ctl", "--endpoints", first.client, "put", "k1", "later")
	second := newServeFlags(t)
	second.name = "m2"
	ok(t, "ctl", "--endpoints", first.client, "member", "add", "m2", "--peer-urls", "http://"+second.peer)
	args := []string{"--initial-cluster-state", "existing", "--join", "http://" + first.client,
		"--initial-advertise-peer-urls", "http://" + second.peer, "--advertise-client-urls", "http://" + second.client}
	has := func() {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{second.client}})
		require.NoError(t, err)
		defer client.Close()
		eventually(t, "the keys", func(ctx context.Context) bool {
			got, err := client.Get(ctx, "k", clientv3.WithPrefix(), clientv3.WithSerializable())
			return err == nil && len(got.Kvs) == 3 && string(got.Kvs[1].Value) == "later" &&
				string(got.Kvs[2].Value) == "restored"
		})
	}
	member := serving(t, second, args...)
	has()
	stopped(t, member)
	serving(t, second, args...)
	has()
}

// A joining member must not have a restored state.
func TestARestoredMemberDoesNotJoin(t *testing.T) {
	t.Parallel()
	file := backup(t)
	first, second := newServeFlags(t), newServeFlags(t)
	serving(t, first)
	ok(t, "ctl", "--endpoints", first.client, "member", "add", "m2", "--peer-urls", "http://"+second.peer)
	ok(t, "restore", file, "--data-dir", second.dir)
	_, stderr, code := do(t, "", second.args("--initial-cluster-state", "existing", "--join", "http://"+first.client,
		"--initial-advertise-peer-urls", "http://"+second.peer)...)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "a member that joins begins empty")
}

// Revisions of a restored member continue where the flags say, and what was before counts as compacted.
func TestRestoreWithALaterRevision(t *testing.T) {
	t.Parallel()
	file := backup(t)
	f := newServeFlags(t)
	for _, flags := range [][]string{{"--bump-revision", "1000"}, {"--mark-compacted"}} {
		_, stderr, code := do(t, "", append([]string{"restore", file, "--data-dir", f.dir}, flags...)...)
		require.Equal(t, exitUsage, code)
		require.Contains(t, stderr, "need each other")
	}
	ok(t, "restore", file, "--data-dir", f.dir, "--bump-revision", "1000", "--mark-compacted")
	member := serving(t, f)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{f.client}})
	require.NoError(t, err)
	defer client.Close()
	var got *clientv3.GetResponse
	eventually(t, "a read", func(ctx context.Context) bool {
		got, err = client.Get(ctx, "k1")
		return err == nil
	})
	require.Equal(t, "restored", string(got.Kvs[0].Value))
	require.EqualValues(t, 1004, got.Header.Revision)
	event := <-client.Watch(t.Context(), "k1", clientv3.WithRev(got.Kvs[0].ModRevision))
	require.EqualValues(t, 1004, event.CompactRevision)
	stopped(t, member)
}
