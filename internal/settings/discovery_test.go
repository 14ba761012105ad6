package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestDiscoveryInTheFile has all keys of etcd's section that it uses.
func TestDiscoveryInTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "etcd.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
discovery-config:
  token: shop
  client:
    endpoints: [http://h:1, http://h:2]
    dial-timeout: 7000000000
    request-timeout: 8s
    keepalive-time: 9000000000
    keepalive-timeout: 10s
    secure: {cert: c, key: k, cacert: ca, insecure-transport: false, insecure-skip-tls-verify: true}
    auth: {username: a, password: b}
`), 0o600))
	s, err := load([]string{"--config-file=" + file, "--discovery-key=k2"})
	require.NoError(t, err)
	require.Equal(t, "shop", s.DiscoveryToken)
	require.Equal(t, clientv3.ConfigSpec{
		Endpoints: []string{"http://h:1", "http://h:2"}, DialTimeout: 7 * time.Second, RequestTimeout: 8 * time.Second,
		KeepAliveTime: 9 * time.Second, KeepAliveTimeout: 10 * time.Second,
		Secure: &clientv3.SecureConfig{Cert: "c", Key: "k2", Cacert: "ca", InsecureSkipVerify: true},
		Auth:   &clientv3.AuthConfig{Username: "a", Password: "b"},
	}, s.Registry)

	require.NoError(t, os.WriteFile(file, []byte("discovery-config: {client: {secure: {server-name: x}}}"), 0o600))
	_, err = load([]string{"--config-file=" + file})
	require.ErrorContains(t, err, `unknown key "discovery-config.client.secure.server-name"`)
}

func TestDiscovery(t *testing.T) {
	s, err := load(strings.Fields("--discovery-endpoints=http://h:1,http://h:2 --discovery-token=shop " +
		"--discovery-user=a:b --discovery-dial-timeout=7s --discovery-cacert=ca --discovery-insecure-transport=false"))
	require.NoError(t, err)
	require.True(t, s.Discovers())
	require.Equal(t, clientv3.ConfigSpec{
		Endpoints: []string{"http://h:1", "http://h:2"}, DialTimeout: 7 * time.Second, RequestTimeout: 5 * time.Second,
		KeepAliveTime: 2 * time.Second, KeepAliveTimeout: 6 * time.Second,
		Secure: &clientv3.SecureConfig{Cacert: "ca"}, Auth: &clientv3.AuthConfig{Username: "a", Password: "b"},
	}, s.Registry)
	require.NoError(t, s.Discovered("default=http://localhost:2380,b=http://h:3", "default"))
	require.Equal(t, "shop", s.Token)
	require.ErrorContains(t, s.Discovered("default=http://h:3", "default"), "says that default is at http://h:3")

	s, err = load(strings.Fields("--discovery-srv=example.com --discovery-srv-name=x"))
	require.NoError(t, err)
	require.NoError(t, s.Discovered("h:1=http://h:1,h:2=http://h:2", "h:2"))
	require.Equal(t, []string{"http://h:2"}, s.AdvertisePeer)
	require.Equal(t, "etcd-cluster", s.Token)
	s, err = load([]string{"--discovery-srv-name=x"})
	require.NoError(t, err)
	require.Equal(t, []string{"--discovery-srv-name does nothing without --discovery-srv"}, s.Ignored())

	for args, want := range map[string]string{
		"--discovery-srv=a --initial-cluster=default=http://localhost:2380": "exclude each other",
		"--discovery-srv=a --discovery-token=t --discovery-endpoints=h:1":   "exclude each other",
		"--discovery-token=t":                                 "go together",
		"--discovery-endpoints=h:1":                           "go together",
		"--discovery-endpoints=h:1,, --discovery-token=t":     "an endpoint is empty",
		"--discovery-cert=c":                                  "--discovery-cert and --discovery-key go together",
		"--discovery-srv=a --initial-cluster-zones=default=z": "needs --initial-cluster",
	} {
		_, err := load(strings.Fields(args))
		require.ErrorContains(t, err, want, args)
	}
}
