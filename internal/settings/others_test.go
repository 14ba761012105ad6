package settings

import (
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
