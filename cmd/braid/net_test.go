package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNetFromAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "matrix")
	require.NoError(t, os.WriteFile(file, []byte("regions=ams+fra, jitter=0.1ms\n\nams~fra: rtt=9ms # measured\n"), 0o600))
	spec := "@" + file
	require.NoError(t, readNet(&spec))
	require.Equal(t, "jitter=100µs,regions=ams+fra;ams~fra:latency=4.5ms", spec)
	require.NoError(t, readNet(&spec))

	require.NoError(t, whereIn(spec, "m3"))
	require.ErrorContains(t, whereIn(spec, "alice"), "alice:region=ams")
	require.NoError(t, os.WriteFile(file, []byte("speed=1"), 0o600))
	wrong := "@" + file
	require.ErrorContains(t, readNet(&wrong), "speed: unknown")
}
