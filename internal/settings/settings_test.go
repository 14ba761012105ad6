package settings

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.uber.org/zap"

	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

func load(args []string, environ ...string) (*Settings, error) {
	s := &Settings{}
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	s.Flags(f)
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	return s, s.Load(f, environ)
}

func TestDefaultsAreAClusterOfOne(t *testing.T) {
	s, err := load(nil)
	require.NoError(t, err)
	require.Equal(t, "default.braid", s.DataDir)
	require.Equal(t, []string{"http://localhost:2379"}, s.AdvertiseClient)
	peers, err := s.Peers()
	require.NoError(t, err)
	require.Equal(t, []Peer{{Name: "default", URLs: []string{"http://localhost:2380"}}}, peers)
	require.Equal(t, []string{"localhost:2380"}, Hosts(s.ListenPeer))
}

func TestInitialClusterKeepsSeveralURLsOfAMember(t *testing.T) {
	s, err := load([]string{
		"--name=b", "--listen-peer-urls=http://127.0.0.1:1,http://127.0.0.2:1",
		"--initial-cluster=b=http://127.0.0.1:1,a=http://h:2,b=http://127.0.0.2:1",
	})
	require.NoError(t, err)
	peers, err := s.Peers()
	require.NoError(t, err)
	require.Equal(t, []Peer{
		{Name: "a", URLs: []string{"http://h:2"}}, {Name: "b", URLs: []string{"http://127.0.0.1:1", "http://127.0.0.2:1"}},
	}, peers)
}

