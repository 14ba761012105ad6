package deploy

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
)

// machine is a systemd with processes, files and a network of its own.
type machine struct {
	t   *testing.T
	pid string // of its process 1
}

func startMachine(t *testing.T) *machine {
	t.Helper()
	script, err := filepath.Abs("testdata/machine.sh")
	require.NoError(t, err)
	p := begin(t, "", nil, "unshare", "--mount", "--pid", "--cgroup", "--ipc", "--uts", "--net", "--fork",
		"--kill-child", "sh", script)
	t.Cleanup(func() { p.stop(t, syscall.SIGKILL) }) // before begin's own, as unshare ignores that
	m := &machine{t: t}
	eventually(t, "systemd runs", func(ctx context.Context) bool {
		pid, err := try(ctx, "", "pgrep", "--parent", strconv.Itoa(p.Process.Pid), "systemd")
		m.pid = pid
		state, _ := try(ctx, "", "nsenter", m.args("systemctl", "is-system-running")...)
		return err == nil && (state == "running" || state == "degraded")
	})
	return m
}

// args are those of nsenter for a command there.
func (m *machine) args(command ...string) []string {
	namespaces := []string{"--target", m.pid, "--mount", "--pid", "--cgroup", "--ipc", "--uts", "--net", "--root"}
	return append(namespaces, command...)
}

func (m *machine) do(command ...string) string {
	m.t.Helper()
	return do(m.t, "", "nsenter", m.args(command...)...)
}

func (m *machine) property(name string) string {
	m.t.Helper()
	return m.do("systemctl", "show", "--value", "--property", name, "braid")
}

// TestUnit: braid is installed as the page says, runs as its own user, and is started again after a crash, but not
// after a start with wrong flags.
func TestUnit(t *testing.T) {
	testsize.Only(t, testsize.Deploy)
	t.Parallel()
	dir := release(t)
	m := startMachine(t)
	script := "set -e; cd " + dir + "\n" + strings.Join(commands(t, "## systemd"), "\n")
	m.do("sh", "-c", script)
	require.Empty(t, m.do("systemd-analyze", "verify", "/etc/systemd/system/braid.service"))
	m.do("systemd-analyze", "security", "--threshold=15", "braid")
	require.Equal(t, "active", m.do("systemctl", "is-active", "braid"))
	require.Equal(t, "braid", m.do("ps", "--no-headers", "-o", "user:20", m.property("MainPID")))
	require.Equal(t, "OK", m.do("braid", "ctl", "put", "k", "before"))
	require.Equal(t, "700 braid", m.do("stat", "--format", "%a %U", "/var/lib/braid"))

	m.do("systemctl", "kill", "--signal", "KILL", "braid")
	eventually(t, "it is started again", func(ctx context.Context) bool {
		out, err := try(ctx, "", "nsenter", m.args("braid", "ctl", "get", "k", "--print-value-only")...)
		return err == nil && out == "before"
	})
	require.Equal(t, "1", m.property("NRestarts"))
	m.do("systemctl", "stop", "braid")
	require.Equal(t, "success", m.property("Result"))
	require.Equal(t, "0", m.property("ExecMainStatus"))

	m.do("sh", "-c", "echo DAEMON_ARGS=--nonsense >> /etc/default/braid")
	_, err := try(t.Context(), "", "nsenter", m.args("systemctl", "start", "braid")...)
	require.Error(t, err)
	require.Equal(t, "2", m.property("ExecMainStatus"))
	require.Equal(t, "failed", m.property("ActiveState"))
	_, err = os.Stat("/usr/local/bin/braid")
	require.ErrorIs(t, err, os.ErrNotExist, "the machine has files of its own")
}
