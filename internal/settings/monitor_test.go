package settings

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMonitor(t *testing.T) {
	s, err := load(nil)
	require.NoError(t, err)
	require.False(t, s.ExtensiveMetrics())
	require.Equal(t, 300*time.Millisecond, s.WarnRequest)

	s, err = load([]string{"--metrics=extensive", "--experimental-warning-apply-duration=2s"},
		"ETCD_WARNING_UNARY_REQUEST_DURATION=3s")
	require.NoError(t, err)
	require.True(t, s.ExtensiveMetrics())
	require.Equal(t, 2*time.Second, s.WarnApply)
	require.Equal(t, 3*time.Second, s.WarnRequest)

	_, err = load([]string{"--metrics=all", "--warning-apply-duration=0s", "--warning-unary-request-duration=-1s"})
	for _, part := range []string{`--metrics "all": it is basic or extensive`, "--warning-apply-duration 0s",
		"--warning-unary-request-duration -1s"} {
		require.ErrorContains(t, err, part)
	}
}

func TestTracing(t *testing.T) {
	s, err := load(nil)
	require.NoError(t, err)
	require.False(t, s.Tracing)
	require.Equal(t, "localhost:4317", s.TracingAddress)
	require.Equal(t, "etcd", s.TracingService)

	s, err = load([]string{"--experimental-enable-distributed-tracing", "--distributed-tracing-instance-id=m1"},
		"ETCD_DISTRIBUTED_TRACING_SAMPLING_RATE=1000000")
	require.NoError(t, err)
	require.True(t, s.Tracing)
	require.Equal(t, "m1", s.TracingInstance)
	require.Equal(t, 1_000_000, s.TracingRate)

	_, err = load([]string{"--enable-distributed-tracing", "--distributed-tracing-sampling-rate=1000001"})
	require.ErrorContains(t, err, "--distributed-tracing-sampling-rate 1000001: it is at least 0 and at most 1000000")
	_, err = load([]string{"--distributed-tracing-sampling-rate=-1"})
	require.NoError(t, err, "etcd does not look at it either")
}
