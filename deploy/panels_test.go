package deploy

// panel is a graph of the dashboard.
type panel struct {
	title, unit string // a unit of Grafana
	queries     []query
}

// query is a line of a panel, or several. $S are the selectors of the cluster and its members, $I is the interval of
// rates.
type query struct {
	legend, expr string
	with         string // the protocol that has the series; "": all
	rare         string // the reason why a healthy cluster may have no series; "": it always has them
}

// row is a group of panels.
type row struct {
	title  string
	panels []panel
}

func each(expr string) []query { return []query{{legend: "{{instance}}", expr: expr}} }

// only marks queries whose series only one protocol has.
func only(protocol string, queries ...query) []query {
	for i := range queries {
		queries[i].with = protocol
	}
	return queries
}

// quantiles are the median and the 99th percentile of a histogram, by further labels.
func quantiles(name, by, legend string) []query {
	rates := ", sum by (" + by + ", le) (rate(" + name + "[$I])))"
	return []query{
		{legend: legend + " p50", expr: "histogram_quantile(0.5" + rates},
		{legend: legend + " p99", expr: "histogram_quantile(0.99" + rates},
	}
}

// stagesOf are the 99th percentile and the mean of each stage of requests.
func stagesOf(request string) (p99, mean []query) {
	selector := `{$S,request="` + request + `"}[$I]`
	return []query{{legend: "{{stage}}", expr: "histogram_quantile(0.99, sum by (stage, le) (rate(" +
			"braid_request_stage_seconds_bucket" + selector + ")))"}},
		[]query{{legend: "{{stage}}", expr: "sum by (stage) (rate(braid_request_stage_seconds_sum" + selector + "))" +
			" / sum by (stage) (rate(braid_request_stage_seconds_count" + selector + "))"}}
}

var rows = []row{clusterRow, requestsRow, stagesRow, diskRow, databaseRow, membersRow, instancesRow, lanesRow,
	epochsRow, fitRow, processRow}

var clusterRow = row{"Cluster", []panel{
	{"Members that answer", "none", []query{{legend: "members", expr: `sum(up{$S})`},
		{legend: "{{role}}s", expr: `max by (role) (braid_members{$S})`}}},
	{"Members that know a leader", "none", []query{{legend: "members", expr: `sum(etcd_server_has_leader{$S})`}}},
	{"Leader (of NIAGARA's first instance)", "none", each(`etcd_server_is_leader{$S}`)},
	{"Changes of leaders", "none", each(`increase(etcd_server_leader_changes_seen_total{$S}[$I])`)},
	{"Alarms", "none", []query{{legend: "{{alarm_type}} {{server_id}}",
		expr: `max by (alarm_type, server_id) (etcd_debugging_server_alarms{$S})`}}},
	{"Health checks that fail", "none", []query{{legend: "{{instance}} {{name}}",
		expr: `etcd_server_healthcheck{$S,type="readyz"} == 0`, rare: "no check fails"}}},
	{"Version of the settings: tunes and switches of the protocol", "none", each(`braid_profile_version{$S}`)},
	{"Versions of the API", "none", []query{{legend: "{{server_version}}",
		expr: `count by (server_version) (etcd_server_version{$S})`}}},
}}

var requestsRow = row{"Requests", []panel{
	{"Calls by method", "reqps", []query{{legend: "{{grpc_method}}",
		expr: `sum by (grpc_method) (rate(grpc_server_started_total{$S,grpc_type="unary"}[$I])) > 0`}}},
	{"Calls that fail, by code", "reqps", []query{{legend: "{{grpc_code}}",
		expr: `sum by (grpc_code) (rate(grpc_server_handled_total{$S,grpc_code!="OK"}[$I]))`}}},
	{"Time of requests, by type", "s", quantiles(`etcd_server_request_duration_seconds_bucket{$S}`, "type",
		"{{type}}")},
	{"Commands committed", "ops", each(`rate(etcd_server_proposals_committed_total{$S}[$I])`)},
	{"Commands pending, and failed", "none", []query{
		{legend: "pending {{instance}}", expr: `etcd_server_proposals_pending{$S}`},
		{legend: "failed {{instance}}", expr: `increase(etcd_server_proposals_failed_total{$S}[$I])`}}},
	{"Watches", "none", []query{
		{legend: "streams {{instance}}", expr: `braid_watch_streams{$S}`},
		{legend: "events/s {{instance}}", expr: `rate(braid_watch_events_sent_total{$S}[$I])`}}},
	{"Bytes of clients", "Bps", []query{
		{legend: "received {{instance}}", expr: `rate(etcd_network_client_grpc_received_bytes_total{$S}[$I])`},
		{legend: "sent {{instance}}", expr: `rate(etcd_network_client_grpc_sent_bytes_total{$S}[$I])`}}},
	{"Connections of clients", "none", []query{
		{legend: "open {{instance}}", expr: `braid_client_connections{$S}`},
		{legend: "limit {{instance}}", expr: `braid_client_connections_limit{$S}`},
		{legend: "refused {{instance}}", expr: `increase(braid_client_connections_refused_total{$S}[$I])`},
		{legend: "requests refused {{instance}}", expr: `increase(braid_client_requests_refused_total{$S}[$I])`}}},
}}