// TestMembersWithoutAName: member add prints members without a name until they have started.
func TestMembersWithoutAName(t *testing.T) {
	const cluster = "--initial-cluster==http://h:1,default=http://localhost:2380,=http://h:2"
	s, err := load([]string{cluster, "--initial-cluster-state=existing"})
	require.NoError(t, err)
	peers, err := s.Peers()
	require.NoError(t, err)
	require.Equal(t, []Peer{{URLs: []string{"http://h:1", "http://h:2"}},
		{Name: "default", URLs: []string{"http://localhost:2380"}}}, peers)
	_, err = load([]string{cluster})
	require.ErrorContains(t, err, "is not NAME=URL")
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--name=", `--name ""`},
		{"--name=a=b", "holds no space"},
		{"--initial-cluster=a=http://h:1", `does not include this member, "default": its members are a`},
		{"--initial-cluster=default=http://h:1", "says that default is at http://h:1"},
		{"--initial-cluster=default", `"default" is not NAME=URL`},
		{"--initial-cluster=default=http://localhost:2380,b=http://localhost:2380",
			"http://localhost:2380 belongs to b and to default"},
		{"--initial-cluster=default=http://localhost:2380,b=https://h:2380", "mixes http and https"},
		{"--zone=eu/west", `--zone "eu/west": the zone is not a name`},
		{"--initial-cluster-zones=default", `"default" is not NAME=ZONE`},
		{"--initial-cluster-zones=default=", `"default=" is not NAME=ZONE`},
		{"--initial-cluster-zones=default=eu/west", `"default=eu/west": the zone is not a name`},
		{"--initial-cluster-zones=default=a,b=a", "b is not in --initial-cluster, whose members are default"},
		{"--initial-cluster-zones=default=a,default=b", "has default twice"},
		{"--initial-cluster-zones=default=a --initial-cluster=default=http://localhost:2380,b=http://h:1",
			"has no zone of b: give those of all members"},
		{"--initial-cluster-state=old", "it is new or existing"},
		{"--listen-client-urls=localhost:1", "must begin with http://"},
		{"--listen-client-urls=http://localhost", "must name a host and a port"},
		{"--listen-client-urls=http://localhost:99999", "does not exist"},
		{"--listen-client-urls=http://localhost:1/x", "nothing after the port"},
		{"--listen-client-urls=http://example.com:1", "IP address or localhost"},
		{"--listen-peer-urls=http://localhost:1,https://localhost:2", "mixes http and https"},
		{"--listen-client-urls=http://localhost:2380", "localhost:2380 is already in --listen-client-urls"},
		{"--listen-client-urls=https://localhost:1", "needs a certificate"},
		{"--cert-file=c --key-file=k", "write https"},
		{"--cert-file=c", "go together"},
		{"--client-cert-auth --cert-file=c --key-file=k", "needs --trusted-ca-file"},
		{"--trusted-ca-file=ca", "without --cert-file"},
		{"--peer-cert-file=c --peer-key-file=k", "--peer-trusted-ca-file is missing"},
		{"--election-timeout=200", "less than 3 heartbeats"},
		{"--election-timeout=60000", "not in 1ms…50s"},
		{"--heartbeat-interval=0", "--heartbeat-interval 0s: not at least 1ms"},
		{"--max-request-bytes=0", "--max-request-bytes"},
		{"--log-level=loud", `--log-level "loud"`},
		{"--log-format=xml", `--log-format "xml"`},
		{"--auto-compaction-mode=never", `--auto-compaction-mode "never"`},
		{"--auto-compaction-retention=soon", "a number of hours or a duration"},
		{"--auto-compaction-mode=revision --auto-compaction-retention=1h", "a number of revisions"},
		{"--protocol=epaxos", "this version has raft, craft, niagara, lcr, multi-paxos and iss"},
		{"--protocol=rs-raft", `is for "braid bench" and "braid sim" alone`},
		{"--placement=confirm", `--placement "confirm" is not for protocol raft; there is: copy, code`},
		{"--placement=rs", "there is: copy, code"},
		{"--protocol=craft --placement=copy", "is not for protocol craft; there is: code"},
		{"--instances=2", "--instances 2: protocol raft has one instance; niagara merges several"},
		{"--protocol=craft --instances=2", "craft has one instance"},
		{"--leaders=spread", "--leaders spread: protocol raft has one leader; niagara has several"},
		{"--placement=code --leaders=together", "raft has one leader"},
		{"--protocol=niagara --instances=65", "--instances 65: not in 0…64"},
		{"--protocol=niagara --instances=-1", "instances -1: not in 0…64"},
		{"--protocol=niagara --leaders=m1", "--leaders m1: it is together or spread"},
		{"--protocol=niagara --placement=confirm", "there is: copy, code"},
		{"--protocol=niagara --code-k=2", "--code-k 2: placement copy has no use for it: it is for protocol craft, or " +
			"another one with placement code"},
		{"--code-k=2", "placement copy has no use for it"},
		{"--extra-whole=1", "--extra-whole 1: placement copy has no use for it"},
		{"--trim-whole", "--trim-whole true: placement copy has no use for it"},
		{"--protocol=craft --relays=2", `--relays 2: only multi-paxos and iss can have it, and not craft`},
		{"--protocol=iss --relays=65", "--relays 65: not in 0…64"},
		{"--protocol=craft --code-k=65", "--code-k 65: not in 0…64"},
		{"--protocol=craft --code-k=-1", "code-k -1: not in 0…64"},
		{"--protocol=craft --extra-whole=-1", "extra-whole -1: not in 0…64"},
		{"--quorums=2/2", `--quorums 2/2: only multi-paxos, iss and wpaxos can have it, and not raft`},
		{"--protocol=iss --quorums=2",
			"want majority, ELECT/DECIDE as in 4/2, grid:ROWS as in grid:2, or zones:COUNT/LOST/DOWN as in zones:3/0/1"},
		{"--epoch-slots=64", "only iss can have it, and not raft"},
		{"--protocol=iss --epoch-slots=48", "must be powers of two"},
		{"--protocol=iss --epoch-slots=64-32", "must be powers of two"},
		{"--protocol=iss --epoch-slots=0", `"0" is not a positive number`},
		{"--protocol=iss --epoch-slots=64-", `"64-" is not a positive number`},
		{"--protocol=iss --epoch-policy=none", `policy "none" is none of simple, backoff, blacklist, combined`},
		{"--protocol=iss --epoch-bans=9-8", "bans of 9 to 8 epochs"},
		{"--large-value-bytes=1023", "--large-value-bytes must be at least 1024"},
		{"--body-cache-bytes=-1", "--body-cache-bytes is negative"},
		{"--scrub-rate=-1", "--scrub-rate is negative"},
	} {
		_, err := load(strings.Fields(c.args))
		require.ErrorContains(t, err, c.want, c.args)
	}
}

