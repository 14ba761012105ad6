package bench

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/braidlog/braid/bench/workload"
)

func kvLoad() KVConfig {
	return KVConfig{
		Protocol: "etcd", Clients: 20, Conns: 5, Warmup: 100 * time.Millisecond, Duration: time.Second,
		KeySize: 8, Workload: workload.Spec{Mix: workload.Ratio(0.5), KeySpace: 100, Values: workload.Fixed(16)},
	}
}

func TestKVUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	for endpoint, want := range map[string]string{addr: addr + " is unreachable",
		"nonsense": "must have a host and a port", "ftp://x:1": "must be http"} {
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
		{func(c *KVConfig) { c.API, c.Workload.Mix = MapAPI, workload.Mix{workload.Grant: 1} },
			"the map service has none"},
	} {
		bad := good
		c.change(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	servers := Contest{Servers: []string{"raft", "zookeeper"}, Nodes: 3, Rounds: 1}
	contest := KVContestConfig{Contest: servers, Load: good}
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
