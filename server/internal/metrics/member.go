package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/pkg/v3/runtime"

	"github.com/braidlog/braid/internal/sys"
)

// ofMember are the metrics of a member that have no labels.
var ofMember = newTable(nil,
	gauge("etcd_server_has_leader", "Whether or not a leader exists. 1 is existence, 0 is not.",
		func(v *View) float64 { return truth(v.Led) }),
	gauge("etcd_server_is_leader", "Whether or not this member is a leader. 1 if is, 0 otherwise.",
		func(v *View) float64 { return truth(v.Leads) }),
	gauge("etcd_server_is_learner", "Whether or not this member is a learner. 1 if is, 0 otherwise.",
		func(v *View) float64 { return truth(v.Learner) }),
	gauge("etcd_server_proposals_committed_total", "The total number of consensus proposals committed.",
		func(v *View) float64 { return float64(v.Committed) }),
	gauge("etcd_server_proposals_applied_total", "The total number of consensus proposals applied.",
		func(v *View) float64 { return float64(v.Applied) }),
	gauge("braid_apply_lag", "Entries committed and not yet applied here.",
		func(v *View) float64 { return float64(v.Committed - v.Applied) }),
	gauge("braid_applied_position", "Last position of the global log that is applied here.",
		func(v *View) float64 { return float64(v.Log.Applied) }),
	gauge("braid_profile_version", "Version of the settings that members share; 0: the log has none.",
		func(v *View) float64 { return float64(v.Log.Profile.Version) }),
	gauge("braid_log_bytes", "Bytes of log on disk.",
		func(v *View) float64 { return float64(v.Log.LogBytes) }),
	gauge("braid_start_time_seconds", "When the server started, in seconds since 1970.",
		func(v *View) float64 { return float64(v.Start.UnixNano()) / 1e9 }),
	gauge("etcd_server_quota_backend_bytes", "Current backend storage quota size in bytes.",
		func(v *View) float64 { return float64(v.QuotaBytes) }),
	gauge("braid_store_db_size_bytes", "Bytes of the state machine's database file.",
		func(v *View) float64 { return float64(v.DBSize) }),
	gauge("braid_store_db_in_use_bytes", "Bytes in use in the state machine's database file.",
		func(v *View) float64 { return float64(v.DBSizeInUse) }),
	counter("etcd_network_client_grpc_received_bytes_total", "The total number of bytes received from grpc clients.",
		func(v *View) float64 { return float64(v.ClientIn) }),
	counter("etcd_network_client_grpc_sent_bytes_total", "The total number of bytes sent to grpc clients.",
		func(v *View) float64 { return float64(v.ClientOut) }),
	gauge("etcd_disk_wal_write_bytes_total", "Total number of bytes written in WAL.",
		func(v *View) float64 { return float64(v.Log.Log.Bytes) }),
	gauge("os_fd_used", "The number of used file descriptors.",
		func(*View) float64 { return descriptors(runtime.FDUsage) }),
	gauge("os_fd_limit", "The file descriptor limit.",
		func(*View) float64 { return descriptors(runtime.FDLimit) }),
	gauge("braid_client_connections", "Connections of clients that are open.",
		func(v *View) float64 { return float64(v.Connections) }),
	gauge("braid_client_connections_limit", "How many connections of clients may be open; others wait.",
		func(v *View) float64 { return float64(v.ConnectionLimit) }),
	counter("braid_client_connections_refused_total", "Connections that were closed because their client had too many.",
		func(v *View) float64 { return float64(v.RefusedConnections) }),
	counter("braid_client_requests_refused_total", "Requests refused because of a client's, a user's or a prefix's limit.",
		func(v *View) float64 { return float64(v.RefusedRequests) }),
)

// descriptors is a number of descriptors; 0: the system does not tell it.
func descriptors(read func() (uint64, error)) float64 {
	n, err := read()
	if err != nil {
		return 0
	}
	return float64(n)
}

