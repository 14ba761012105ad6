package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/settings"
	"github.com/braidlog/braid/server"
)

// logTo opens a log with flags.
func logTo(t *testing.T, args ...string) (l *logFiles, stdout, stderr *bytes.Buffer) {
	s, f := &settings.Settings{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	s.Flags(f)
	require.NoError(t, f.Parse(args))
	require.NoError(t, s.Load(f, nil))
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	l, err := openLog(s, stdout, stderr)
	require.NoError(t, err)
	t.Cleanup(l.close)
	logger := newLogger(s, l)
	logger.Info("from braid")
	server.ZapLogger(logger).Warn("from etcd")
	return l, stdout, stderr
}

func TestLogOutputs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m1.log")
	require.NoError(t, os.WriteFile(file, []byte("before\n"), 0o600))
	_, stdout, stderr := logTo(t, "--log-outputs=stdout,"+file, "--log-format", "json")
	require.Empty(t, stderr.String())
	require.Contains(t, stdout.String(), `"from braid"`)
	require.Contains(t, stdout.String(), `"from etcd"`)
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "before\n"+stdout.String(), string(content))

	for _, args := range [][]string{nil, {"--log-outputs", "stderr", "--log-format", "console"}} {
		_, stdout, stderr = logTo(t, args...)
		require.Empty(t, stdout.String())
		require.Contains(t, stderr.String(), `msg="from braid"`)
	}
}

func TestLogRotation(t *testing.T) {
	dir := t.TempDir()
	l, _, _ := logTo(t, "--log-outputs="+filepath.Join(dir, "m1.log"), "--enable-log-rotation",
		`--log-rotation-config-json={"maxsize": 1, "maxbackups": 2}`)
	line := []byte(strings.Repeat("x", 1<<10-1) + "\n")
	for range 2 << 10 {
		_, err := l.Write(line)
		require.NoError(t, err)
	}
	all, err := filepath.Glob(filepath.Join(dir, "m1*.log"))
	require.NoError(t, err)
	require.Len(t, all, 3)
	for _, file := range all {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.LessOrEqual(t, info.Size(), int64(1<<20))
	}
}

// A duration has its unit in both forms.
func TestDurationsInTheLog(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		s, f, out := &settings.Settings{}, pflag.NewFlagSet("", pflag.ContinueOnError), &bytes.Buffer{}
		s.Flags(f)
		require.NoError(t, f.Parse([]string{"--log-format", format}))
		require.NoError(t, s.Load(f, nil))
		newLogger(s, out).Info("slow", "took", 1500*time.Millisecond, slog.Group("stages", "append", time.Millisecond))
		require.Contains(t, out.String(), "1.5s")
		require.Contains(t, out.String(), "1ms")
	}
}
