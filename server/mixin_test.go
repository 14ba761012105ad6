package server

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid/server/internal/metrics"
)

// ofMixin are the metrics that dashboards and alert rules of etcd-mixin (contrib/mixin of etcd's repository) use, with
// the labels by which they select or sum.
var ofMixin = map[string][]string{
	"etcd_server_has_leader":                        nil,
	"etcd_server_leader_changes_seen_total":         nil,
	"etcd_server_proposals_committed_total":         nil,
	"etcd_server_proposals_applied_total":           nil,
	"etcd_server_quota_backend_bytes":               nil,
	"etcd_mvcc_db_total_size_in_bytes":              nil,
	"etcd_mvcc_db_total_size_in_use_in_bytes":       nil,
	"etcd_disk_wal_fsync_duration_seconds":          nil,
	"etcd_disk_backend_commit_duration_seconds":     nil,
	"etcd_network_client_grpc_received_bytes_total": nil,
	"etcd_network_client_grpc_sent_bytes_total":     nil,
	"etcd_network_peer_received_bytes_total":        {"From"},
	"etcd_network_peer_sent_bytes_total":            {"To"},
	"etcd_network_peer_round_trip_time_seconds":     {"To"},
	"grpc_server_started_total":                     {"grpc_type", "grpc_service"},
	"grpc_server_handled_total":                     {"grpc_type", "grpc_service", "grpc_method", "grpc_code"},
	"grpc_server_handling_seconds":                  {"grpc_type", "grpc_method"}, // with --metrics extensive, as in etcd
	"process_resident_memory_bytes":                 nil,
}

// ofMixinInTrouble are those that are 0 while all is well.
var ofMixinInTrouble = map[string][]string{
	"etcd_network_peer_sent_failures_total": {"To"},
	"etcd_server_proposals_pending":         nil,
	"etcd_server_proposals_failed_total":    nil,
}

// dead are the metrics that a server does not have, or that are 0.
func dead(t *testing.T, s *Server, names map[string][]string) (dead []string) {
	all, err := metrics.Gatherer{Own: s.cfg.Registry, Process: prometheus.DefaultGatherer}.Gather()
	require.NoError(t, err)
	for name, labels := range names {
		i := slices.IndexFunc(all, func(f *dto.MetricFamily) bool { return f.GetName() == name })
		if i < 0 || !slices.ContainsFunc(all[i].Metric, func(m *dto.Metric) bool { return lives(m, labels) }) {
			dead = append(dead, name)
		}
	}
	slices.Sort(dead)
	return dead
}

// lives reports whether a metric has these labels, and is not 0.
func lives(m *dto.Metric, labels []string) bool {
	for _, want := range labels {
		if !slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetName() == want }) {
			return false
		}
	}
	return m.GetCounter().GetValue()+m.GetGauge().GetValue()+float64(m.GetHistogram().GetSampleCount()) > 0
}

// TestMetricsOfMixin: what etcd-mixin shows and warns of has a value here, and is not 0 where it should not be.
func TestMetricsOfMixin(t *testing.T) {
	t.Parallel()
	c := startReal(t, 3, func(c *Config) { c.ExtensiveMetrics, c.RequestTimeout = true, 2*time.Second })
	ctx := testContext(t)
	id := c.leader()
	s, client := c.servers[id], c.client(id)
	putUntil(t, ctx, client, "k", "v")
	_, err := client.Get(ctx, "k")
	require.NoError(t, err)
	var left []string
	eventually(t, "all metrics", func() bool { left = dead(t, s, ofMixin); return len(left) == 0 })
	require.Empty(t, left)

	// The dashboard's open watches and leases are streams that were started and not handled.
	streams := func() (open float64) {
		all, err := s.cfg.Registry.Gather()
		require.NoError(t, err)
		for _, f := range all {
			for _, m := range f.Metric {
				if slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetValue() == "etcdserverpb.Watch" }) {
					switch f.GetName() {
					case "grpc_server_started_total":
						open += m.GetCounter().GetValue()
					case "grpc_server_handled_total":
						open -= m.GetCounter().GetValue()
					}
				}
			}
		}
		return open
	}
	require.Zero(t, streams())
	watching, cancel := context.WithCancel(ctx)
	client.Watch(watching, "k", clientv3.WithCreatedNotify())
	eventually(t, "an open watch", func() bool { return streams() == 1 })
	cancel()
	eventually(t, "no open watch", func() bool { return streams() == 0 })

	for _, m := range c.members {
		if m.ID != id {
			c.stop(m.ID)
		}
	}
	put := make(chan error, 1)
	go func() {
		_, err := client.Put(ctx, "k", "w")
		put <- err
	}()
	seen := map[string]bool{}
	eventually(t, "all metrics of trouble", func() bool {
		left = dead(t, s, ofMixinInTrouble)
		for name := range ofMixinInTrouble {
			if !slices.Contains(left, name) {
				seen[name] = true
			}
		}
		return len(seen) == len(ofMixinInTrouble)
	})
	require.Error(t, <-put)
	eventually(t, "no leader", func() bool {
		return slices.Contains(dead(t, s, map[string][]string{"etcd_server_has_leader": nil}), "etcd_server_has_leader")
	})
}