// TestFlagsOfMembers: what the members of a cluster share is in the log, and no flag of one member.
func TestFlagsOfMembers(t *testing.T) {
	for name, of := range map[string]bool{
		"name": true, "listen-client-urls": true, "snapshot-bytes": true, "max-request-bytes": true, "lane-prefix": true,
		"net": true, "placement": false, "instances": false, "order": false, "election-timeout": false, "relays": false,
		"quorums": false, "epochs": false, "epoch-policy": false, "lanes": false, "protocol": false, "color": false,
	} {
		require.Equal(t, of, OfMember(name), name)
	}
}

func TestEveryMistakeIsReportedAtOnce(t *testing.T) {
	_, err := load([]string{"--name=", "--election-timeout=1", "--log-level=loud"})
	require.ErrorContains(t, err, "--name")
	require.ErrorContains(t, err, "--election-timeout")
	require.ErrorContains(t, err, "--log-level")
}

func TestPlacementFollowsProtocol(t *testing.T) {
	for _, c := range []struct{ args, protocol, placement string }{
		{"", "raft", PlacementCopy},
		{"--protocol=raft", "raft", PlacementCopy},
		{"--placement=copy", "raft", PlacementCopy},
		{"--protocol=craft", "craft", PlacementCode},
		{"--placement=code", "craft", PlacementCode},
		{"--protocol=raft --placement=code", "craft", PlacementCode},
		{"--protocol=craft --placement=code", "craft", PlacementCode},
	} {
		s, err := load(strings.Fields(c.args))
		require.NoError(t, err, c.args)
		require.Equal(t, c.protocol, s.Protocol, c.args)
		require.Equal(t, c.placement, s.Placement(), c.args)
		require.Equal(t, 1, s.Instances(), c.args)
		require.Empty(t, s.Leaders(), c.args)
	}
}

func TestEpochs(t *testing.T) {
	for _, c := range []struct {
		args string
		want protocol.EpochSettings
	}{
		{"", protocol.EpochSettings{MinSlots: 64, MaxSlots: 1024, Policy: "combined", Ban: 8, MaxBan: 256}},
		{"--epoch-slots=32 --epoch-equal-shares", protocol.EpochSettings{MinSlots: 32, MaxSlots: 32, EqualShares: true,
			Policy: "combined", Ban: 8, MaxBan: 256}},
		{"--epoch-slots=32-128 --epoch-policy=backoff --epoch-bans=1-4",
			protocol.EpochSettings{MinSlots: 32, MaxSlots: 128, Policy: "backoff", Ban: 1, MaxBan: 4}},
		{"--epoch-slots= --epoch-policy=simple", protocol.EpochSettings{MinSlots: 64, MaxSlots: 1024, Policy: "simple",
			Ban: 8, MaxBan: 256}},
	} {
		s, err := load(append(strings.Fields(c.args), "--protocol=iss"))
		require.NoError(t, err, c.args)
		require.Equal(t, c.want, epochs.Setting.In(s.Values), c.args)
	}
}

// up passes the flags to its members as they print, and keeps them in its manifest in the format of earlier versions.
func TestEpochFlagsPrintWhatTheyRead(t *testing.T) {
	for args, want := range map[string]string{
		"":                 "--epoch-slots=64-1024 --epoch-policy=combined --epoch-bans=8-256",
		"--epoch-slots=64": "--epoch-slots=64 --epoch-policy=combined --epoch-bans=8-256",
		"--epoch-slots=64-128 --epoch-equal-shares --epoch-bans=1-2 --epoch-policy=simple": "--epoch-slots=64-128 " +
			"--epoch-equal-shares=true --epoch-policy=simple --epoch-bans=1-2",
	} {
		s, err := load(append(strings.Fields(args), "--protocol=iss"))
		require.NoError(t, err, args)
		require.Equal(t, want, strings.Join(EpochArgs("iss", s.Values), " "))
		again, err := load(append(EpochArgs("iss", s.Values), "--protocol=iss"))
		require.NoError(t, err, args)
		require.Equal(t, s.Values, again.Values)
	}
	require.Empty(t, EpochArgs("raft", setting.Values{}))
}

