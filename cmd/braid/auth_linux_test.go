package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUpAndStatusWithAuthOn: a cluster with auth on resumes, and shows its status to users only.
func TestUpAndStatusWithAuthOn(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	c := up(t, dir, "--nodes=1")
	for _, command := range [][]string{{"user", "add", "root:r"}, {"user", "grant-role", "root", "root"},
		{"auth", "enable"}} {
		ok(t, append([]string{"ctl", "--endpoints", c.endpoints[0]}, command...)...)
	}
	c.stop()
	c = up(t, dir)
	stdout, _, code := do(t, "", "status", "--endpoints", c.endpoints[0])
	require.Equal(t, exitFailed, code)
	require.Contains(t, stdout, "auth is on")
	require.NotContains(t, stdout, "leader")
	_, stderr, code := do(t, "", "status", "--endpoints", c.endpoints[0], "--user=root")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "NAME:PASSWORD")
	require.Contains(t, ok(t, "status", "--endpoints", c.endpoints[0], "--user=root:r"), "leader")
	backups := t.TempDir()
	_, stderr, code = do(t, "", "backup", backups, "--endpoints", c.endpoints[0])
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "user name is empty")
	for _, kind := range []string{"whole", "increment"} {
		ok(t, "ctl", "--endpoints", c.endpoints[0], "--user=root:r", "put", kind, "x")
		require.Contains(t, ok(t, "backup", backups, "--endpoints", c.endpoints[0], "--user=root:r"), kind)
	}
}
