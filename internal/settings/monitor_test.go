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