func TestInstancesAndLeadersOfNiagara(t *testing.T) {
	for _, c := range []struct {
		args, placement, leaders string
		instances                int
	}{
		{"", PlacementCopy, LeadersTogether, 4},
		{"--instances=1", PlacementCopy, LeadersTogether, 1},
		{"--instances=8 --leaders=spread", PlacementCopy, LeadersSpread, 8},
		{"--placement=copy --leaders=together", PlacementCopy, LeadersTogether, 4},
		{"--placement=code --code-k=3 --extra-whole=1", PlacementCode, LeadersSpread, 4},
		{"--placement=code --leaders=together", PlacementCode, LeadersTogether, 4},
	} {
		s, err := load(append(strings.Fields(c.args), "--protocol=niagara"))
		require.NoError(t, err, c.args)
		require.Equal(t, "niagara", s.Protocol, c.args)
		require.Equal(t, c.placement, s.Placement(), c.args)
		require.Equal(t, c.leaders, s.Leaders(), c.args)
		require.Equal(t, c.instances, s.Instances(), c.args)
	}
}

func TestNiagaraFromAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "braid.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
protocol: niagara
instances: 2
leaders: spread
listen-peer-urls: [http://127.0.0.1:1, http://127.0.0.2:1]
`), 0o600))
	s, err := load([]string{"--config-file=" + file}, "ETCD_INSTANCES=8", "ETCD_PLACEMENT=code")
	require.NoError(t, err)
	require.Equal(t, Log{
		Protocol: "niagara", Values: setting.MustParse("order=niagara", "placement=code", "instances=2", "leaders=spread"),
		MaxRequestBytes: 32 << 20, ScrubRate: 4 << 20,
	}, s.Log)
	require.Equal(t, []string{"http://127.0.0.1:1", "http://127.0.0.2:1"}, s.AdvertisePeer)
}

func TestFragments(t *testing.T) {
	for _, c := range []struct{ members, codeK, want int }{
		{1, 0, 1}, {2, 0, 1}, {3, 0, 1}, {4, 0, 2}, {5, 0, 2}, {6, 0, 3}, {7, 0, 3}, {9, 0, 4},
		{1, 2, 1}, {3, 2, 2}, {3, 9, 2}, {5, 3, 3}, {5, 64, 3}, {5, 1, 1}, {7, 2, 2},
	} {
		l := Log{Values: setting.MustParse("placement=code", fmt.Sprint("code-k=", c.codeK))}
		require.Equal(t, c.want, l.Fragments(c.members), "%d members, at most %d", c.members, c.codeK)
	}
	copies := Log{Values: setting.MustParse("placement=copy")}
	require.Equal(t, 1, copies.Fragments(5))
}

func TestRetention(t *testing.T) {
	s, err := load([]string{"--auto-compaction-retention=2"})
	require.NoError(t, err)
	period, revisions, err := s.Retention()
	require.NoError(t, err)
	require.Equal(t, 2*time.Hour, period)
	require.Zero(t, revisions)
	s, err = load([]string{"--auto-compaction-mode=revision", "--auto-compaction-retention=2000"})
	require.NoError(t, err)
	period, revisions, err = s.Retention()
	require.NoError(t, err)
	require.Zero(t, period)
	require.EqualValues(t, 2000, revisions)
}

func TestSourcesInTheirOrder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "braid.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
name: from-file
heartbeat-interval: 50
quota-backend-bytes: 8589934592
listen-client-urls: http://127.0.0.1:1,http://127.0.0.1:2
listen-metrics-urls: [http://127.0.0.1:3]
lease-reads: true
protocol: craft
code-k: 3
extra-whole: 1
large-value-bytes: 65536
body-cache-bytes: 1048576
scrub-rate: 1000000
trim-whole: true
max-request-bytes: 67108864
client-transport-security:
  client-cert-auth: false
peer-transport-security:
  client-cert-auth: false
socket-options: {reuse-port: true, reuse-address: true}
grpc-keepalive-min-time: 7000000000
`), 0o600))
	s, err := load([]string{"--config-file=" + file, "--heartbeat-interval=70"},
		"ETCD_NAME=from-variable", "ETCD_ELECTION_TIMEOUT=2000", "ETCD_UNRELATED=1")
	require.NoError(t, err)
	require.Equal(t, "from-file", s.Name)
	require.EqualValues(t, 8<<30, s.QuotaBytes)
	require.True(t, s.ReusePort)
	require.Equal(t, []string{"variable ETCD_UNRELATED does nothing: there is no such flag"}, s.Ignored())
	require.Equal(t, 7*time.Second, s.PingMinTime)
	require.Equal(t, []string{"http://127.0.0.1:1", "http://127.0.0.1:2"}, s.ListenClient)
	require.Equal(t, []string{"http://127.0.0.1:3"}, s.ListenMetrics)
	require.Equal(t, Log{
		Protocol: "craft", LargeValueBytes: 64 << 10, BodyCacheBytes: 1 << 20, ScrubRate: 1000000, MaxRequestBytes: 64 << 20,
		Values: setting.MustParse("placement=code", "order=single", "code-k=3", "extra-whole=1", "trim-whole=true",
			"heartbeat-interval=70ms", "election-timeout=2s", "lease-reads=true"),
	}, s.Log)

	s, err = load(nil, "ETCD_CONFIG_FILE="+file)
	require.NoError(t, err)
	require.Equal(t, "from-file", s.Name)
}

