package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/server"
)

// backups returns the backups of a directory, which must have no problems.
func backups(t *testing.T, dir string) (all []server.BackupInfo) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(ok(t, "backup", dir, "--check", "--json")), &all))
	return all
}

// TestBackupAndRestoreOfACluster: whole backups and increments, made by any member, are listed and restored.
func TestBackupAndRestoreOfACluster(t *testing.T) {
	t.Parallel()
	c := up(t, dataDir(t))
	dir := filepath.Join(t.TempDir(), "backups")
	require.Equal(t, dir+" has no backups", ok(t, "backup", dir, "--list"))
	put := func(k, v string) { ok(t, "ctl", "--endpoints", c.endpoints[0], "put", k, v) }
	put("a", "1")
	require.Contains(t, ok(t, "backup", dir, "--endpoints", c.endpoints[0]), "backup 1, whole, of revision 2, ")
	put("b", "2")
	ok(t, "ctl", "--endpoints", c.endpoints[0], "user", "add", "root:r")
	second := ok(t, "backup", dir, "--endpoints", c.endpoints[1])
	require.Contains(t, second, "backup 2, increment of revisions 2 to 3, ")
	put("a", "3")
	ok(t, "ctl", "--endpoints", c.endpoints[0], "compaction", "4", "--physical")
	put("a", "4")
	stdout := ok(t, "backup", dir, "--endpoints", c.endpoints[2])
	require.Contains(t, stdout, "backup 3, increment of revisions 3 to 5, ")
	require.Contains(t, stdout, "history was compacted up to revision 4 since the backup before")
	list := strings.Split(ok(t, "backup", dir, "--list"), "\n")
	require.Len(t, list, 4)
	require.Regexp(t, `^3 +increment +3 to 5 +[0-9.]+ (B|KiB) +\d{4}-`, list[3])
	c.stop()

	again := up(t, dataDir(t), "--restore", dir)
	get := ok(t, "ctl", "--endpoints", again.endpoints[1], "get", "a", "-w", "fields")
	require.Contains(t, get, `"Value" : "4"`)
	require.Contains(t, get, fmt.Sprintf(`"Revision" : %d`, 5+server.RestoreBump), "the revision does not go back")
	require.Equal(t, "root", ok(t, "ctl", "--endpoints", again.endpoints[2], "user", "list"))
	_, stderr, code := do(t, "", "backup", dir, "--endpoints", again.endpoints[0])
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "has backups of another cluster")
	again.stop()

	back := up(t, dataDir(t), "--nodes=1", "--restore", dir, "--revision=3", "--bump-revision=0")
	get = ok(t, "ctl", "--endpoints", back.endpoints[0], "get", "", "--prefix", "-w", "fields")
	require.Contains(t, get, `"Revision" : 3`)
	require.Contains(t, get, `"Value" : "1"`)
	require.Contains(t, ok(t, "restore", dir, "--data-dir", dataDir(t)), fmt.Sprintf(
		"holds the keys of backup 3 in %s, of revision 5; revisions continue behind %d", dir, 5+server.RestoreBump))
	_, stderr, code = do(t, "", "backup", dir, "--endpoints=127.0.0.1:1")
	require.Equal(t, exitFailed, code)
	require.NotContains(t, stderr, "rpc error")
	_, stderr, code = do(t, "", "restore", dir, "--data-dir", dataDir(t), "--revision=4")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "has no backup of revision 4, but those of 5, 3, 2")
	for _, flags := range [][]string{{"--skip-hash-check"}, {"--bump-revision=7"}, {"--revision=-1"}} {
		_, _, code = do(t, "", append([]string{"restore", dir, "--data-dir", dataDir(t)}, flags...)...)
		require.Equal(t, exitUsage, code, flags)
	}
	first := backups(t, dir)[0]
	file := first.Path(dir)
	ok(t, "utl", "snapshot", "status", file)
	_, _, code = do(t, "", "restore", file, "--data-dir", dataDir(t), "--revision=2")
	require.Equal(t, exitUsage, code, "it is a snapshot file")
	ok(t, "restore", file, "--data-dir", dataDir(t))
}

