package settings

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLimits(t *testing.T) {
	s, err := load(nil)
	require.NoError(t, err)
	require.Equal(t, Limits{MaxRequestsPerClient: 32768}, s.Limits)
	s, err = load([]string{"--max-connections=9", "--max-connections-per-client=3", "--user-request-rate=bob=5",
		"--user-request-rate=*=7", "--prefix-request-rate=/a,b/=0.5"}, "ETCD_MAX_REQUESTS_PER_CLIENT=8")
	require.NoError(t, err)
	require.Equal(t, Limits{MaxConnections: 9, MaxConnectionsPerClient: 3, MaxRequestsPerClient: 8,
		UserRates: []string{"bob=5", "*=7"}, PrefixRates: []string{"/a,b/=0.5"}}, s.Limits)
	for arg, want := range map[string]string{
		"--max-connections=-1":            "--max-connections -1: it is at least 0",
		"--max-connections-per-client=-1": "--max-connections-per-client -1: it is at least 0",
		"--max-requests-per-client=0":     "--max-requests-per-client 0: it is at least 1",
	} {
		_, err = load([]string{arg})
		require.ErrorContains(t, err, want)
	}
}
