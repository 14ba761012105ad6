package metrics

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// TestSnapshotMetrics: those of etcd, with the other member's id.
func TestSnapshotMetrics(t *testing.T) {
	var v View
	s := &v.Log.SnapshotTimes
	s.Installing = true
	s.Save.Counts[2], s.Save.Sum = 3, time.Second
	s.Peers = []braid.PeerSnapshots{{ID: 0xab}}
	p := &s.Peers[0]
	p.Sent.Running, p.Sent.Failed = 1, 2
	p.Received.Done.Counts[0], p.Received.Done.Counts[20], p.Received.Done.Sum = 1, 3, 90*time.Second
	r := prometheus.NewRegistry()
	require.NoError(t, r.Register(NewCollector(New(false), func() View { return v })))
	all, err := r.Gather()
	require.NoError(t, err)
	seen := map[string]*dto.Metric{}
	for _, f := range all {
		seen[f.GetName()] = f.Metric[0]
	}
	for _, name := range []string{"etcd_snap_fsync_duration_seconds", "etcd_snap_db_save_total_duration_seconds",
		"etcd_snap_db_fsync_duration_seconds", stageName} {
		require.Contains(t, seen, name)
	}
	const sent, received = "etcd_network_snapshot_send_", "etcd_network_snapshot_receive_"
	require.EqualValues(t, 1, seen["etcd_server_snapshot_apply_in_progress_total"].GetGauge().GetValue())
	require.EqualValues(t, 1, seen[sent+"inflights_total"].GetGauge().GetValue())
	require.EqualValues(t, 2, seen[sent+"failures"].GetCounter().GetValue())
	require.Zero(t, seen[sent+"success"].GetCounter().GetValue())
	require.EqualValues(t, 4, seen[received+"success"].GetCounter().GetValue())
	for name, label := range map[string]string{sent: "To", received: "From"} {
		l := seen[name+"success"].Label[0]
		require.Equal(t, [2]string{label, "ab"}, [2]string{l.GetName(), l.GetValue()})
	}
	h := seen["etcd_debugging_snap_save_total_duration_seconds"].GetHistogram()
	require.EqualValues(t, 3, h.GetSampleCount())
	require.Zero(t, h.Bucket[1].GetCumulativeCount())
	require.EqualValues(t, 3, h.Bucket[2].GetCumulativeCount())
	require.InDelta(t, 0.0004, h.Bucket[2].GetUpperBound(), 1e-12)
	h = seen[received+"total_duration_seconds"].GetHistogram()
	require.EqualValues(t, 4, h.GetSampleCount())
	require.EqualValues(t, 1, h.Bucket[19].GetCumulativeCount(), "longer ones have no bound")
}
