package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/bench/workload"
)

func kvLoad() bench.KVConfig {
	return bench.KVConfig{
		Protocol: "etcd", Clients: 20, Conns: 5, Warmup: 100 * time.Millisecond, Duration: time.Second,
		KeySize: 8, Workload: workload.Spec{Mix: workload.Ratio(0.5), KeySpace: 100, Values: workload.Fixed(16)},
	}
}

var etcdKind = bench.ServerKind{Name: "etcd", Args: []string{"etcd-member"}}

// startEtcd starts a cluster of etcd processes that end with the test.
func startEtcd(t *testing.T, nodes int) *bench.Servers {
	t.Helper()
	t.Setenv(programEnv, "1")
	s, err := bench.StartServers(t.Context(), os.Args[0], etcdKind, nodes, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return s
}

func TestKVOnEtcd(t *testing.T) {
	s := startEtcd(t, 3)
	c := kvLoad()
	c.Endpoints, c.Servers = s.Endpoints, s.PIDs
	r, err := bench.RunKV(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, 3, r.Nodes)
	require.Zero(t, r.Errors, r.ErrorSample)
	require.Positive(t, r.Commands)
	require.Positive(t, r.CPUMicrosOp)
	require.Positive(t, r.ClientCPUMicrosOp)
	require.Positive(t, r.PutLatencyMS.P50, "half of the requests are puts")
	require.Positive(t, r.GetLatencyMS.P50)
	require.Positive(t, r.FsyncsPS, "from the servers' metrics")
	require.Positive(t, r.LeaderEgress)

	c.Total, c.Duration, c.Warmup, c.TargetLeader, c.Workload.Mix = 500, 0, 0, true, workload.Ratio(1)
	r, err = bench.RunKV(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, int64(500), r.Commands)
	require.Nil(t, r.PutLatencyMS, "all requests are puts")
}

// A contest starts the members itself, with the limits that the load needs.
func TestKVContest(t *testing.T) {
	t.Setenv(programEnv, "1")
	load := kvLoad()
	load.Warmup, load.Duration, load.Total, load.Workload.Values = 0, 0, 50, workload.Fixed(2<<20)
	c, err := bench.RunKVContest(t.Context(), bench.KVContestConfig{
		Contest: bench.Contest{Servers: []string{"etcd"}, Nodes: 1, Rounds: 1, Executable: "none", Rivals: os.Args[0],
			Dir: t.TempDir()}, Load: load,
	})
	require.NoError(t, err)
	require.Zero(t, c.Errors, c.ErrorSample)
}

func TestServersThatCannotStart(t *testing.T) {
	t.Setenv(programEnv, "1")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "m1"), []byte("a file in the way"), 0o600))
	_, err := bench.StartServers(t.Context(), os.Args[0], etcdKind, 1, dir)
	require.ErrorContains(t, err, "member 1 ended")
}