// ofLog are metrics of the disk of the log.
var ofLog = newTable(nil,
	counter("braid_log_records_total", "Records made durable in the log.",
		func(v *View) float64 { return float64(v.Log.Log.Records) }),
	counter("braid_log_waits_total", "How often the log began to wait because its disk had no space, or the "+
		"process no descriptor.",
		func(v *View) float64 { return float64(v.Log.Log.Waits) }),
	counter("braid_descriptor_waits_total", "Steps beside the log that waited because the process had no descriptor.",
		func(v *View) float64 { return float64(v.Log.Starved) }),
	counter("braid_scrub_rounds_total", "How often everything on disk was read to find damage.",
		func(v *View) float64 { return float64(v.Log.Disk.Rounds) }),
	counter("braid_scrub_bytes_total", "Bytes of the log and of snapshots read to find damage.",
		func(v *View) float64 { return float64(v.Log.Disk.Scrubbed) }),
	counter("braid_disk_damaged_total", "Places of the log and of snapshots found damaged on disk.",
		func(v *View) float64 { return float64(v.Log.Disk.Damaged) }),
	counter("braid_disk_mended_total", "Damaged places of which nothing is needed any more.",
		func(v *View) float64 { return float64(v.Log.Disk.Mended) }),
)

// ofBodies are metrics of large values.
var ofBodies = newTable(nil,
	gauge("braid_bodies_held", "Large values held here, whole or as a fragment.",
		func(v *View) float64 { return float64(v.Log.Bodies.Held) }),
	gauge("braid_bodies_missing", "Large values that should be held here and are being restored.",
		func(v *View) float64 { return float64(v.Log.Bodies.Missing) }),
	gauge("braid_bodies_short", "Large values held here as fragments that are being made whole.",
		func(v *View) float64 { return float64(v.Log.Bodies.Short) }),
	gauge("braid_bodies_live_bytes", "Bytes of the large values held here, in the form held.",
		func(v *View) float64 { return float64(v.Log.Bodies.LiveBytes) }),
	gauge("braid_bodies_file_bytes", "Bytes of the files that hold large values.",
		func(v *View) float64 { return float64(v.Log.Bodies.TotalBytes) }),
	counter("braid_bodies_fetched_total", "Large values made whole from other members' fragments.",
		func(v *View) float64 { return float64(v.Log.Bodies.Fetched) }),
	counter("braid_bodies_served_total", "Fragments of large values given to other members.",
		func(v *View) float64 { return float64(v.Log.Bodies.Served) }),
	counter("braid_bodies_corrupt_total", "Large values found damaged on disk.",
		func(v *View) float64 { return float64(v.Log.Bodies.Corrupt) }),
	counter("braid_bodies_repaired_total", "Large values restored on disk.",
		func(v *View) float64 { return float64(v.Log.Bodies.Repaired) }),
	counter("braid_bodies_trimmed_total", "Whole copies of large values cut to a fragment.",
		func(v *View) float64 { return float64(v.Log.Bodies.Trimmed) }),
)

// The metrics of a member that have labels.
var (
	memberID = newFamily(prometheus.GaugeValue, "etcd_server_id",
		"Server or member ID in hexadecimal format. 1 for 'server_id' label with current ID.", "server_id")
	memberVersion = newFamily(prometheus.GaugeValue, "etcd_server_version",
		"Which version is running. 1 for 'server_version' label with current version.", "server_version")
	members = newFamily(prometheus.GaugeValue, "braid_members",
		"Members of the cluster by role.", "role")
	alarms = newFamily(prometheus.GaugeValue, "etcd_debugging_server_alarms",
		"Alarms for every member in cluster. 1 for 'server_id' label with current ID. 2 for 'alarm_type' label "+
			"with type of this alarm", "server_id", "alarm_type")
	logWaiting = newFamily(prometheus.GaugeValue, "braid_log_waiting",
		"1 while the log waits for space on its disk, or for a descriptor.", "for")
	syncs = newFamily(prometheus.CounterValue, "etcd_disk_wal_fsync_duration_seconds",
		"The latency distributions of fsync called by WAL.")
)

