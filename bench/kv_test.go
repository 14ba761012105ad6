package bench

import (
	"context"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braidlog/braid/bench/workload"
	"github.com/braidlog/braid/internal/testsize"
)

const memberEnv = "BRAID_BENCH_ETCD_MEMBER"

// TestMain lets the test's own executable be an etcd member.
func TestMain(m *testing.M) {
	if os.Getenv(memberEnv) == "" {
		os.Exit(m.Run())
	}
	args := map[string]string{}
	for i := 1; i+1 < len(os.Args); i += 2 {
		args[os.Args[i]] = os.Args[i+1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := EtcdMember{
		Name: args["--name"], DataDir: args["--data-dir"], ClientURL: args["--listen-client-urls"],
		PeerURL: args["--listen-peer-urls"], InitialCluster: args["--initial-cluster"], Token: args["--initial-cluster-token"],
	}.Run(ctx)
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

func kvLoad() KVConfig {
	return KVConfig{
		Protocol: "etcd", Clients: 20, Conns: 5, Warmup: 100 * time.Millisecond, Duration: time.Second,
		KeySize: 8, Workload: workload.Spec{Mix: workload.Ratio(0.5), KeySpace: 100, Values: workload.Fixed(16)},
	}
}

// startEtcd starts a cluster of etcd processes that end with the test.
func startEtcd(t *testing.T, nodes int) *Servers {
	testsize.Long(t)
	t.Helper()
	t.Setenv(memberEnv, "1")
	s, err := StartServers(context.Background(), os.Args[0], ServerKind{Name: "etcd"}, nodes, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

func TestKVOnEtcd(t *testing.T) {
	s := startEtcd(t, 3)
	c := kvLoad()
	c.Endpoints, c.Servers = s.Endpoints, s.PIDs
	r, err := RunKV(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Nodes != 3 || r.Errors > 0 || r.Commands == 0 || r.CPUMicrosOp <= 0 || r.ClientCPUMicrosOp <= 0 {
		t.Errorf("figures: %+v", r.Figures)
	}
	if r.PutLatencyMS == nil || r.GetLatencyMS == nil || r.PutLatencyMS.P50 <= 0 || r.GetLatencyMS.P50 <= 0 {
		t.Errorf("half of the requests are puts, but latencies are %v and %v", r.PutLatencyMS, r.GetLatencyMS)
	}
	if r.FsyncsPS <= 0 || r.LeaderEgress <= 0 {
		t.Errorf("%v fsyncs/s, %v bytes of egress: the servers' metrics were not read", r.FsyncsPS, r.LeaderEgress)
	}

	c.Total, c.Duration, c.Warmup, c.TargetLeader, c.Workload.Mix = 500, 0, 0, true, workload.Ratio(1)
	if r, err = RunKV(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	if r.Commands != 500 || r.PutLatencyMS != nil {
		t.Errorf("of 500 puts %d were measured; latencies of puts apart: %v", r.Commands, r.PutLatencyMS)
	}
}

func TestServersThatCannotStart(t *testing.T) {
	t.Setenv(memberEnv, "1")
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/m1", []byte("a file in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := StartServers(context.Background(), os.Args[0], ServerKind{Name: "etcd"}, 1, dir)
	if err == nil || !strings.Contains(err.Error(), "member 1 ended") {
		t.Errorf("error %v, want that member 1 ended, and why", err)
	}
}

func TestKVUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	for endpoint, want := range map[string]string{addr: addr + " is unreachable", "nonsense": "must have a host and a port", "ftp://x:1": "must be http"} {
		c := kvLoad()
		c.Endpoints = []string{endpoint}
		began := time.Now()
		if _, err := RunKV(context.Background(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", endpoint, err, want)
		}
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("%s: the error took %v", endpoint, took)
		}
	}
}

func TestKVConfigValidate(t *testing.T) {
	good := kvLoad()
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*KVConfig)
		want   string
	}{
		{func(c *KVConfig) { c.Clients = 0 }, "0 clients"},
		{func(c *KVConfig) { c.Conns = 0 }, "0 connections"},
		{func(c *KVConfig) { c.Conns = 21 }, "21 connections for 20 clients"},
		{func(c *KVConfig) { c.Total, c.Duration = 0, 0 }, "never end"},
		{func(c *KVConfig) { c.Total = -1 }, "negative"},
		{func(c *KVConfig) { c.Workload.Values = workload.Fixed(0) }, "values of 0 bytes"},
		{func(c *KVConfig) { c.Workload.Values = workload.Fixed(16 << 20); c.Clients = 100 }, "1600 MiB in flight"},
		{func(c *KVConfig) { c.Workload.KeySpace = 0 }, "0 keys"},
		{func(c *KVConfig) { c.KeyPrefix = "bench/x" }, "too short"},
		{func(c *KVConfig) { c.KeySize = 1 }, "too short"},
		{func(c *KVConfig) { c.Workload.Mix = workload.Mix{workload.Update: 1.5} }, "share 1.5 of update"},
		{func(c *KVConfig) { c.Workload.Mix = workload.Mix{} }, "add up to 0"},
		{func(c *KVConfig) { c.Rate = -1 }, "rate"},
		{func(c *KVConfig) { c.Throttle = -1 }, "throttle"},
		{func(c *KVConfig) { c.Rate, c.Throttle = 1, 1 }, "give one of the two"},
		{func(c *KVConfig) { c.Serializable, c.Workload.Mix = true, workload.Ratio(1) }, "no gets"},
		{func(c *KVConfig) { c.Serializable, c.Check, c.CheckLimit = true, true, 1 }, "not linearizable"},
		{func(c *KVConfig) { c.Check = true }, "check for 0s"},
		{func(c *KVConfig) { c.Check, c.CheckLimit, c.Workload.Values = true, 1, workload.Fixed(7) }, "to tell them apart"},
		{func(c *KVConfig) { c.API = "soap" }, "unknown API"},
		{func(c *KVConfig) { c.API, c.Workload.Mix = MapAPI, workload.Mix{workload.Scan: 1} }, "the map service has none"},
	} {
		bad := good
		c.change(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	contest := KVContestConfig{Servers: []string{"raft", "zookeeper"}, Nodes: 3, Rounds: 1, Load: good}
	if err := contest.Validate(); err == nil || !strings.Contains(err.Error(), `unknown server "zookeeper"`) {
		t.Errorf("error %v", err)
	}
}

func TestMetricLine(t *testing.T) {
	for line, want := range map[string]float64{
		`etcd_network_peer_sent_bytes_total{To="8e9e05c52164694d"} 1.5e+06`: 1.5e6,
		`etcd_disk_wal_fsync_duration_seconds_count 42`:                     42,
		`# TYPE etcd_x counter`:                                             0,
		``:                                                                  0,
	} {
		name, value := metricLine(line)
		if value != want || (want > 0 && !strings.HasPrefix(line, name)) {
			t.Errorf("%q: %q = %v, want %v", line, name, value, want)
		}
	}
}