var stagesRow = func() row {
	write99, writeMean := stagesOf("write")
	read99, readMean := stagesOf("read")
	return row{"Where requests spend their time", []panel{
		{"Writes, p99 of each stage", "s", write99}, {"Writes, mean of each stage", "s", writeMean},
		{"Reads, p99 of each stage", "s", read99}, {"Reads, mean of each stage", "s", readMean},
	}}
}()

var diskRow = row{"Disk", []panel{
	{"Fsyncs of the log", "s", quantiles(`etcd_disk_wal_fsync_duration_seconds_bucket{$S}`, "instance",
		"{{instance}}")},
	{"Commits to the database", "s", quantiles(`etcd_disk_backend_commit_duration_seconds_bucket{$S}`, "instance",
		"{{instance}}")},
	{"Fsyncs a second", "iops", each(`rate(etcd_disk_wal_fsync_duration_seconds_count{$S}[$I])`)},
	{"Records of an fsync", "none", each(`rate(braid_log_records_total{$S}[$I])` +
		` / rate(etcd_disk_wal_fsync_duration_seconds_count{$S}[$I])`)},
	{"Bytes written to the log", "Bps", each(`rate(etcd_disk_wal_write_bytes_total{$S}[$I])`)},
	{"Bytes on disk", "bytes", []query{
		{legend: "log {{instance}}", expr: `braid_log_bytes{$S}`},
		{legend: "database {{instance}}", expr: `braid_store_db_size_bytes{$S}`},
		{legend: "large values {{instance}}", expr: `braid_bodies_file_bytes{$S}`}}},
	{"Damage found, and mended", "none", []query{
		{legend: "found {{instance}}", expr: `braid_disk_damaged_total{$S}`},
		{legend: "mended {{instance}}", expr: `braid_disk_mended_total{$S}`},
		{legend: "large values {{instance}}", expr: `braid_bodies_corrupt_total{$S}`}}},
	{"The log waits", "none", []query{{legend: "{{for}} {{instance}}", expr: `braid_log_waiting{$S}`}}},
}}

var databaseRow = row{"Database", []panel{
	{"Size", "bytes", []query{
		{legend: "file {{instance}}", expr: `etcd_mvcc_db_total_size_in_bytes{$S}`},
		{legend: "in use {{instance}}", expr: `etcd_mvcc_db_total_size_in_use_in_bytes{$S}`},
		{legend: "quota {{instance}}", expr: `etcd_server_quota_backend_bytes{$S}`}}},
	{"Share of the quota", "percentunit",
		each(`etcd_mvcc_db_total_size_in_bytes{$S} / (etcd_server_quota_backend_bytes{$S} > 0)`)},
	{"Keys", "none", each(`etcd_debugging_mvcc_keys_total{$S}`)},
	{"Revisions: now, and compacted", "none", []query{
		{legend: "now {{instance}}", expr: `etcd_debugging_mvcc_current_revision{$S}`},
		{legend: "compacted {{instance}}", expr: `etcd_debugging_mvcc_compact_revision{$S}`}}},
	{"Snapshots that clients saved in 24 hours", "none", each(
		`increase(grpc_server_handled_total{$S,grpc_method="Snapshot",grpc_code="OK"}[24h])`)},
}}

var membersRow = row{"Members", []panel{
	{"Committed and not applied", "none", each(`braid_apply_lag{$S}`)},
	{"Behind the furthest member", "none", each(
		`scalar(max(braid_applied_position{$S})) - braid_applied_position{$S}`)},
	{"Sent and not acknowledged", "bytes", []query{{legend: "{{instance}} to {{member}}",
		expr: `sum by (instance, member) (braid_peer_inflight_bytes{$S})`}}},
	{"Waiting to be sent", "bytes", []query{{legend: "{{instance}} to {{to}}", expr: `braid_link_queue_bytes{$S}`}}},
	{"Bytes between members", "Bps", []query{{legend: "{{instance}} to {{To}}",
		expr: `rate(etcd_network_peer_sent_bytes_total{$S}[$I])`}}},
	{"Round trips, p99", "s", quantiles(`etcd_network_peer_round_trip_time_seconds_bucket{$S}`, "instance, To",
		"{{instance}} to {{To}}")[1:]},
	{"Links", "none", []query{
		{legend: "{{instance}} to {{Remote}}", expr: `etcd_network_active_peers{$S}`},
		{legend: "breaks {{instance}} to {{Remote}}",
			expr: `increase(etcd_network_disconnected_peers_total{$S}[$I])`}}},
	{"Snapshots that are installed", "none", each(`etcd_server_snapshot_apply_in_progress_total{$S}`)},
}}

