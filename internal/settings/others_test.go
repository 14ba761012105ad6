package settings

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// nothing is what a member says about those settings of others that have no effect, without the reasons.
func nothing(s *Settings) (out []string) {
	for _, line := range s.Ignored() {
		name, _, _ := strings.Cut(line, " does nothing")
		out = append(out, name)
	}
	return out
}

func TestSampleOfTheFile(t *testing.T) {
	s, err := load([]string{"--config-file=testdata/etcd.conf.yml"})
	require.NoError(t, err)
	require.Equal(t, []string{"--discovery-fallback", "--max-snapshots", "--max-wals", "--snapshot-count"}, nothing(s))
	require.Equal(t, "default.braid", s.DataDir)
	require.Equal(t, []string{"stderr"}, s.LogOutputs)
	require.True(t, s.Profiling)
	require.False(t, s.StrictReconfig)
}

// TestManifestOfKubeadm has the command of its static pod, of Kubernetes 1.22 to 1.34.
func TestManifestOfKubeadm(t *testing.T) {
	common := strings.Fields(`--advertise-client-urls=https://192.168.0.10:2379
		--cert-file=/etc/kubernetes/pki/etcd/server.crt --client-cert-auth=true --data-dir=/var/lib/etcd
		--initial-advertise-peer-urls=https://192.168.0.10:2380 --initial-cluster=cp1=https://192.168.0.10:2380
		--key-file=/etc/kubernetes/pki/etcd/server.key
		--listen-client-urls=https://127.0.0.1:2379,https://192.168.0.10:2379
		--listen-metrics-urls=http://127.0.0.1:2381 --listen-peer-urls=https://192.168.0.10:2380 --name=cp1
		--peer-cert-file=/etc/kubernetes/pki/etcd/peer.crt --peer-client-cert-auth=true
		--peer-key-file=/etc/kubernetes/pki/etcd/peer.key --peer-trusted-ca-file=/etc/kubernetes/pki/etcd/ca.crt
		--snapshot-count=10000 --trusted-ca-file=/etc/kubernetes/pki/etcd/ca.crt`)
	for _, own := range []string{
		"--experimental-initial-corrupt-check=true --experimental-watch-progress-notify-interval=5s",
		"--feature-gates=InitialCorruptCheck=true --watch-progress-notify-interval=5s",
	} {
		s, err := load(append(strings.Fields(own), common...))
		require.NoError(t, err)
		require.Equal(t, []string{"--snapshot-count"}, nothing(s))
		require.Equal(t, 5*time.Second, s.WatchProgressInterval)
	}
}

// TestVariablesOfCharts has what a common chart sets in a container.
func TestVariablesOfCharts(t *testing.T) {
	s, err := load(nil, "ETCD_NAME=etcd-0", "ETCD_DATA_DIR=/data", "ETCD_LISTEN_PEER_URLS=http://0.0.0.0:2380",
		"ETCD_LISTEN_CLIENT_URLS=http://0.0.0.0:2379",
		"ETCD_ADVERTISE_CLIENT_URLS=http://etcd-0.etcd:2379,http://etcd:2379",
		"ETCD_INITIAL_ADVERTISE_PEER_URLS=http://etcd-0.etcd:2380", "ETCD_INITIAL_CLUSTER_TOKEN=etcd-cluster-k8s",
		"ETCD_INITIAL_CLUSTER_STATE=new",
		"ETCD_INITIAL_CLUSTER=etcd-0=http://etcd-0.etcd:2380,etcd-1=http://etcd-1.etcd:2380",
		"ETCD_AUTO_TLS=false", "ETCD_PEER_AUTO_TLS=false", "ETCD_LOG_LEVEL=info", "ETCD_ON_K8S=yes",
		"ETCD_AUTO_COMPACTION_MODE=periodic", "ETCD_AUTO_COMPACTION_RETENTION=10h", "ETCD_MAX_SNAPSHOTS=5",
		"ETCD_EXPERIMENTAL_CORRUPT_CHECK_TIME=4h", "ETCDCTL_API=3")
	require.NoError(t, err)
	require.Equal(t, []string{"--max-snapshots", "variable ETCD_ON_K8S"}, nothing(s))
	require.Equal(t, 4*time.Hour, s.CorruptCheckTime)
}

