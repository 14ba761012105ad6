package metrics

// Absent are metrics of etcd that no member has, with the reason. Some are registered by etcd's packages, and would
// stay at 0: these are left out.
var Absent = map[string]string{
	"etcd_debugging_snap_save_marshalling_duration_seconds": "a part of " +
		"`etcd_debugging_snap_save_total_duration_seconds`",

	"etcd_debugging_store_expires_total":        noV2,
	"etcd_debugging_store_reads_total":          noV2,
	"etcd_debugging_store_watch_requests_total": noV2,
	"etcd_debugging_store_watchers":             noV2,
	"etcd_debugging_store_writes_total":         noV2,

	"etcd_debugging_server_watch_send_loop_control_stream_duration_seconds":         ownWatches,
	"etcd_debugging_server_watch_send_loop_progress_duration_seconds":               ownWatches,
	"etcd_debugging_server_watch_send_loop_watch_stream_duration_per_event_seconds": ownWatches,
	"etcd_debugging_server_watch_send_loop_watch_stream_duration_seconds":           ownWatches,

	"etcd_disk_wal_write_duration_seconds":      "writes are part of `etcd_disk_wal_fsync_duration_seconds`",
	"etcd_network_peer_received_failures_total": "a link that fails is in `etcd_network_disconnected_peers_total`",
	"etcd_server_heartbeat_send_failures_total": "heartbeats are not late: see `braid_link_queue_bytes` and " +
		"`etcd_disk_wal_fsync_duration_seconds`",
	"etcd_server_slow_read_indexes_total": "reads that fail are in `etcd_server_read_indexes_failed_total`",
}

const (
	noV2       = "there is no v2"
	ownWatches = "see `braid_watch_streams` and `braid_watch_events_sent_total`"
)