var instancesRow = row{"Instances, large values, NIAGARA", []panel{
	{"Leaders of instances", "none", []query{{legend: "instance {{exported_instance}}: {{instance}}",
		expr: `braid_instance_is_leader{$S} == 1`}}},
	{"Entries committed, by instance", "ops", []query{{legend: "instance {{exported_instance}}",
		expr: `max by (exported_instance) (rate(braid_instance_commit_index{$S}[$I]))`}}},
	{"Share of entries that skip a round", "percentunit", only("niagara", query{
		legend: "instance {{exported_instance}}",
		expr: `sum by (exported_instance) (rate(braid_skips_total{$S}[$I]))` +
			` / max by (exported_instance) (rate(braid_instance_commit_index{$S}[$I]))`})},
	{"Rounds committed and not applied", "none", only("niagara", query{legend: "{{instance}} {{exported_instance}}",
		expr: `braid_rounds_committed{$S} - braid_rounds_applied{$S}`})},
	{"Large values", "none", []query{
		{legend: "held {{instance}}", expr: `braid_bodies_held{$S}`},
		{legend: "missing {{instance}}", expr: `braid_bodies_missing{$S}`},
		{legend: "fragments to a value", expr: `max(braid_code_k{$S})`}}},
}}

var lanesRow = row{"Lanes", []panel{
	{"Lanes accept", "none", only("lcr", query{legend: "{{instance}}", expr: `braid_lane_accepting{$S}`})},
	{"Bytes by lanes", "Bps", only("lcr",
		query{legend: "sent {{instance}}", expr: `rate(braid_lane_sent_bytes_total{$S}[$I])`},
		query{legend: "the leader did not send {{instance}}", expr: `rate(braid_lane_spared_bytes_total{$S}[$I])`},
		query{legend: "the leader sent {{instance}}", expr: `rate(braid_lane_whole_bytes_total{$S}[$I])`})},
	{"Refused, and missed", "none", only("lcr",
		query{legend: "refused {{instance}}", expr: `increase(braid_lane_refused_total{$S}[$I])`},
		query{legend: "missed {{instance}}", expr: `increase(braid_lane_missed_total{$S}[$I])`})},
	{"Held and not confirmed", "bytes", only("lcr",
		query{legend: "{{instance}}", expr: `sum by (instance) (braid_lane_held_bytes{$S})`})},
}}

var epochsRow = row{"Epochs of ISS", []panel{
	{"Epochs", "ops", only("iss", query{legend: "{{instance}}", expr: `rate(braid_epoch_number{$S}[$I])`})},
	{"Voters that lead, and that are banned", "none", only("iss",
		query{legend: "lead", expr: `max(braid_epoch_leaders{$S})`},
		query{legend: "banned", expr: `max(braid_epoch_banned{$S})`})},
	{"Share of slots that are skipped", "percentunit", only("iss", query{legend: "{{instance}}",
		expr: `rate(braid_epoch_skipped_total{$S}[$I]) / rate(braid_epoch_slots_total{$S}[$I])`})},
	{"Slots decided, by leader", "ops", only("iss", query{legend: "{{member}}",
		expr: `max by (member) (rate(braid_segment_decided_index{$S}[$I]))`})},
}}

var fitRow = row{"Which protocol fits", []panel{
	{"Setting fit", "none", []query{{legend: "{{mode}}", expr: `max by (mode) (braid_fit_mode{$S}) == 1`}}},
	{"Gain that is expected of a change", "none", []query{{legend: "{{protocol}}",
		expr: `max by (protocol) (braid_fit_wish{$S})`, rare: "no change is wished for under a small load"}}},
	{"Changes made, and taken back", "none", []query{
		{legend: "made {{instance}}", expr: `braid_fit_changes_total{$S}`},
		{legend: "taken back {{instance}}", expr: `braid_fit_taken_back_total{$S}`}}},
}}

var processRow = row{"Processes", []panel{
	{"Processors", "none", each(`rate(process_cpu_seconds_total{$S}[$I])`)},
	{"Memory", "bytes", []query{
		{legend: "resident {{instance}}", expr: `process_resident_memory_bytes{$S}`},
		{legend: "heap {{instance}}", expr: `go_memstats_heap_inuse_bytes{$S}`}}},
	{"Longest pauses of the garbage collection", "s", each(`go_gc_duration_seconds{$S,quantile="1"}`)},
	{"Goroutines", "none", each(`go_goroutines{$S}`)},
	{"Descriptors", "none", []query{
		{legend: "used {{instance}}", expr: `process_open_fds{$S}`},
		{legend: "limit {{instance}}", expr: `process_max_fds{$S}`}}},
	{"Time since the start", "s", each(`time() - process_start_time_seconds{$S}`)},
}}