// A member that was killed returns with its data.
func TestMembersAreKilledAndStartedAgain(t *testing.T) {
	s := startEtcd(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	member := s.Leader(ctx)
	require.GreaterOrEqual(t, member, 0)
	before := s.PIDs[member]
	s.Kill(member)
	require.Equal(t, -1, s.Leader(ctx), "a member does not answer")
	require.NoError(t, s.Restart(member))
	require.NotEqual(t, before, s.PIDs[member])
	require.NoError(t, s.Ready(ctx))
	dir := t.TempDir()
	require.NoError(t, s.CopyLogs(dir))
	require.FileExists(t, filepath.Join(dir, "m3.log"))
}

// The keys of a run are removed even if it fails, and no others are.
func TestKVRemovesItsKeys(t *testing.T) {
	s := startEtcd(t, 1)
	conn, err := grpc.NewClient(s.Endpoints[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	kv := etcdserverpb.NewKVClient(conn)
	ctx := t.Context()
	_, err = kv.Put(ctx, &etcdserverpb.PutRequest{Key: []byte("mine0"), Value: []byte("x")})
	require.NoError(t, err)
	c := kvLoad()
	c.Endpoints, c.KeyPrefix, c.KeySize, c.RemoveKeys, c.Warmup, c.Duration, c.Total = s.Endpoints, "mine/", 10,
		true, 0, 0, 300
	check := func(what string) {
		t.Helper()
		r, err := kv.Range(ctx, &etcdserverpb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}})
		require.NoError(t, err, what)
		require.Len(t, r.Kvs, 1, what)
		require.Equal(t, "mine0", string(r.Kvs[0].Key), what)
	}
	r, err := bench.RunKV(ctx, c)
	require.NoError(t, err)
	require.Empty(t, r.KeysLeft)
	require.Equal(t, int64(300), r.Commands)
	check("after a run")

	c.Workload.Values, c.Duration, c.Total = workload.Sizes{Min: 1, Max: 4 << 20}, 5*time.Minute, 0
	_, err = bench.RunKV(ctx, c)
	var refused *bench.RefusedError
	require.ErrorAs(t, err, &refused, "the servers refuse large values")
	check("after a run that failed")

	c.KeyPrefix = ""
	require.ErrorContains(t, c.Validate(), "no prefix")
}

// etcdFlagsFile lists etcd's flags with their defaults, for the test that compares braid's flags with them.
const etcdFlagsFile = "../../internal/settings/testdata/etcd-flags"

var rewrite = flag.Bool("rewrite", false, "write the lists of etcd's flags and metrics")

// TestListOfEtcdFlags: the list is that of the version of etcd that this module requires.
func TestListOfEtcdFlags(t *testing.T) {
	fs := flag.NewFlagSet("etcd", flag.ContinueOnError)
	embed.NewConfig().AddFlags(fs)
	var list strings.Builder
	fs.VisitAll(func(f *flag.Flag) { fmt.Fprintf(&list, "%s=%s\n", f.Name, f.DefValue) }) // sorted
	if *rewrite {
		require.NoError(t, os.MkdirAll(filepath.Dir(etcdFlagsFile), 0o755))
		require.NoError(t, os.WriteFile(etcdFlagsFile, []byte(list.String()), 0o644))
	}
	data, err := os.ReadFile(etcdFlagsFile)
	require.NoError(t, err)
	require.Equal(t, string(data), list.String(), "go -C bench/rivals test -run TestListOfEtcdFlags . -rewrite")
}

// etcdMetricsFile lists etcd's metrics, for the test that compares braid's with them.
const etcdMetricsFile = "../../server/internal/metrics/testdata/etcd-metrics"

// TestListOfEtcdMetrics: the same of metrics. Those of its proxy, and of Go's runtime, are not in it.
func TestListOfEtcdMetrics(t *testing.T) {
	found := make(chan *prometheus.Desc)
	go func() {
		prometheus.DefaultRegisterer.(*prometheus.Registry).Describe(found)
		close(found)
	}()
	name := regexp.MustCompile(`fqName: "((?:etcd|grpc_server|os_fd)_[a-z0-9_]+)"`)
	names := []string{"grpc_server_handled_total", "grpc_server_handling_seconds", "grpc_server_msg_received_total",
		"grpc_server_msg_sent_total", "grpc_server_started_total"} // a running server registers these
	for d := range found {
		if m := name.FindStringSubmatch(d.String()); m != nil && !strings.HasPrefix(m[1], "etcd_grpc_proxy_") {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	list := strings.Join(slices.Compact(names), "\n") + "\n"
	if *rewrite {
		require.NoError(t, os.MkdirAll(filepath.Dir(etcdMetricsFile), 0o755))
		require.NoError(t, os.WriteFile(etcdMetricsFile, []byte(list), 0o644))
	}
	data, err := os.ReadFile(etcdMetricsFile)
	require.NoError(t, err)
	require.Equal(t, string(data), list, "go -C bench/rivals test -run TestListOfEtcdMetrics . -rewrite")
}