// TestVariablesOfChartsWithTLS has further ones of that chart: certificates or self-signed ones, tokens, its own.
func TestVariablesOfChartsWithTLS(t *testing.T) {
	urls := []string{"MY_STS_NAME=etcd", "ETCD_NAME=etcd-0", "ETCD_DATA_DIR=/bitnami/etcd/data",
		"ETCD_LISTEN_PEER_URLS=https://0.0.0.0:2380", "ETCD_LISTEN_CLIENT_URLS=https://0.0.0.0:2379",
		"ETCD_ADVERTISE_CLIENT_URLS=https://etcd-0.etcd-headless.default.svc.cluster.local:2379,https://etcd:2379",
		"ETCD_INITIAL_ADVERTISE_PEER_URLS=https://etcd-0.etcd-headless.default.svc.cluster.local:2380",
		"ETCD_LISTEN_METRICS_URLS=http://0.0.0.0:9090", "ETCD_LOG_LEVEL=debug", "ETCD_METRICS=extensive",
		"ETCD_AUTH_TOKEN=jwt,priv-key=/opt/bitnami/etcd/certs/token/jwt-token.pem,sign-method=RS256,ttl=10m"}
	own := []string{"ETCD_ON_K8S=yes", "ETCD_START_FROM_SNAPSHOT=no", "ETCD_DISASTER_RECOVERY=no",
		"ETCD_CLUSTER_DOMAIN=etcd-headless.default.svc.cluster.local", "ETCD_ROOT_PASSWORD=x"}
	for _, tls := range [][]string{
		{"ETCD_CERT_FILE=c", "ETCD_KEY_FILE=k", "ETCD_TRUSTED_CA_FILE=ca", "ETCD_CLIENT_CERT_AUTH=true",
			"ETCD_PEER_CERT_FILE=c", "ETCD_PEER_KEY_FILE=k", "ETCD_PEER_TRUSTED_CA_FILE=ca", "ETCD_PEER_CLIENT_CERT_AUTH=true"},
		{"ETCD_AUTO_TLS=true", "ETCD_PEER_AUTO_TLS=true"},
	} {
		s, err := load(nil, slices.Concat(urls, own, tls)...)
		require.NoError(t, err)
		require.Len(t, nothing(s), len(own), "the chart's own variables are for its script")
		require.True(t, s.ClientTLS.Enabled())
	}
}

// TestUnitOfDebian has the variables of its unit, whose file of variables is all comments, and those that guides write
// into this file. Its command has no arguments.
func TestUnitOfDebian(t *testing.T) {
	unit := []string{"DAEMON_ARGS=", "ETCD_NAME=host", "ETCD_DATA_DIR=/var/lib/etcd/default"}
	s, err := load(nil, unit...)
	require.NoError(t, err)
	require.Empty(t, nothing(s))
	require.Equal(t, []string{"http://localhost:2379"}, s.AdvertiseClient)
	s, err = load(nil, "ETCD_NAME=etcd1", "ETCD_DATA_DIR=/var/lib/etcd/k8s.etcd", "ETCD_WAL_DIR=/var/lib/etcd/wal",
		"ETCD_SNAPSHOT_COUNT=100", "ETCD_HEARTBEAT_INTERVAL=1000", "ETCD_ELECTION_TIMEOUT=5000", "ETCD_MAX_WALS=5",
		"ETCD_LISTEN_PEER_URLS=https://10.0.0.1:2380", "ETCD_LISTEN_CLIENT_URLS=https://10.0.0.1:2379,http://127.0.0.1:2379",
		"ETCD_INITIAL_ADVERTISE_PEER_URLS=https://10.0.0.1:2380", "ETCD_ADVERTISE_CLIENT_URLS=https://10.0.0.1:2379",
		"ETCD_INITIAL_CLUSTER=etcd1=https://10.0.0.1:2380,etcd2=https://10.0.0.2:2380", "ETCD_INITIAL_CLUSTER_STATE=new",
		"ETCD_STRICT_RECONFIG_CHECK=True", "ETCD_CERT_FILE=c", "ETCD_KEY_FILE=k", "ETCD_CLIENT_CERT_AUTH=true",
		"ETCD_TRUSTED_CA_FILE=ca", "ETCD_AUTO_TLS=true", "ETCD_PEER_CERT_FILE=c", "ETCD_PEER_KEY_FILE=k",
		"ETCD_PEER_CLIENT_CERT_AUTH=true", "ETCD_PEER_TRUSTED_CA_FILE=ca", "ETCD_PEER_AUTO_TLS=true",
		"ETCD_PEER_SKIP_CLIENT_SAN_VERIFICATION=true", "ETCD_INITIAL_ELECTION_TICK_ADVANCE=false", "ETCD_ENABLE_V2=false",
		"ETCD_DEBUG=False", "ETCD_UNSUPPORTED_ARCH=arm64", "ETCD_FORCE_NEW_CLUSTER=false")
	require.NoError(t, err)
	require.Equal(t, []string{"--auto-tls", "--initial-election-tick-advance", "--max-wals", "--peer-auto-tls",
		"--snapshot-count", "the certificate", "variable ETCD_DEBUG", "variable ETCD_UNSUPPORTED_ARCH"}, nothing(s))
	require.Equal(t, "/var/lib/etcd/wal", s.WALDir)
}