func TestBadSources(t *testing.T) {
	file := filepath.Join(t.TempDir(), "braid.yaml")
	for content, want := range map[string]string{
		"nmae: x":                          `unknown key "nmae"`,
		"heartbeat-interval: [x]":          "heartbeat-interval: ",
		"name: {a: b}":                     "is no text",
		"peer-transport-security: {ca: x}": `unknown key "peer-transport-security.ca"`,
		"name: [":                          "yaml",
	} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		_, err := load([]string{"--config-file=" + file})
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, file)
	}
	_, err := load(nil, "ETCD_HEARTBEAT_INTERVAL=x")
	require.ErrorContains(t, err, "variable ETCD_HEARTBEAT_INTERVAL")
	_, err = load([]string{"--config-file=" + file + ".missing"})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestFlagsOfEtcdThatDoNothing(t *testing.T) {
	s, err := load([]string{"--snapshot-count=10000", "--max-wals=5"})
	require.NoError(t, err)
	require.Len(t, s.Ignored(), 2)
	require.Contains(t, strings.Join(s.Ignored(), "\n"), "--snapshot-count does nothing: ")
}

func TestCertificatesOfBothSides(t *testing.T) {
	cert, err := transport.SelfCert(zap.NewNop(), t.TempDir(), []string{"127.0.0.1:1"}, 1, x509.ExtKeyUsageClientAuth)
	require.NoError(t, err)
	files := TLS{CertFile: cert.CertFile, KeyFile: cert.KeyFile, TrustedCAFile: cert.CertFile}

	mutual, err := files.Mutual()
	require.NoError(t, err)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", mutual)
	require.NoError(t, err)
	defer listener.Close()
	served := make(chan error, 1)
	go func() { served <- serveOne(listener) }()
	conn, err := tls.Dial("tcp", listener.Addr().String(), mutual)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, <-served)

	none, err := TLS{}.Mutual()
	require.NoError(t, err)
	require.Nil(t, none)
	_, err = TLS{CertFile: "missing", KeyFile: "missing"}.Server()
	require.ErrorIs(t, err, os.ErrNotExist)
}

// serveOne requires a certificate of the next connection.
func serveOne(l net.Listener) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	secure := conn.(*tls.Conn)
	if err := secure.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if err := secure.Handshake(); err != nil {
		return err
	}
	if len(secure.ConnectionState().PeerCertificates) == 0 {
		return errors.New("the other side showed no certificate")
	}
	return nil
}
