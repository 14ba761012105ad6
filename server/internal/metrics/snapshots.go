package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/braidlog/braid"
)

// savedTimes are how long snapshots took on this member.
var savedTimes = []struct {
	*family
	of func(*braid.SnapshotStats) *braid.Latency
}{
	{newFamily(prometheus.CounterValue, "etcd_debugging_snap_save_total_duration_seconds",
		"The total latency distributions of save called by snapshot."),
		func(s *braid.SnapshotStats) *braid.Latency { return &s.Save }},
	{newFamily(prometheus.CounterValue, "etcd_snap_fsync_duration_seconds",
		"The latency distributions of fsync called by snap."),
		func(s *braid.SnapshotStats) *braid.Latency { return &s.Sync }},
	{newFamily(prometheus.CounterValue, "etcd_snap_db_save_total_duration_seconds",
		"The total latency distributions of v3 snapshot save"),
		func(s *braid.SnapshotStats) *braid.Latency { return &s.Receive }},
	{newFamily(prometheus.CounterValue, "etcd_snap_db_fsync_duration_seconds",
		"The latency distributions of fsyncing .snap.db file"),
		func(s *braid.SnapshotStats) *braid.Latency { return &s.ReceiveSync }},
}

var installing = newFamily(prometheus.GaugeValue, "etcd_server_snapshot_apply_in_progress_total",
	"1 if the server is applying the incoming snapshot. 0 if none.")

// transferred are the metrics of snapshots in one direction, by the other member.
type transferred struct{ success, running, failures, times *family }

func newTransferred(direction, label string) transferred {
	name := "etcd_network_snapshot_" + direction + "_"
	return transferred{
		newFamily(prometheus.CounterValue, name+"success", "Total number of successful snapshot "+direction+"s", label),
		newFamily(prometheus.GaugeValue, name+"inflights_total", "Total number of inflight snapshot "+direction+"s", label),
		newFamily(prometheus.CounterValue, name+"failures", "Total number of snapshot "+direction+" failures", label),
		newFamily(prometheus.CounterValue, name+"total_duration_seconds",
			"Total latency distributions of v3 snapshot "+direction+"s", label),
	}
}

var snapshotsSent, snapshotsReceived = newTransferred("send", "To"), newTransferred("receive", "From")

func (f *transferred) collect(of *braid.Transfers, id string, ch chan<- prometheus.Metric, emit Emit) {
	done := uint64(0)
	for _, n := range of.Done.Counts {
		done += n
	}
	emit(f.success, float64(done), id)
	emit(f.running, float64(of.Running), id)
	emit(f.failures, float64(of.Failed), id)
	ch <- distribution(f.times, &of.Done, id)
}

// collectSnapshots reads how long snapshots took, and which were sent.
func collectSnapshots(s *braid.SnapshotStats, ch chan<- prometheus.Metric, emit Emit) {
	for i := range savedTimes {
		ch <- distribution(savedTimes[i].family, savedTimes[i].of(s))
	}
	emit(installing, truth(s.Installing))
	for i := range s.Peers {
		p := &s.Peers[i]
		snapshotsSent.collect(&p.Sent, p.ID.String(), ch, emit)
		snapshotsReceived.collect(&p.Received, p.ID.String(), ch, emit)
	}
}