// healthyTrio starts three members.
func healthyTrio(t *testing.T) *trio {
	t.Helper()
	c := unstarted(t)
	c.start(1, 2, 3)
	c.healthy(1)
	return c
}

// TestBackupWhileItsMemberIsKilled: the next member makes the backup, and the directory has complete backups only.
func TestBackupWhileItsMemberIsKilled(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := healthyTrio(t)
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	dir, client := filepath.Join(t.TempDir(), "backups"), c.client(2)
	all := strings.Join([]string{c.flags[1].client, c.flags[2].client, c.flags[3].client}, ",")
	for round := range 4 {
		for k := range 20 {
			_, err := client.Put(ctx, fmt.Sprint("k", k), strings.Repeat(fmt.Sprint(round), 1<<20))
			require.NoError(t, err)
		}
		backup, _ := begin(t, "", "backup", dir, "--endpoints", all)
		awaitPart(t, dir, backup, int64(round)<<20)
		c.kill(1)
		code, stderr := backup.exit()
		if code != 0 { // there was no leader yet
			eventually(t, "a backup: "+stderr, func(context.Context) bool {
				_, _, code := do(t, "", "backup", dir, "--endpoints", all)
				return code == 0
			})
		}
		require.Len(t, backups(t, dir), round+1)
		killed, _ := begin(t, "", "backup", dir, "--full", "--endpoints", c.flags[2].client)
		awaitPart(t, dir, killed, int64(round)<<20)
		kill(t, killed.cmd.Process.Pid)
		<-killed.ended
		for _, b := range backups(t, dir)[round+1:] {
			require.NoError(t, os.Remove(b.Path(dir)), "it was complete before the kill")
		}
		c.start(1)
		c.healthy(1)
	}
	restored := trio{t: t}
	restored.flags[1] = newServeFlags(t)
	ok(t, "restore", dir, "--data-dir", restored.flags[1].dir)
	serving(t, restored.flags[1])
	got, err := restored.client(1).Get(ctx, "k19")
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("3", 1<<20), string(got.Kvs[0].Value))
}

// awaitPart waits until a backup has made a file of some bytes, or has ended.
func awaitPart(t *testing.T, dir string, backup *invocation, bytes int64) {
	t.Helper()
	eventually(t, "a part of a backup", func(context.Context) bool {
		parts, err := filepath.Glob(filepath.Join(dir, "part-*"))
		require.NoError(t, err)
		select {
		case <-backup.ended:
			return true
		default:
		}
		return slices.ContainsFunc(parts, func(name string) bool {
			info, err := os.Stat(name)
			return err == nil && info.Size() >= bytes
		})
	})
}

// TestBackupWithoutAQuorum: a member that knows no leader makes no backup, because it may miss acknowledged writes.
func TestBackupWithoutAQuorum(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := healthyTrio(t)
	dir, alone := filepath.Join(t.TempDir(), "backups"), c.flags[1].client
	ok(t, "ctl", "--endpoints", alone, "put", "a", "1")
	ok(t, "backup", dir, "--endpoints", alone)
	c.kill(1)
	others := c.flags[2].client + "," + c.flags[3].client
	eventually(t, "a leader", func(context.Context) bool {
		_, _, code := do(t, "", "ctl", "--endpoints", others, "put", "a", "acknowledged")
		return code == 0
	})
	c.kill(2)
	c.kill(3)
	c.start(1)
	eventually(t, "an answer", func(context.Context) bool {
		_, stderr, code := do(t, "", "backup", dir, "--endpoints", alone, "--timeout", "20s")
		return code == exitFailed && strings.Contains(stderr, "knows no leader")
	})
	_, stderr, code := do(t, "", "backup", dir, "--full", "--endpoints", alone)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "knows no leader")
	require.Len(t, backups(t, dir), 1)
	ok(t, "ctl", "--endpoints", alone, "snapshot", "save", filepath.Join(t.TempDir(), "rest.db"))
	c.start(2, 3)
	c.healthy(1)
	ok(t, "backup", dir, "--endpoints", alone)
	require.Len(t, backups(t, dir), 2)
}
