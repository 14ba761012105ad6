package settings

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAccess(t *testing.T) {
	s, err := load(nil)
	require.NoError(t, err)
	require.Equal(t, Access{Hosts: []string{"*"}, Origins: []string{"*"}, PingMinTime: 5 * time.Second,
		PingInterval: 2 * time.Hour, PingTimeout: 20 * time.Second}, s.Access)

	s, err = load([]string{"--host-whitelist=a,b", "--cors=https://a.example.com,http://localhost:80", "--enable-pprof",
		"--grpc-keepalive-min-time=1s"}, "ETCD_GRPC_KEEPALIVE_INTERVAL=1m", "ETCD_GRPC_KEEPALIVE_TIMEOUT=10s")
	require.NoError(t, err)
	require.Equal(t, Access{Hosts: []string{"a", "b"},
		Origins:   []string{"https://a.example.com", "http://localhost:80"},
		Profiling: true, PingMinTime: time.Second, PingInterval: time.Minute, PingTimeout: 10 * time.Second}, s.Access)
	require.Empty(t, s.Ignored())

	for arg, want := range map[string]string{
		"--cors=example.com":              `--cors: "example.com" is not a site`,
		"--cors=https://example.com/path": "is not a site",
		"--grpc-keepalive-timeout=0s":     "--grpc-keepalive-timeout 0s: it is more than 0",
	} {
		_, err = load([]string{arg})
		require.ErrorContains(t, err, want)
	}
}