// What the links between members did, by the other member.
var (
	linkSent = newFamily(prometheus.CounterValue, "etcd_network_peer_sent_bytes_total",
		"The total number of bytes sent to peers.", "To")
	linkReceived = newFamily(prometheus.CounterValue, "etcd_network_peer_received_bytes_total",
		"The total number of bytes received from peers.", "From")
	linkKnown = newFamily(prometheus.GaugeValue, "etcd_network_known_peers",
		"The current number of known peers.", "Local", "Remote")
	linkActive = newFamily(prometheus.GaugeValue, "etcd_network_active_peers",
		"The current number of active peer connections.", "Local", "Remote")
	linkBreaks = newFamily(prometheus.CounterValue, "etcd_network_disconnected_peers_total",
		"The total number of disconnected peers.", "Local", "Remote")
	linkFailures = newFamily(prometheus.CounterValue, "etcd_network_peer_sent_failures_total",
		"The total number of send failures from peers: frames given up, and attempts to connect that failed.", "To")
	linkDrops = newFamily(prometheus.CounterValue, "braid_link_dropped_frames_total",
		"Frames to a member that were given up.", "to")
	linkQueue = newFamily(prometheus.GaugeValue, "braid_link_queue_bytes",
		"Bytes waiting to be sent to a member.", "to")
)

// Feature is a feature of etcd that can be turned on and off there. Stage is ALPHA, BETA or "".
type Feature struct {
	Name, Stage string
	On          bool
}

var features = newFamily(prometheus.GaugeValue, "etcd_server_feature_enabled",
	"Whether or not a feature is enabled. 1 is enabled, 0 is not.", "name", "stage")

// collectMember reads the state of the member as a whole.
func collectMember(v *View, emit Emit) {
	ofMember.collect(v, emit)
	ofLog.collect(v, emit)
	ofBodies.collect(v, emit)
	emit(memberID, 1, v.ID.String())
	emit(memberVersion, 1, version.Version)
	for _, f := range v.Features {
		emit(features, truth(f.On), f.Name, f.Stage)
	}
	for _, a := range v.Alarms {
		emit(alarms, 1, a.Member.String(), a.Name)
	}
	learners := 0
	for i := range v.Log.Members {
		if v.Log.Members[i].Learner && !v.Log.Members[i].Joining {
			learners++
		}
	}
	emit(members, float64(len(v.Log.Members)-learners), "voter")
	emit(members, float64(learners), "learner")
	full := v.Log.Log.Full
	noDescriptor := full != nil && sys.NoDescriptor(full)
	emit(logWaiting, truth(full != nil && !noDescriptor), "space")
	emit(logWaiting, truth(noDescriptor), "descriptor")
	for i := range v.Log.Links.Peers {
		p := &v.Log.Links.Peers[i]
		id, self := p.ID.String(), v.ID.String()
		emit(linkKnown, 1, self, id)
		emit(linkActive, truth(p.Connected), self, id)
		emit(linkBreaks, float64(p.Breaks), self, id)
		emit(linkFailures, float64(p.Drops+p.Failures), id)
		emit(linkSent, float64(p.BytesOut), id)
		emit(linkReceived, float64(p.BytesIn), id)
		emit(linkDrops, float64(p.Drops), id)
		emit(linkQueue, float64(p.QueueBytes), id)
	}
}

// SyncBound is the upper bound of an element of [braid.LogStats]'s SyncLatency; the last has none.
func SyncBound(i int) time.Duration { return time.Microsecond << i }

// syncTimes is how long the disk of the log took to sync.
func syncTimes(v *View) prometheus.Metric {
	disk := &v.Log.Log
	buckets, count := map[float64]uint64{}, uint64(0)
	for i, n := range disk.SyncLatency {
		count += n
		if i < len(disk.SyncLatency)-1 { // the last has no upper bound
			buckets[SyncBound(i).Seconds()] = count
		}
	}
	return prometheus.MustNewConstHistogram(syncs.Desc, count, disk.SyncTime.Seconds(), buckets)
}
