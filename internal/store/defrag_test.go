package store

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestFailedDefragmentationLeavesNothing runs processes in which no file may be as large as
// the defragmented database: it fails, its file goes, and the store works on. Where bbolt wants
// to write at the end of the database just then, that fails too and the store stops: then
// its next start finds nothing of it left.
func TestFailedDefragmentationLeavesNothing(t *testing.T) {
	if dir := os.Getenv("STORE_FAILED_DEFRAG"); dir != "" {
		childOfFailedDefragmentation(t, dir)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for stopped := true; stopped; {
		dir := t.TempDir()
		child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestFailedDefragmentationLeavesNothing$", "-test.count=1")
		child.Env = append(os.Environ(), "STORE_FAILED_DEFRAG="+dir)
		out, err := child.CombinedOutput()
		require.NoError(t, err, "%s", out)
		_, err = os.Stat(filepath.Join(dir, "stopped"))
		if stopped = err == nil; stopped {
			require.NoError(t, open(t, testOptions(dir)).Close())
		}
		left, err := filepath.Glob(filepath.Join(dir, "*tmp*"))
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

func childOfFailedDefragmentation(t *testing.T, dir string) {
	n := open(t, testOptions(dir))
	for i := range 8 { // their pages are free afterwards: the database itself can be written
		n.must(put(fmt.Sprintf("early-%d", i), string(make([]byte, 1<<18))))
	}
	for i := range 40 {
		n.must(put(fmt.Sprintf("key-%d", i), string(make([]byte, 1<<18))))
	}
	n.must(del("early-", "early."))
	require.NoError(t, n.FinishCompaction(t.Context(), n.must(compact(n.Revision()))))
	require.NoError(t, n.Sync())
	n.must(put("a", "b"))
	require.NoError(t, n.Sync())
	signal.Ignore(syscall.SIGXFSZ)
	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &before))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4 << 20, Max: before.Max}))
	err := n.Defragment(t.Context())
	require.ErrorContains(t, err, "file too large")
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &before))
	if n.Err() != nil {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "stopped"), nil, 0o600))
		return
	}
	left, err := filepath.Glob(filepath.Join(dir, "*tmp*"))
	require.NoError(t, err)
	require.Empty(t, left)
	n.must(put("key-1", "works on"))
	require.Equal(t, "works on", n.get("key-1"))
	require.NoError(t, n.scrubOnce())
	require.NoError(t, n.Defragment(t.Context()))
	require.Equal(t, "works on", n.get("key-1"))
	require.NoError(t, n.Close())
}