// TestUnitsOfGuides has the commands of etcd's own documentation and of common guides for Kubernetes.
func TestUnitsOfGuides(t *testing.T) {
	for _, args := range []string{
		// etcd's documentation: static, and with discovery.
		`--name infra0 --initial-advertise-peer-urls http://10.0.1.10:2380 --listen-peer-urls http://10.0.1.10:2380
		--listen-client-urls http://10.0.1.10:2379,http://127.0.0.1:2379 --advertise-client-urls http://10.0.1.10:2379
		--initial-cluster-token etcd-cluster-1
		--initial-cluster infra0=http://10.0.1.10:2380,infra1=http://10.0.1.11:2380,infra2=http://10.0.1.12:2380
		--initial-cluster-state new`,
		`--name infra0 --discovery-srv example.com --initial-advertise-peer-urls http://infra0.example.com:2380
		--initial-cluster-token etcd-cluster-1 --initial-cluster-state new
		--advertise-client-urls http://infra0.example.com:2379 --listen-client-urls http://0.0.0.0:2379
		--listen-peer-urls http://0.0.0.0:2380`,
		`--name infra0 --initial-advertise-peer-urls http://10.0.1.10:2380 --listen-peer-urls http://10.0.1.10:2380
		--listen-client-urls http://10.0.1.10:2379 --advertise-client-urls http://10.0.1.10:2379
		--discovery-token 3e86b59982e49066c5d813af1c2e2579cbf573de --discovery-endpoints http://10.0.2.1:2379`,
		`--name infra0 --auto-tls --listen-client-urls https://10.0.1.10:2379 --advertise-client-urls https://10.0.1.10:2379
		--peer-auto-tls --listen-peer-urls https://10.0.1.10:2380 --initial-advertise-peer-urls https://10.0.1.10:2380`,
		// A single one for development, in a container.
		`--listen-client-urls=http://0.0.0.0:2379 --advertise-client-urls=http://0.0.0.0:2379
		--logger=zap --log-outputs=stderr --log-level=info --data-dir=/etcd-data`,
		// For an API server on the same machine, by a socket.
		`--listen-client-urls=unix:///run/etcd.sock,http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379
		--unsafe-no-fsync=false --quota-backend-bytes=8589934592`,
	} {
		s, err := load(strings.Fields(args))
		require.NoError(t, err, args)
		require.Empty(t, nothing(s), args)
	}
}

// TestEarlierNames: etcd 3.7 has many flags of 3.5 and 3.6 without "experimental-", and the present name wins.
func TestEarlierNames(t *testing.T) {
	s, err := load([]string{"--experimental-max-learners=2", "--experimental-compaction-batch-limit=100",
		"--experimental-memory-mlock", "--experimental-snapshot-catchup-entries=7"},
		"ETCD_COMPACT_HASH_CHECK_TIME=2m", "ETCD_EXPERIMENTAL_COMPACT_HASH_CHECK_TIME=3m")
	require.NoError(t, err)
	require.Equal(t, 2, s.MaxLearners)
	require.Equal(t, 2*time.Minute, s.CompactHashCheckTime)
	require.Equal(t, 100, s.CompactionLimit)
	require.True(t, s.LockMemory)
	require.Equal(t, []string{"--snapshot-catchup-entries"}, nothing(s))
	_, err = load([]string{"--experimental-nonsense=1"})
	require.ErrorContains(t, err, "unknown flag")
	_, err = load([]string{"--proxy=on"})
	require.ErrorContains(t, err, "there is no v2")
}
