package settings

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutput(t *testing.T) {
	s, err := load([]string{"--log-outputs=stderr,stdout,systemd/journal,a.log", "--enable-log-rotation",
		"--log-format=console", "--logger=zap"},
		`ETCD_LOG_ROTATION_CONFIG_JSON={"maxsize":1,"maxage":2,"maxbackups":3,"localtime":true,"compress":true}`)
	require.NoError(t, err)
	require.Empty(t, s.Ignored())
	require.Equal(t, []string{"a.log"}, s.LogFiles())
	require.False(t, s.JSON())
	r, err := s.Rotation()
	require.NoError(t, err)
	require.Equal(t, Rotation{MaxSize: 1, MaxAge: 2, MaxBackups: 3, LocalTime: true, Compress: true}, r)

	for level, want := range map[string]slog.Level{"debug": slog.LevelDebug, "warn": slog.LevelWarn,
		"panic": slog.LevelError, "fatal": slog.LevelError} {
		s, err := load([]string{"--log-level=" + level})
		require.NoError(t, err)
		require.Equal(t, want, s.Level())
	}

	for arg, want := range map[string]string{
		"--log-format=xml":                            "it is text or json",
		"--log-level=loud":                            "it is debug, info, warn or error",
		"--log-outputs=a,,b":                          "--log-outputs has an empty name",
		"--enable-log-rotation":                       "has no meaning without a file in --log-outputs",
		"--log-rotation-config-json={":                "--log-rotation-config-json: unexpected EOF",
		`--log-rotation-config-json={"maxsize":-1}`:   "a limit is negative",
		`--log-rotation-config-json={"maximum":"10"}`: `unknown field "maximum"`,
	} {
		_, err = load([]string{arg})
		require.ErrorContains(t, err, want, arg)
	}
}
