package settings

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSocketsOfUnix(t *testing.T) {
	s, err := load([]string{"--listen-client-urls=unix:///run/etcd.sock,unix://m1:0", "--listen-metrics-urls=unix://m"})
	require.NoError(t, err)
	require.Equal(t, []Address{{Network: "unix", Addr: "/run/etcd.sock", Plain: true},
		{Network: "unix", Addr: "m1:0", Plain: true}}, Addresses(s.ListenClient))
	require.Equal(t, s.ListenClient, s.AdvertiseClient)
	require.Equal(t, []string{"etcd.sock:0", "m1:0"}, Hosts(s.ListenClient))
	s, err = load(strings.Fields("--cert-file=c --key-file=k --listen-client-urls=unixs://a"))
	require.NoError(t, err)
	require.Equal(t, []Address{{Network: "unix", Addr: "a", TLS: true}}, Addresses(s.ListenClient))
	for _, c := range []struct{ args, want string }{
		{"--listen-client-urls=unixs://a", "unixs://a needs a certificate and a key"},
		{"--listen-client-urls=unix://", "must name a file"},
		{"--listen-client-urls=unix://a --listen-metrics-urls=unix://a", "a is already in --listen-client-urls"},
		{"--cert-file=c --key-file=k --listen-client-urls=unix://a", "write unixs"},
		{"--cert-file=c --key-file=k --listen-metrics-urls=http://:1,https://:1", ":1 is already in --listen-metrics-urls"},
		{"--listen-peer-urls=unix://a", "members connect to each other over TCP"},
		{"--initial-cluster=default=unix://a", "members connect to each other over TCP"},
	} {
		_, err := load(strings.Fields(c.args))
		require.ErrorContains(t, err, c.want, c.args)
	}
}

// TestBothSchemesOfAPort: as in etcd, clients may connect to one port by TLS and plain. What the certificate does not
// protect is reported.
func TestBothSchemesOfAPort(t *testing.T) {
	s, err := load(strings.Fields("--cert-file=c --key-file=k --listen-client-urls=" +
		"https://127.0.0.1:1,http://127.0.0.1:1,https://127.0.0.1:2,http://127.0.0.1:3"))
	require.NoError(t, err)
	require.Equal(t, []Address{{"tcp", "127.0.0.1:1", true, true}, {"tcp", "127.0.0.1:2", true, false},
		{"tcp", "127.0.0.1:3", false, true}}, Addresses(s.ListenClient))
	require.Len(t, s.Ignored(), 2)
	require.Contains(t, s.Ignored()[0], "the certificate does nothing for http://127.0.0.1:1 in --listen-client-urls")
	s, err = load(strings.Fields("--advertise-client-urls=https://proxy.example.com:443,http://h:1"))
	require.NoError(t, err, "a proxy may end TLS")
	require.Empty(t, s.Ignored())
	_, err = load(strings.Fields("--listen-peer-urls=http://127.0.0.1:1 --listen-client-urls=http://127.0.0.1:1"))
	require.ErrorContains(t, err, "127.0.0.1:1 is already in --listen-client-urls")
}
